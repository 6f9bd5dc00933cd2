/**
 * The feed's operations on timelines that are kept outside the database. The database keeps who has one (`readers`, whose
 * floor is the largest bigint, so that nothing is ever put into the table), which servers are trusted, and a journal of what
 * they could lose. Guarantees: a change outside is marked as done only if the servers that took it are trusted then.
 */
import type { Database } from '../../../database/index.js';
import type { FeedStore } from '../../store.js';
import type { TimelineLists } from '../../timeline-lists.js';
import { fanOutApart } from './fan-out.js';
import { homeApart } from './home.js';
import { operateApart } from './operate.js';
import { serversApart } from './servers.js';
import { timelinesApart } from './timelines.js';

export interface Apart {
  readonly schema: string;
  readonly database: Database;
  readonly lists: TimelineLists;
}

export function apartOperations(apart: Apart, inside: FeedStore): Partial<FeedStore> {
  return {
    ...fanOutApart(apart),
    ...timelinesApart(apart),
    ...homeApart(apart),
    ...operateApart(apart, inside),
    apart: serversApart(apart),
  };
}
