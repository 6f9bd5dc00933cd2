/**
 * A worker as a process of its own that ends cleanly on SIGTERM and Ctrl-C: nothing new is taken, what runs may finish within the
 * deadline, and what cannot goes back to the queue without a spent attempt. Runs on an embedded database in memory.
 */
import { composeComponents } from 'headgate';
import { openPglite } from 'headgate/database';
import { createQueue, createWorker } from 'headgate/queue';
import { createPostgresQueueStore } from 'headgate/queue/postgres';

const database = await openPglite({ folder: 'memory' }); // in production: openPostgres({ connectionString })
const queue = createQueue({ store: createPostgresQueueStore({ database }) });
const worker = createWorker({
  queue,
  queues: ['mail'],
  handler: async (message, { signal }) => {
    console.log(`began ${message.id}`);
    terminate(); // stands for the deployment that replaces this process while it works
    await new Promise((resolve) => setTimeout(resolve, 300));
    signal.throwIfAborted(); // fires shortly before the deadline of the stop
    console.log(`sent ${message.id}`);
  },
});

// Started in this order, stopped in the other one: the worker before the queue that it speaks to.
const parts = composeComponents([queue, worker]);

async function stop(signal: string): Promise<void> {
  console.log(`${signal}: stopping`);
  await parts.stop({ deadlineMs: 20_000 }); // less than the platform waits before it kills
  await database.close();
  console.log('stopped'); // nothing is left that would keep the process; no process.exit
}
process.once('SIGTERM', (signal) => void stop(signal));
process.once('SIGINT', (signal) => void stop(signal));

await parts.start();
await queue.enqueue('mail', [{ id: 'receipt-17', payload: { to: 'ann' } }]);

function terminate(): void {
  process.kill(process.pid, 'SIGTERM');
}
