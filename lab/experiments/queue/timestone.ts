/**
 * The Timestone mix, open loop: enqueues and dequeue calls on a fixed schedule, each call its own, 96 % of the dequeues
 * empty, latency counted from the scheduled time; then a burst of enqueues. When the full rate is too much for the
 * machine, the mix is scaled down until the limits hold, and that share is what is reported.
 */
import type { Queue } from '../../../src/queue/index.js';
import type { Experiment, ExperimentContext, Figure, Report } from '../../experiment.js';
import { withLabQueue } from './queue-on-postgres.js';
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
  const dequeue = async (): Promise<void> => {
    const messages = await queue.dequeue(name);
    if (messages.length === 0) empty += 1;
    else await queue.complete(name, messages);
  };
  const [enqueues, dequeues] = await Promise.all([
    openLoop({ perSecond: full.enqueues * share, seconds, giveUp }, enqueue),
    openLoop({ perSecond: full.dequeues * share, seconds, giveUp }, dequeue),
  ]);
  const burst = await openLoop({ perSecond: full.burst * share, seconds: 1, giveUp }, enqueue);
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

async function run({ quick, tell }: ExperimentContext): Promise<Report> {
  return withLabQueue({ poolMax: 8 }, async ({ queue, durability }) => {
    await runMix(queue, { share: 0.01, seconds: 2 });
    const rows: Figure[][] = [];
    const figures: Record<string, Figure> = {};
    let kept = 0;
    for (let share = 1; share > 1 / 64; share /= 2) {
      const mix = await runMix(queue, { share, seconds: quick ? 4 : 20 });
      tell(
        `${share * 100} %: dequeue p99 ${shown(mix.dequeue)} ms, enqueue ${shown(mix.enqueue)}, burst ${shown(mix.burst)}`,
      );
      rows.push([
        `${share * 100} %`,
        full.dequeues * share,
        full.enqueues * share,
        percentile(mix.dequeue, 0.5),
        p99(mix.dequeue),
        p99(mix.enqueue),
        p99(mix.burst),
        mix.empty,
      ]);
      figures[`dequeue p99 ms at ${share * 100} %`] = p99(mix.dequeue);
      if (!within(mix)) continue;
      kept = share;
      break;
    }
    figures['share within the limits'] = kept;
    const verdict =
      kept === 1
        ? 'the full mix stays within its limits'
        : kept === 0
          ? 'not within the limits at any share that was tried'
          : `within the limits at ${kept * 100} % of the mix: ${full.dequeues * kept} dequeues/s and ${full.enqueues * kept} enqueues/s, driver and server on this machine`;
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
      holds: kept === 1,
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
