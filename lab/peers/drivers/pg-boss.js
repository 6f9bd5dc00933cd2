/**
 * pg-boss: bulk insert in steps of 1,000, and fetch and complete in batches of 100 on several loops, which is the
 * fastest way that it has (its `work` adds a polling pause between batches).
 */
import { PgBoss } from 'pg-boss';
import { analyze } from './analyze.js';
import { finish, request, steps, Tally } from './tally.js';

const { url, workload, messages, slots, retention } = request;
const boss = new PgBoss({
  connectionString: url,
  max: Math.max(10, Math.min(64, slots)),
  supervise: false,
  schedule: false,
});
boss.on('error', (error) => {
  throw error;
});
await boss.start();
const queue = 'work';
await boss.createQueue(queue, retention === 'none' ? { deleteAfterSeconds: 1 } : {});

async function enqueueAll() {
  for (const step of steps(messages, 1_000))
    await boss.insert(
      queue,
      step.map((index) => ({ data: { index } })),
    );
}

async function loop(tally, batchSize, left) {
  for (;;) {
    const jobs = await boss.fetch(queue, { batchSize });
    for (const job of jobs) tally.handle(job.data.index);
    if (jobs.length > 0)
      await boss.complete(
        queue,
        jobs.map(({ id }) => id),
      );
    left.count -= jobs.length;
    if (left.count <= 0) return;
    if (jobs.length === 0) await new Promise((resolve) => setTimeout(resolve, 1));
  }
}

async function burnDown() {
  await enqueueAll();
  await analyze(url);
  const tally = new Tally(messages);
  const left = { count: messages };
  const startedAt = performance.now();
  await Promise.all(Array.from({ length: 4 }, () => loop(tally, 100, left)));
  return tally.answer((performance.now() - startedAt) / 1_000);
}

async function bulkEnqueue() {
  const startedAt = performance.now();
  await enqueueAll();
  const seconds = (performance.now() - startedAt) / 1_000;
  return { seconds, handled: 0, lost: 0, doubled: 0 };
}

/** Enqueue, fetch, complete, each awaited; `slots` of these side by side. */
async function oneAtATime() {
  const tally = new Tally(messages);
  let next = 0;
  const startedAt = performance.now();
  await Promise.all(
    Array.from({ length: slots }, async () => {
      while (next < messages) {
        await boss.send(queue, { index: next++ });
        // A fetch skips what others have locked this moment, and may find nothing though a job is there.
        let job;
        while (job === undefined) [job] = await boss.fetch(queue);
        tally.handle(job.data.index);
        await boss.complete(queue, job.id);
      }
    }),
  );
  return tally.answer((performance.now() - startedAt) / 1_000);
}

const answer = await { 'burn-down': burnDown, 'bulk-enqueue': bulkEnqueue, 'one-at-a-time': oneAtATime }[
  workload
]();
await boss.stop({ graceful: false });
finish(answer);
