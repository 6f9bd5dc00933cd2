/**
 * The Timestone mix, open loop: enqueues and dequeue calls on a fixed schedule, each call its own, 96 % of the dequeues
 * empty, latency counted from the scheduled time; then a burst of enqueues. The mix is scaled up or down in search of the
 * highest rate that keeps the limits.
 */
import type { Queue } from '../../../src/queue/index.js';
import type { Experiment, ExperimentContext, Figure, Report } from '../../experiment.js';
import { storeOf, withQueue } from './queue-under-test.js';
import { percentile } from '../../statistics.js';

const full = { enqueues: 1_200, dequeues: 30_000, burst: 5_000 };
const limits = { enqueue: 25, dequeue: 45, burst: 85 };
/** When the calls of so many seconds are without an answer the limits are long passed: the run is given up. */
const openSecondsMax = 0.2;

interface Mix {
  readonly share: number;
  readonly seconds: number;
}

interface Latencies {
  readonly enqueue: readonly number[];
  readonly dequeue: readonly number[];
  readonly burst: readonly number[];
  readonly empty: number;
  readonly givenUp: boolean;
}

/** Sends `perSecond` calls a second for `seconds` on a fixed schedule; answers each call's latency from its time. */
async function openLoop(
  request: { readonly perSecond: number; readonly seconds: number; readonly giveUp: AbortController },
  call: (index: number) => Promise<void>,
): Promise<{ readonly latencies: number[]; readonly givenUp: boolean }> {
  const count = Math.floor(request.perSecond * request.seconds);
  const startedAt = performance.now();
  const openMax = Math.max(100, request.perSecond * openSecondsMax);
  const latencies: number[] = [];
  const calls: Promise<void>[] = [];
  let open = 0;
  let sent = 0;
  while (sent < count && open < openMax && !request.giveUp.signal.aborted) {
    const dueBy = ((performance.now() - startedAt) / 1_000) * request.perSecond;
    for (; sent < Math.min(count, dueBy) && open < openMax; sent += 1) {
      const dueAt = startedAt + (sent / request.perSecond) * 1_000;
      open += 1;
      calls.push(
        call(sent).then(() => {
          open -= 1;
          latencies.push(performance.now() - dueAt);
          return undefined;
        }),
      );
    }
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  if (sent < count) request.giveUp.abort();
  await Promise.all(calls);
  return { latencies, givenUp: sent < count };
}

async function runMix(queue: Queue, { share, seconds }: Mix): Promise<Latencies> {
  const name = `mix-${share}`;
  const giveUp = new AbortController();
  let empty = 0;
  const enqueue = async (): Promise<void> => void (await queue.enqueue(name, [{ payload: {} }]));
  const completions: Promise<unknown>[] = [];
  const dequeue = async (): Promise<void> => {
    const messages = await queue.dequeue(name);
    if (messages.length === 0) empty += 1;
    else completions.push(queue.complete(name, messages));
  };
  const [enqueues, dequeues] = await Promise.all([
    openLoop({ perSecond: full.enqueues * share, seconds, giveUp }, enqueue),
    openLoop({ perSecond: full.dequeues * share, seconds, giveUp }, dequeue),
  ]);
  const burst = await openLoop({ perSecond: full.burst * share, seconds: 1, giveUp }, enqueue);
  await Promise.all(completions);
  return {
    enqueue: enqueues.latencies,
    dequeue: dequeues.latencies,
    burst: burst.latencies,
    empty: empty / dequeues.latencies.length,
    givenUp: enqueues.givenUp || dequeues.givenUp || burst.givenUp,
  };
}

/** Null when there was no such call, because the run had been given up. */
const p99 = (values: readonly number[]): number | null =>
  values.length === 0 ? null : percentile(values, 0.99);

const shown = (values: readonly number[]): string => p99(values)?.toFixed(1) ?? '-';

const within = (mix: Latencies): boolean =>
  !mix.givenUp &&
  (['enqueue', 'dequeue', 'burst'] as const).every(
    (kind) => (p99(mix[kind]) ?? Number.POSITIVE_INFINITY) <= limits[kind],
  );

interface Tried {
  readonly share: number;
  readonly mix: Latencies;
}

/** Halves until the limits hold, or adds half until they do not; then closes in between the two. */
async function search(
  stepsMax: number,
  measure: (share: number) => Promise<Latencies>,
): Promise<{ readonly tried: readonly Tried[]; readonly held: number }> {
  const tried: Tried[] = [];
  let held = 0;
  let failed = Number.POSITIVE_INFINITY;
  let share = 1;
  while (tried.length < stepsMax && share >= 1 / 64 && failed > held * 1.15) {
    const mix = await measure(share);
    tried.push({ share, mix });
    if (within(mix)) held = share;
    else failed = share;
    if (failed === Number.POSITIVE_INFINITY) share *= 1.5;
    else share = held === 0 ? share / 2 : Math.sqrt(held * failed);
    share = Math.round(share * 100) / 100;
  }
  return { tried, held };
}

const percent = (share: number): string => `${Math.round(share * 100)} %`;

async function run(context: ExperimentContext): Promise<Report> {
  const { quick, tell } = context;
  return withQueue({ store: storeOf(context), poolMax: 8 }, async ({ queue, durability }) => {
    await runMix(queue, { share: 0.01, seconds: 2 });
    const { tried, held: kept } = await search(quick ? 8 : 12, async (share) => {
      const mix = await runMix(queue, { share, seconds: quick ? 4 : 30 });
      tell(
        `${percent(share)}: dequeue p99 ${shown(mix.dequeue)} ms, enqueue ${shown(mix.enqueue)}, burst ${shown(mix.burst)}${mix.givenUp ? ', given up' : ''}`,
      );
      return mix;
    });
    const rows = tried.map(({ share, mix }): Figure[] => [
      percent(share),
      Math.round(full.dequeues * share),
      Math.round(full.enqueues * share),
      percentile(mix.dequeue, 0.5),
      p99(mix.dequeue),
      p99(mix.enqueue),
      p99(mix.burst),
      mix.empty,
      within(mix),
    ]);
    const figures: Record<string, Figure> = Object.fromEntries(
      tried.map(({ share, mix }) => [`dequeue p99 ms at ${percent(share)}`, p99(mix.dequeue)]),
    );
    figures['share within the limits'] = kept;
    const rate = `${Math.round(full.dequeues * kept).toLocaleString('en')} dequeues/s and ${Math.round(full.enqueues * kept).toLocaleString('en')} enqueues/s`;
    const verdict =
      kept === 0
        ? 'not within the limits at any share that was tried'
        : `within the limits up to ${percent(kept)} of the mix: ${rate}, driver and server on this machine`;
    return {
      tables: [
        {
          columns: [
            'mix',
            'dequeues/s',
            'enqueues/s',
            'dequeue p50',
            'p99',
            'enqueue p99',
            'burst p99',
            'empty',
            'within',
          ],
          rows,
        },
      ],
      figures,
      reference: {
        'Timestone (a Redis cluster of its own)':
          '30,000 dequeues/s p99 45 ms; 1,200 enqueues/s p99 25 ms; bursts of 5,000/s p99 85 ms',
      },
      durability,
      holds: kept >= 1,
      verdict,
    };
  });
}

export const timestone: Experiment = {
  name: 'timestone',
  shows:
    'the Timestone mix, open loop: 1,200 enqueues/s, 30,000 dequeue calls/s of which 96 % are empty, bursts',
  run,
};
