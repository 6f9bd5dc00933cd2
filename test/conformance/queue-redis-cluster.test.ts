/** The store suite on a Redis Cluster of three primaries and three replicas; where there is no redis-server, skipped by name. */
import { afterAll, beforeAll, describe } from 'vitest';
import { createRedisQueueStore } from '../../src/queue/redis/index.js';
import { queueStoreSuite } from '../../src/testing/queue-store-suite.js';
import { type RedisCluster, startRedisCluster } from '../../src/testing/redis-cluster.js';
import { findRedisServer } from '../../src/testing/redis-server.js';

describe.skipIf(!findRedisServer())('on a Redis Cluster (needs redis-server on the PATH)', () => {
  let cluster: RedisCluster | undefined;
  let stores = 0;
  beforeAll(async () => {
    cluster = await startRedisCluster();
  });
  afterAll(() => cluster?.stop());

  queueStoreSuite({
    name: 'redis on a Cluster',
    open: async () => {
      const store = createRedisQueueStore({
        cluster: cluster!.nodes,
        prefix: `test:${++stores}`,
        durability: 'none',
      });
      await store.start();
      return { store, close: () => store.stop() };
    },
  });
});
