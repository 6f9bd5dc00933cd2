/**
 * The feed's store on PostgreSQL and the embedded database. start() brings the schema up to date; the default schema is
 * headgate_feed.
 */
import { type Database, migrate, quoteSchema } from '../../database/index.js';
import type { Log } from '../../log.js';
import type { FeedStore, TimelineLists } from '../store.js';
import { accountOperations } from './accounts.js';
import { apartOperations, useBuckets } from './apart/index.js';
import { fanOutOperations } from './fan-out.js';
import { graphOperations } from './graph.js';
import { homeOperations } from './home.js';
import { operateOperations } from './operate.js';
import { postOperations } from './posts.js';
import { timelineOperations } from './timelines.js';

export interface PostgresFeedStoreOptions {
  readonly database: Database;
  /** Default: headgate_feed. */
  readonly schema?: string | undefined;
  /** Keeps the timelines outside the database, for instance `createRedisTimelines({ url })`. Default: in a table. */
  readonly timelines?: TimelineLists | undefined;
  readonly log?: Log | undefined;
}

export function createPostgresFeedStore(options: PostgresFeedStoreOptions): FeedStore {
  const { database, schema: name = 'headgate_feed', timelines, log } = options;
  const schema = quoteSchema(name);
  const store: FeedStore = {
    name: 'postgres',
    ...accountOperations(schema),
    ...graphOperations(schema),
    ...postOperations(schema),
    ...fanOutOperations(schema),
    ...timelineOperations(schema),
    ...homeOperations(schema),
    ...operateOperations(schema),

    async start() {
      const directory = new URL('./migrations/', import.meta.url);
      await migrate(database, { part: 'feed', schema: name, directory, ...(log && { log }) });
      await timelines?.start();
      if (timelines) await useBuckets({ schema, database, lists: timelines });
    },

    async stop() {
      await timelines?.stop();
    },
  };
  if (!timelines) return store;
  const apart = apartOperations({ schema, database, lists: timelines }, store);
  return { ...store, ...apart, name: `postgres with timelines in ${timelines.name}` };
}
