/**
 * BullMQ: bulk add in steps of 1,000, and a worker with as many jobs side by side as there are slots, which fetches the
 * next job with the completion of the last, as it does by default. One at a time: a job is fetched by hand and completed
 * without fetching the next. The driver's auto-pipelining is left off: with it one at a time came out at half.
 */
import { Queue, Worker } from 'bullmq';
import { finish, request, steps, Tally } from './tally.js';

const { url, workload, messages, slots, retention } = request;
const { hostname, port } = new URL(url);
const connection = { host: hostname, port: Number(port), maxRetriesPerRequest: null };
const keep = retention === 'none' ? { removeOnComplete: true, removeOnFail: true } : {};
const name = 'work';
const queue = new Queue(name, { connection, defaultJobOptions: keep });
await queue.waitUntilReady();

async function enqueueAll() {
  for (const step of steps(messages, 1_000))
    await queue.addBulk(step.map((index) => ({ name, data: { index } })));
}

async function remaining() {
  const counts = await queue.getJobCounts('wait', 'active', 'delayed', 'prioritized', 'paused');
  return Object.values(counts).reduce((sum, count) => sum + count, 0);
}

async function burnDown() {
  await enqueueAll();
  let allHandled;
  const all = new Promise((resolve) => {
    allHandled = resolve;
  });
  const tally = new Tally(messages, allHandled);
  const worker = new Worker(name, async ({ data }) => void tally.handle(data.index), {
    connection,
    concurrency: slots,
    autorun: false,
  });
  await worker.waitUntilReady();
  const startedAt = performance.now();
  const running = worker.run();
  await all;
  await worker.close();
  const seconds = (performance.now() - startedAt) / 1_000;
  await running;
  if ((await remaining()) > 0) throw new Error(`${await remaining()} jobs are left`);
  return tally.answer(seconds);
}

async function bulkEnqueue() {
  const startedAt = performance.now();
  await enqueueAll();
  const seconds = (performance.now() - startedAt) / 1_000;
  return { seconds, handled: 0, lost: messages - (await remaining()), doubled: 0 };
}

/** Add, fetch, complete, each awaited; `slots` of these side by side. */
async function oneAtATime() {
  const worker = new Worker(name, null, { connection });
  await worker.waitUntilReady();
  const tally = new Tally(messages);
  let next = 0;
  const startedAt = performance.now();
  await Promise.all(
    Array.from({ length: slots }, async (_, slot) => {
      const token = `slot-${slot}`;
      while (next < messages) {
        await queue.add(name, { index: next++ });
        let job;
        while (job === undefined) job = await worker.getNextJob(token, { block: false });
        tally.handle(job.data.index);
        await job.moveToCompleted(null, token, false);
      }
    }),
  );
  const seconds = (performance.now() - startedAt) / 1_000;
  await worker.close();
  return tally.answer(seconds);
}

const answer = await { 'burn-down': burnDown, 'bulk-enqueue': bulkEnqueue, 'one-at-a-time': oneAtATime }[
  workload
]();
await queue.close();
finish(answer);
