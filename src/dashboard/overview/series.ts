/** Turns samples of ever-growing totals into what a chart draws: seconds on one side, rates or values on the other. */
import type { QueueTotals, RunningOverview } from '../api-types.js';

export type Pick = (sample: RunningOverview) => number;

export function timesOf(samples: readonly RunningOverview[]): number[] {
  return samples.map((sample) => sample.now / 1_000);
}

/** Per second, between each sample and the one before it; nothing for the first. */
export function ratesOf(samples: readonly RunningOverview[], total: Pick): (number | null)[] {
  return samples.map((sample, index) => {
    const before = samples[index - 1];
    return before === undefined ? null : rateBetween(before, sample, total);
  });
}

export function valuesOf(samples: readonly RunningOverview[], value: Pick): number[] {
  return samples.map(value);
}

/** Per second over the last `overSeconds`: what a figure shows, so that it does not flicker with every sample. */
export function recentRate(
  samples: readonly RunningOverview[],
  total: Pick,
  overSeconds = 5,
): number | undefined {
  const last = samples.at(-1);
  if (last === undefined) return undefined;
  const before = samples.find((sample) => sample.now >= last.now - overSeconds * 1_000 - 200);
  return before === undefined || before === last ? undefined : rateBetween(before, last, total);
}

/** The sum of one total over all queues. */
export function overQueues(pick: (queue: QueueTotals) => number): Pick {
  return (sample) => sample.queues.reduce((sum, queue) => sum + pick(queue), 0);
}

/** The age of the message that has waited longest, whatever queue it is in. */
export const oldestPendingSeconds: Pick = (sample) =>
  sample.queues.reduce((oldest, queue) => Math.max(oldest, queue.lagSeconds), 0);

function rateBetween(before: RunningOverview, after: RunningOverview, total: Pick): number {
  const seconds = (after.now - before.now) / 1_000;
  return seconds <= 0 ? 0 : Math.max(0, (total(after) - total(before)) / seconds);
}
