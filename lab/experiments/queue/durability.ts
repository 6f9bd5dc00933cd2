/**
 * What strong durability costs and what it saves: throughput with each durability of the store, and after a SIGKILL of the
 * server in mid-run how many acknowledged messages are gone and how many were done twice.
 */
import { createWorker, type Queue } from '../../../src/queue/index.js';
import type { Experiment, ExperimentContext, Figure, Report } from '../../experiment.js';
import {
  fill,
  type LabDurability,
  type QueueUnderTest,
  storeOf,
  type StoreName,
  withQueue,
} from './queue-under-test.js';

interface Outcome {
  readonly perSecond: number;
  readonly acknowledged: number;
  readonly lost: number;
  readonly doubled: number;
}

async function burnDown(queue: Queue, count: number): Promise<number> {
  await fill(queue, 'burn-down', count, () => ({ payload: {} }));
  let handled = 0;
  let allHandled = (): void => {};
  const all = new Promise<void>((resolve) => {
    allHandled = resolve;
  });
  const worker = createWorker({
    queue,
    queues: ['burn-down'],
    slots: 100,
    handler: () => {
      handled += 1;
      if (handled === count) allHandled();
    },
  });
  const startedAt = performance.now();
  await worker.start();
  await all;
  await worker.stop();
  return count / ((performance.now() - startedAt) / 1_000);
}

/**
 * Enqueues to a queue that is served and to one that is not until the server is killed, restarts it, and compares what is
 * there with what was acknowledged, and what was handled with what should have been.
 */
async function killInMidRun(
  { queue, kill, restart }: QueueUnderTest,
  seconds: number,
): Promise<Omit<Outcome, 'perSecond'>> {
  const handled = new Map<string, number>();
  const worker = createWorker({
    queue,
    queues: ['served'],
    slots: 20,
    leaseMs: 2_000,
    handler: ({ id }) => void handled.set(id, (handled.get(id) ?? 0) + 1),
  });
  await worker.start();
  const killed = new AbortController();
  const producers = ['served', 'kept'].map((name) => produce(queue, name, killed.signal));
  await new Promise((resolve) => setTimeout(resolve, seconds * 1_000));
  await kill();
  killed.abort();
  const [served = [], kept = []] = await Promise.all(producers);
  await restart();
  await drained(queue, 'served');
  await worker.stop();
  const there = await waitingIds(queue, 'kept');
  const lost = [...kept.filter((id) => !there.has(id)), ...served.filter((id) => !handled.has(id))].length;
  const doubled = [...handled.values()].filter((count) => count > 1).length;
  return { acknowledged: served.length + kept.length, lost, doubled };
}

/** Enqueues ten messages at a time until `signal` fires; the ids that were acknowledged. */
async function produce(queue: Queue, name: string, signal: AbortSignal): Promise<string[]> {
  const acknowledged: string[] = [];
  for (let step = 0; !signal.aborted; step += 1) {
    const messages = Array.from({ length: 10 }, (_, index) => ({ id: `${step}-${index}`, payload: {} }));
    const outcomes = await queue.enqueue(name, messages).catch(() => []);
    acknowledged.push(...outcomes.map(({ id }) => id));
  }
  return acknowledged;
}

async function waitingIds(queue: Queue, name: string): Promise<Set<string>> {
  const ids = new Set<string>();
  let after: string | undefined;
  do {
    const page = await queue.list(name, { state: 'pending', limit: 1_000, after });
    for (const { id } of page.messages) ids.add(id);
    after = page.next;
  } while (after !== undefined);
  return ids;
}

async function drained(queue: Queue, name: string): Promise<void> {
  for (const untilMs = performance.now() + 30_000; performance.now() < untilMs; ) {
    const depth = await queue.depth(name).catch(() => undefined);
    if (depth !== undefined && depth.pending + depth.running + depth.invisible === 0) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error('the queue was not drained within 30 s of the restart');
}

const modes: Readonly<Record<StoreName, readonly LabDurability[]>> = {
  postgres: ['strict', 'relaxed'],
  redis: ['strict', 'relaxed', 'none'],
};

const expectations: Readonly<Record<StoreName, string>> = {
  postgres:
    'strict loses nothing; what relaxed acknowledges in the last moments before a kill can be lost or done twice',
  redis:
    'strict loses nothing; relaxed (everysec) loses nothing to a killed process, since the kernel has what was written, and about the last second to a power cut, which is not tried here; none loses what was waiting',
};

interface Measured extends Outcome {
  readonly mode: LabDurability;
  readonly durability: string;
}

async function measure(
  { quick, tell }: ExperimentContext,
  store: StoreName,
  mode: LabDurability,
): Promise<Measured> {
  const count = (quick ? 10_000 : 100_000) * (store === 'redis' ? 5 : 1);
  const measured = await withQueue({ store, durability: mode }, async (lab) => {
    const perSecond = await burnDown(lab.queue, count);
    const killed = await killInMidRun(lab, quick ? 3 : 10);
    return { mode, perSecond, ...killed, durability: lab.durability };
  });
  const { perSecond, lost, acknowledged, doubled } = measured;
  tell(
    `${mode}: ${Math.round(perSecond)}/s, ${lost} of ${acknowledged} acknowledged lost, ${doubled} done twice`,
  );
  return measured;
}

async function run(context: ExperimentContext): Promise<Report> {
  const store = storeOf(context);
  const all: Measured[] = [];
  for (const mode of modes[store]) all.push(await measure(context, store, mode));
  const strict = all[0]!;
  const rows = all.map((outcome): Figure[] => [
    outcome.mode,
    outcome.durability,
    Math.round(outcome.perSecond),
    outcome.acknowledged,
    outcome.lost,
    outcome.doubled,
  ]);
  const figures = Object.fromEntries(
    all.flatMap(({ mode, perSecond, lost, doubled }) => [
      [`${mode}: per second`, Math.round(perSecond)],
      [`${mode}: lost`, lost],
      [`${mode}: done twice`, doubled],
    ]),
  );
  const verdict = all.map(
    ({ mode, lost, acknowledged, perSecond, doubled }) =>
      `${mode} lost ${lost} of ${acknowledged} acknowledged messages and did ${doubled} twice, at ${Math.round(perSecond).toLocaleString('en')}/s`,
  );
  return {
    tables: [{ columns: ['mode', 'server', 'burn-down/s', 'acknowledged', 'lost', 'done twice'], rows }],
    figures,
    reference: { expected: expectations[store] },
    durability: all.map(({ mode, durability }) => `${mode}: ${durability}`).join('; '),
    holds: strict.lost === 0,
    verdict: verdict.join('; '),
  };
}

export const durability: Experiment = {
  name: 'durability',
  shows: 'throughput with each durability of the store, and what is lost or done twice after SIGKILL',
  run,
};
