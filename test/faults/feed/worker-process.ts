/**
 * A feed worker as a process of its own. Says `in batch N` inside the transaction that has written batch N, and waits
 * there for a moment, so that it can be killed in the middle.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { openPostgres } from '../../../src/database/index.js';
import { createFeedWorker, type FeedOptionsInput } from '../../../src/feed/index.js';
import { createPostgresFeedStore } from '../../../src/feed/postgres/index.js';
import { createQueue } from '../../../src/queue/index.js';
import { createPostgresQueueStore } from '../../../src/queue/postgres/index.js';

export interface WorkerProcessInput {
  readonly url: string;
  readonly schema: string;
  readonly queueSchema: string;
  readonly options: FeedOptionsInput;
  readonly pauseMs: number;
}

const input = JSON.parse(process.argv[2] ?? '{}') as WorkerProcessInput;
const database = await openPostgres({ connectionString: input.url });
const queue = createQueue({ store: createPostgresQueueStore({ database, schema: input.queueSchema }) });
const store = createPostgresFeedStore({ database, schema: input.schema });
const { writeBatch, writeAll } = store;
store.writeBatch = async (on, batch) => {
  const written = await writeBatch(on, batch);
  console.log(`in batch ${batch.batch}`);
  await pause(input.pauseMs);
  return written;
};
store.writeAll = async (on, work) => {
  console.log('in all');
  await pause(input.pauseMs);
  return writeAll(on, work);
};
await queue.start();
const worker = createFeedWorker(
  { database, queue, store, options: input.options },
  { slots: 4, leaseMs: 1_000 },
);
await worker.start();
console.log('ready');
process.on('SIGTERM', async () => {
  await worker.stop();
  await queue.stop();
  await database.close();
});
