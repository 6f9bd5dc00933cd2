import { expect, it } from 'vitest';
import type { RunningOverview } from '../api-types.js';
import { oldestPendingSeconds, overQueues, ratesOf, recentRate } from './series.js';

function sample(now: number, completedTotals: readonly number[], lagSeconds = 0): RunningOverview {
  const zero = {
    invisible: 0,
    pending: 0,
    running: 0,
    enqueuedTotal: 0,
    failedTotal: 0,
    errored: 0,
  };
  return {
    now,
    uptimeMs: now,
    demo: null,
    durability: '',
    queues: completedTotals.map((completedTotal, index) => ({
      ...zero,
      queue: `q${index}`,
      lagSeconds,
      completedTotal,
    })),
    feed: {
      postsTotal: 0,
      entriesWrittenTotal: 0,
      fanOutEntriesTotal: 0,
      homeReadsTotal: 0,
      homeCompleteTotal: 0,
      pulledAuthorsTotal: 0,
      candidatesTotal: 0,
      rebuildsTotal: 0,
      timelineBytes: 0,
      lagSeconds: { small: 0, big: 0 },
    },
    notify: {
      kinds: 0,
      acceptedTotal: 0,
      duplicatesTotal: 0,
      attempts: { sent: 0, refused: 0, notAccepted: 0, ambiguous: 0 },
      finished: { sent: 0, failed: 0, expired: 0, suppressed: 0, ambiguous: 0 },
      knowingDuplicatesTotal: 0,
      receiptsMatchedTotal: 0,
      receiptsUnknownTotal: 0,
      breakersOpen: 0,
    },
  };
}
const completed = overQueues((queue) => queue.completedTotal);

it('a rate is the growth of all queues by the seconds that really passed', () => {
  expect(ratesOf([sample(0, [0, 0]), sample(2_000, [10, 4]), sample(2_500, [10, 5])], completed)).toEqual([
    null,
    7,
    2,
  ]);
});

it('a total that went back gives no negative rate', () => {
  expect(ratesOf([sample(0, [100]), sample(1_000, [1])], completed)).toEqual([null, 0]);
});

it('a figure is the rate over the last five seconds', () => {
  const history = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map((second) =>
    sample(second * 1_000, [second < 5 ? 0 : (second - 5) * 8]),
  );
  expect(recentRate(history, completed)).toBe(8);
  expect(recentRate(history.slice(0, 1), completed)).toBeUndefined();
});

it('the oldest message is that of the queue with the largest lag', () => {
  expect(oldestPendingSeconds(sample(0, [0, 0], 3.5))).toBe(3.5);
  expect(oldestPendingSeconds(sample(0, []))).toBe(0);
});
