/** The stores that the worker's tests run on: memory, the embedded database, every PostgreSQL of the run, and Redis. */
import { createQueue } from '../../../src/queue/index.js';
import { createPostgresQueueStore } from '../../../src/queue/postgres/index.js';
import { createRedisQueueStore } from '../../../src/queue/redis/index.js';
import { prepareSchema } from '../../../src/testing/prepare-schema.js';
import { findRedisServer, type RedisServer, startRedisServer } from '../../../src/testing/redis-server.js';
import { testDatabases, type TestDatabase } from '../../database/test-databases.js';
import { memoryQueue, type QueueUnderTest } from './harness.js';

export function queuesUnderTest(): QueueUnderTest[] {
  return [memoryQueue, ...testDatabases().map(databaseQueue), ...redisQueues()];
}

let schemas = 0;

function databaseQueue(database: TestDatabase): QueueUnderTest {
  let opened: ReturnType<TestDatabase['open']> | undefined;
  return {
    name: database.name,
    async open() {
      opened ??= database.open();
      schemas += 1;
      const schema = `queue_${schemas}`;
      await prepareSchema(await opened, 'queue', schema);
      const store = createPostgresQueueStore({ database: await opened, schema });
      const queue = createQueue({ store });
      await queue.start();
      return queue;
    },
    async close() {
      await (await opened)?.close();
      opened = undefined;
    },
  };
}

/** REDIS_URL, else a server of this file's own; none where there is no redis-server. */
function redisQueues(): QueueUnderTest[] {
  const url = process.env['REDIS_URL'];
  if (url === undefined && !findRedisServer()) return [];
  let server: Promise<RedisServer> | undefined;
  let prefixes = 0;
  return [
    {
      name: 'redis',
      async open() {
        if (url === undefined) server ??= startRedisServer();
        prefixes += 1;
        const store = createRedisQueueStore({
          url: url ?? (await server!).url,
          prefix: `worker:${process.pid}:${prefixes}`,
          durability: 'none',
        });
        const queue = createQueue({ store });
        await queue.start();
        return queue;
      },
      async close() {
        await (await server)?.stop();
        server = undefined;
      },
    },
  ];
}
