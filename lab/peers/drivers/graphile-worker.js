/**
 * graphile-worker with the settings that its documentation calls fastest: a local queue of 500 and batched completion.
 * One at a time: one job, one worker slot each, without either.
 */
import { Logger, makeWorkerUtils, run } from 'graphile-worker';
import { analyze } from './analyze.js';
import { finish, request, steps, Tally } from './tally.js';

const { url, workload, messages, slots } = request;
const logger = new Logger(() => () => {});
const utils = await makeWorkerUtils({ connectionString: url, logger });
await utils.migrate();

const specs = (indexes) => indexes.map((index) => ({ identifier: 'work', payload: { index } }));

async function enqueueAll() {
  for (const step of steps(messages, 1_000)) await utils.addJobs(specs(step));
}

async function remaining() {
  const { rows } = await utils.withPgClient((client) =>
    client.query('select count(*)::int as count from graphile_worker._private_jobs'),
  );
  return rows[0].count;
}

async function burnDown() {
  await enqueueAll();
  await analyze(url);
  let allHandled;
  const all = new Promise((resolve) => {
    allHandled = resolve;
  });
  const tally = new Tally(messages, allHandled);
  const startedAt = performance.now();
  const runner = await run({
    preset: {
      worker: {
        connectionString: url,
        concurrentJobs: slots,
        maxPoolSize: 20,
        pollInterval: 2_000,
        localQueue: { size: 500 },
        completeJobBatchDelay: 0,
        failJobBatchDelay: 0,
        logger,
      },
    },
    noHandleSignals: true,
    taskList: { work: async ({ index }) => void tally.handle(index) },
  });
  await all;
  await runner.stop();
  const seconds = (performance.now() - startedAt) / 1_000;
  if ((await remaining()) > 0) throw new Error(`${await remaining()} jobs have not been completed`);
  return tally.answer(seconds);
}

async function bulkEnqueue() {
  const startedAt = performance.now();
  await enqueueAll();
  const seconds = (performance.now() - startedAt) / 1_000;
  return { seconds, handled: 0, lost: messages - (await remaining()), doubled: 0 };
}

const answer = await { 'burn-down': burnDown, 'bulk-enqueue': bulkEnqueue }[workload]();
await utils.release();
finish(answer);
