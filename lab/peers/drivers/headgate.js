/** Headgate as it is published: a worker with default options on either store. */
import { analyze } from './analyze.js';
import { openQueue } from './open-queue.js';
import { finish, request, steps, Tally } from './tally.js';

const { url, workload, messages, slots, retention } = request;
const { queue, createWorker, close } = await openQueue();
const name = 'work';
if (retention === 'none') {
  await queue.configure(name, { retentionMs: { completed: 0, canceled: 0, errored: 0 }, history: 'off' });
}

async function enqueueAll() {
  for (const step of steps(messages, 1_000))
    await queue.enqueue(
      name,
      step.map((index) => ({ payload: { index } })),
    );
}

async function burnDown() {
  await enqueueAll();
  await analyze(url);
  let allHandled;
  const all = new Promise((resolve) => {
    allHandled = resolve;
  });
  const tally = new Tally(messages, allHandled);
  const worker = createWorker({
    queue,
    queues: [name],
    slots,
    handler: ({ payload }) => void tally.handle(payload.index),
  });
  const startedAt = performance.now();
  await worker.start();
  await all;
  await worker.stop();
  const seconds = (performance.now() - startedAt) / 1_000;
  const { invisible, pending, running } = await queue.depth(name);
  if (invisible + pending + running > 0) throw new Error('messages are left');
  return tally.answer(seconds);
}

async function bulkEnqueue() {
  const startedAt = performance.now();
  await enqueueAll();
  const seconds = (performance.now() - startedAt) / 1_000;
  const { pending } = await queue.depth(name);
  return { seconds, handled: 0, lost: messages - pending, doubled: 0 };
}

/** Enqueue, dequeue, complete, each awaited; `slots` of these side by side. */
async function oneAtATime() {
  const tally = new Tally(messages);
  let next = 0;
  const startedAt = performance.now();
  await Promise.all(
    Array.from({ length: slots }, async () => {
      while (next < messages) {
        await queue.enqueue(name, [{ payload: { index: next++ } }]);
        let message;
        while (message === undefined) [message] = await queue.dequeue(name);
        tally.handle(message.payload.index);
        await queue.complete(name, [message]);
      }
    }),
  );
  return tally.answer((performance.now() - startedAt) / 1_000);
}

const answer = await { 'burn-down': burnDown, 'bulk-enqueue': bulkEnqueue, 'one-at-a-time': oneAtATime }[
  workload
]();
await queue.stop();
await close();
finish(answer);
