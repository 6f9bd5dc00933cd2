/** The queue in a minute: most urgent first, one holder at a time, a worker that retries. Runs on an embedded database in memory. */
import { openPglite } from 'headgate/database';
import { createQueue, createWorker } from 'headgate/queue';
import { createPostgresQueueStore } from 'headgate/queue/postgres';

const database = await openPglite({ folder: 'memory' });
const queue = createQueue({ store: createPostgresQueueStore({ database }) });
await queue.start();

// The priority is a deadline in unix milliseconds: the earliest comes first, whatever the order of enqueue.
const soon = Date.now() + 60_000;
await queue.enqueue('mail', [
  { id: 'newsletter', payload: { to: 'everybody' }, priority: soon + 3_600_000 },
  { id: 'receipt', payload: { to: 'ann' }, priority: soon },
  { id: 'receipt', payload: { to: 'ann' }, priority: soon }, // the same id again is not enqueued again
]);

let failures = 0;
const worker = createWorker({
  queue,
  queues: ['mail'],
  slots: 1,
  retry: { delayMs: 10 },
  handler: async (message) => {
    if (message.id === 'receipt' && failures === 0) {
      failures += 1;
      throw new Error('the mail server is busy');
    }
    console.log(`sent ${message.id} at attempt ${message.attempts}`);
    return { sent: true };
  },
});
await worker.start();

const receipt = await queue.result('mail', 'receipt');
const newsletter = await queue.result('mail', 'newsletter');
console.log(`receipt: ${receipt?.state}, newsletter: ${newsletter?.state}`);

await worker.stop();
await queue.stop();
await database.close();
