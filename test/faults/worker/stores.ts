/** The stores that the worker's tests run on: memory, the embedded database and every PostgreSQL of the run. */
import { createQueue } from '../../../src/queue/index.js';
import { createPostgresQueueStore } from '../../../src/queue/postgres/index.js';
import { testDatabases, type TestDatabase } from '../../database/test-databases.js';
import { memoryQueue, type QueueUnderTest } from './harness.js';

export function queuesUnderTest(): QueueUnderTest[] {
  return [memoryQueue, ...testDatabases().map(databaseQueue)];
}

let schemas = 0;

function databaseQueue(database: TestDatabase): QueueUnderTest {
  let opened: ReturnType<TestDatabase['open']> | undefined;
  return {
    name: database.name,
    async open() {
      opened ??= database.open();
      schemas += 1;
      const store = createPostgresQueueStore({ database: await opened, schema: `queue_${schemas}` });
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
