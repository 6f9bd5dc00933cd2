/** How an application tests what it gives to the queue, and what its handler makes of it: in memory, without a server or a wait. */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { createQueue, createWorker, type Queue } from 'headgate/queue';
import { createMemoryQueueStore } from 'headgate/queue/memory';

// Two pieces of the application.
async function signUp(queue: Queue, name: string): Promise<void> {
  await queue.enqueue('mail', [{ id: `welcome-${name}`, payload: { to: name } }]);
}
function createMailWorker(queue: Queue, send: (to: string) => Promise<void>) {
  return createWorker({
    queue,
    queues: ['mail'],
    retry: { delayMs: 1 },
    handler: (message) => send((message.payload as { to: string }).to),
  });
}

async function openQueue(context: TestContext): Promise<Queue> {
  const queue = createQueue({ store: createMemoryQueueStore() });
  await queue.start();
  context.after(() => queue.stop());
  return queue;
}

await test('signing up twice enqueues one welcome', async (context) => {
  const queue = await openQueue(context);
  await signUp(queue, 'ann');
  await signUp(queue, 'ann');
  const { messages } = await queue.list('mail', { state: 'pending' });
  assert.deepEqual(
    messages.map(({ payload }) => payload),
    [{ to: 'ann' }],
  );
});

await test('a welcome that could not be sent is sent at the second attempt', async (context) => {
  const queue = await openQueue(context);
  let calls = 0;
  const worker = createMailWorker(queue, async () => {
    calls += 1;
    if (calls === 1) throw new Error('the mail server is busy');
  });
  await worker.start();
  context.after(() => worker.stop());
  await signUp(queue, 'ann');
  const ended = await queue.result('mail', 'welcome-ann'); // waits for the end, not for a number of milliseconds
  assert.deepEqual([ended?.state, ended?.attempts], ['completed', 2]);
});
