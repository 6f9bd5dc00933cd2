/**
 * Opens feed worlds on the stores of the run: each database with the timelines in its table, and one of them with the timelines
 * in Redis. Each world has schemas and a key prefix of its own.
 */
import { afterAll, afterEach, beforeAll } from 'vitest';
import type { Database } from '../../../src/database/index.js';
import type { FeedOptionsInput } from '../../../src/feed/index.js';
import { createPostgresQueueStore } from '../../../src/queue/postgres/index.js';
import { type FeedClock, type FeedWorld, openFeedWorld } from '../../../src/testing/feed-world.js';
import { redisTimelines } from '../../../src/testing/feed-timelines.js';
import { type RedisCluster, startRedisCluster } from '../../../src/testing/redis-cluster.js';
import { findRedisServer, type RedisServer, startRedisServer } from '../../../src/testing/redis-server.js';
import { type TestDatabase, testDatabases } from '../../database/test-databases.js';

/** A database, and where the timelines are. */
export interface TestStores extends TestDatabase {
  readonly timelines: 'table' | 'redis' | 'redis cluster';
}

const onTable = testDatabases().map((on): TestStores => ({ ...on, timelines: 'table' }));

/** The first server, or the embedded database where there is none. */
const withRedis = (timelines: TestStores['timelines']): TestStores[] => {
  const on = onTable[1] ?? onTable[0];
  return on && findRedisServer()
    ? [{ ...on, name: `${on.name} with timelines in ${timelines}`, timelines }]
    : [];
};

/** A file that runs the suite on a Cluster says so before it loads the suite. */
export const onClusterVariable = 'HEADGATE_FEED_SUITE_ON_CLUSTER';
export const databases =
  process.env[onClusterVariable] === undefined
    ? [...onTable, ...withRedis('redis')]
    : withRedis('redis cluster');

/** One Redis or Cluster for all tests of a file. */
let shared: Promise<RedisServer | RedisCluster> | undefined;
afterAll(async () => (await shared)?.stop());

/** The Cluster of this file, if there is one. */
export const sharedCluster = () => shared as Promise<RedisCluster> | undefined;

/** Within a `describe`: one database for its tests, a new world whenever asked, all closed at the end. */
export function useWorlds(on: TestStores) {
  let database: Database;
  let redis: RedisServer | RedisCluster | undefined;
  const open: FeedWorld[] = [];
  beforeAll(async () => {
    database = await on.open();
    if (on.timelines === 'redis')
      redis = await (shared ??= startRedisServer({ settings: { 'enable-debug-command': 'local' } }));
    if (on.timelines === 'redis cluster') redis = await (shared ??= startRedisCluster());
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
      openTimelines: redis && ((database, schema) => redisTimelines(database, schema, redis!)),
      queueStore: (schema) => createPostgresQueueStore({ database, schema }),
      ...(options && { options }),
      ...(clock && { clock }),
    });
    open.push(world);
    return world;
  };
}
