/**
 * The operations whose plans are looked at among millions of messages. Each has the bounds of one call, in rows of one
 * statement and in pages of the whole call, and a preparation that answers the call.
 */
import { dequeues, enqueues } from './large/hand-out.js';
import { lists, newestLists } from './large/list.js';
import { housekeeping, operates } from './large/operate.js';
import type { Operation } from './large/operation.js';
import { reads } from './large/read.js';
import { settlings } from './large/settle.js';

export type { LargeQueue } from './large/operation.js';

export const operations: readonly Operation[] = [
  ...enqueues,
  ...dequeues,
  ...settlings,
  ...operates,
  ...lists,
  ...newestLists,
  ...reads,
  ...housekeeping,
];
