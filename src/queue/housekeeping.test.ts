/** The pace of housekeeping: at once while there is work, in time for what comes due, and on after a failure. */
import { afterEach, expect, test, vi } from 'vitest';
import { silentLog } from '../log.js';
import { Housekeeping } from './housekeeping.js';

afterEach(() => {
  vi.useRealTimers();
});

test('steps follow at once while there is work, then at what comes due next, and after a failure too', async () => {
  vi.useFakeTimers();
  const answers = [
    { moved: 5, nextDueMs: undefined },
    { moved: 5, nextDueMs: undefined },
    { moved: 0, nextDueMs: 300 },
    undefined,
    { moved: 0, nextDueMs: undefined },
  ];
  let steps = 0;
  const housekeeping = new Housekeeping({
    step: async () => {
      const answer = answers[steps];
      steps += 1;
      if (!answer) throw new Error('away');
      return answer;
    },
    log: silentLog,
    pollMs: 900,
    onMoved: () => {},
    onFailure: () => {},
  });
  housekeeping.start();
  await vi.advanceTimersByTimeAsync(10);
  expect(steps).toBe(3);
  await vi.advanceTimersByTimeAsync(300);
  expect(steps).toBe(4);
  await vi.advanceTimersByTimeAsync(900);
  expect(steps).toBe(5);
  housekeeping.dueIn(50);
  await vi.advanceTimersByTimeAsync(60);
  expect(steps).toBe(6);
  await housekeeping.stop();
  await vi.advanceTimersByTimeAsync(5_000);
  expect(steps).toBe(6);
});
