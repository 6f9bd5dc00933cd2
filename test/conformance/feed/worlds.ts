/** Opens feed worlds on the databases of the run; each world has schemas of its own. */
import { afterAll, afterEach, beforeAll } from 'vitest';
import type { Database } from '../../../src/database/index.js';
import type { FeedOptionsInput } from '../../../src/feed/index.js';
import { createPostgresQueueStore } from '../../../src/queue/postgres/index.js';
import { type FeedClock, type FeedWorld, openFeedWorld } from '../../../src/testing/feed-world.js';
import { type TestDatabase, testDatabases } from '../../database/test-databases.js';

export const databases = testDatabases();

/** Within a `describe`: one database for its tests, a new world whenever asked, all closed at the end. */
export function useWorlds(on: TestDatabase) {
  let database: Database;
  const open: FeedWorld[] = [];
  beforeAll(async () => {
    database = await on.open();
  });
  afterEach(async () => {
    for (const world of open.splice(0)) await world.close();
  });
  afterAll(async () => {
    await database.close();
  });
  return async (options?: FeedOptionsInput, clock?: FeedClock): Promise<FeedWorld> => {
    const world = await openFeedWorld({
      database,
      queueStore: (schema) => createPostgresQueueStore({ database, schema }),
      ...(options && { options }),
      ...(clock && { clock }),
    });
    open.push(world);
    return world;
  };
}
