/** The store suite on Redis: REDIS_URL, else a server of this run's own; where there is none, skipped by name. */
import { afterAll, beforeAll, describe } from 'vitest';
import { createRedisQueueStore } from '../../src/queue/redis/index.js';
import { queueStoreSuite } from '../../src/testing/queue-store-suite.js';
import { findRedisServer, type RedisServer, startRedisServer } from '../../src/testing/redis-server.js';

const url = process.env['REDIS_URL'];

describe.skipIf(url === undefined && !findRedisServer())(
  'on one Redis (needs redis-server on the PATH, or REDIS_URL)',
  () => {
    let server: RedisServer | undefined;
    let stores = 0;
    beforeAll(async () => {
      if (url === undefined) server = await startRedisServer();
    });
    afterAll(() => server?.stop());

    queueStoreSuite({
      name: 'redis',
      open: async () => {
        const store = createRedisQueueStore({
          url: url ?? server!.url,
          prefix: `test:${process.pid}:${++stores}`,
          durability: 'none',
        });
        await store.start();
        return { store, close: () => store.stop() };
      },
    });
  },
);
