/**
 * What a dequeue costs when messages that may not run stand in front: none, many of one busy value, or one each of many
 * busy values, with and without a filter. The situations are measured in turn, so that a busy machine hurts all alike.
 */
import type { Metadata, Queue } from '../../../src/queue/index.js';
import type { Experiment, ExperimentContext, Figure, Report } from '../../experiment.js';
import { durabilityOfTimes, fill, storeOf, type StoreName, withQueue } from './queue-under-test.js';
import { median, percentile } from '../../statistics.js';

const freeValues = 36;
const factor = 1.2;

interface Situation {
  readonly label: string;
  readonly queue: string;
  /** Busy values in front, and waiting messages of each. */
  readonly busyValues: number;
  readonly waitingOfEach: number;
  readonly where: Metadata;
}

function situations(quick: boolean, store: StoreName): Situation[] {
  // Filling is what takes the time on postgres.
  const counts = quick && store === 'postgres' ? [10, 1_000, 10_000] : [10, 1_000, 10_000, 100_000];
  const most = counts.at(-1)!;
  return [
    { label: 'none blocked', queue: 'none', busyValues: 0, waitingOfEach: 0, where: {} },
    ...counts.map((count) => ({
      label: `${count} of one busy value`,
      queue: `one-${count}`,
      busyValues: 1,
      waitingOfEach: count,
      where: {},
    })),
    { label: '1,001 busy values', queue: 'many', busyValues: 1_001, waitingOfEach: 1, where: {} },
    {
      label: 'none blocked, with a filter',
      queue: 'none',
      busyValues: 0,
      waitingOfEach: 0,
      where: { region: 'us' },
    },
    {
      label: `${most} of one busy value, with a filter`,
      queue: `one-${most}`,
      busyValues: 1,
      waitingOfEach: most,
      where: { region: 'us' },
    },
  ];
}

async function prepare(queue: Queue, { queue: name, busyValues, waitingOfEach }: Situation): Promise<void> {
  await queue.configure(name, { type: { kind: 'exclusive', key: 'value' } });
  const perValue = waitingOfEach + 1;
  await fill(queue, name, busyValues * perValue, (index) => ({
    payload: {},
    priority: index,
    metadata: { value: `busy-${Math.floor(index / perValue)}`, region: 'us' },
  }));
  for (let held = 0; held < busyValues; )
    held += (await queue.dequeue(name, { count: 500, leaseMs: 3_600_000 })).length;
  await fill(queue, name, freeValues, (index) => ({
    payload: {},
    priority: 1_000_000_000 + index,
    metadata: { value: `free-${index}`, region: index % 2 === 0 ? 'us' : 'eu' },
  }));
}

async function dequeueMs(queue: Queue, { queue: name, where }: Situation): Promise<number> {
  const startedAt = performance.now();
  const messages = await queue.dequeue(name, { count: 10, where });
  const tookMs = performance.now() - startedAt;
  if (messages.length !== 10) throw new Error(`${name}: expected 10 messages, got ${messages.length}`);
  await queue.release(name, messages);
  return tookMs;
}

async function run(context: ExperimentContext): Promise<Report> {
  const { quick, tell } = context;
  const store = storeOf(context);
  return withQueue(
    { store, durability: durabilityOfTimes(store) },
    async ({ queue, maintain, durability }) => {
      const all = situations(quick, store);
      for (const name of new Set(all.map((situation) => situation.queue))) {
        const situation = all.find((candidate) => candidate.queue === name)!;
        tell(`preparing: ${situation.label}`);
        await prepare(queue, situation);
      }
      await maintain('analyze');
      const times = new Map<Situation, number[]>(all.map((situation) => [situation, []]));
      for (let round = 0; round < (quick ? 100 : 300); round += 1) {
        for (const situation of all) times.get(situation)!.push(await dequeueMs(queue, situation));
      }
      const figures: Record<string, Figure> = {};
      const rows: Figure[][] = [];
      const misses: string[] = [];
      for (const situation of all) {
        const sample = times.get(situation)!;
        const baseline = all.find(
          ({ busyValues, where }) =>
            busyValues === 0 && Object.keys(where).length === Object.keys(situation.where).length,
        )!;
        const ratio = median(sample) / median(times.get(baseline)!);
        rows.push([situation.label, median(sample), percentile(sample, 0.99), ratio]);
        figures[`${situation.label}: ms`] = median(sample);
        if (ratio > factor) misses.push(`${situation.label} takes ${ratio.toFixed(2)} x`);
      }
      return {
        tables: [{ columns: ['in front', 'median ms', 'p99 ms', 'x none blocked'], rows }],
        figures,
        reference: {
          'to reach': `within ${factor} x of none blocked`,
          'prototypes, dequeue and complete one at a time with 100,000 blocked and with none':
            'Redis 32,000 and 27,000/s; Postgres 2,300 and 2,300/s',
        },
        durability,
        holds: misses.length === 0,
        verdict:
          misses.length === 0
            ? `every dequeue of 10 takes at most ${factor} x the time of none blocked`
            : misses.join('; '),
      };
    },
  );
}

export const exclusive: Experiment = {
  name: 'exclusive',
  shows: 'dequeue time against blocked messages in front, with a filter, with 1,001 busy values',
  run,
};
