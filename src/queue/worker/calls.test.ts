import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { Clock } from '../../clock.js';
import { silentLog } from '../../log.js';
import { CallGate, ErrorLines } from './calls.js';

const clock: Clock = { now: () => Date.now(), monotonicMs: () => Date.now(), storeNow: () => undefined };

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function openGate(random: () => number, onReady = (): void => {}): CallGate {
  return new CallGate({
    operation: 'dequeue',
    callMsMax: 10_000,
    clock,
    random,
    errors: new ErrorLines({ log: silentLog, clock, worker: 'w' }),
    metrics: { add: () => {}, set: () => {}, observe: () => {} },
    onReady,
  });
}

const failing = (): Promise<never> => Promise.reject(new Error('away'));

async function pausesOf(random: () => number): Promise<number[]> {
  const pauses: number[] = [];
  const gate = openGate(random);
  for (let failure = 0; failure < 6; failure += 1) {
    await gate.run(failing);
    const startedAt = Date.now();
    while (!gate.mayCall()) await vi.advanceTimersByTimeAsync(1);
    pauses.push(Date.now() - startedAt);
  }
  return pauses;
}

test('pauses double up to a second, and are drawn from their upper half', async () => {
  expect(await pausesOf(() => 1)).toEqual([100, 200, 400, 800, 1_000, 1_000]);
  expect(await pausesOf(() => 0)).toEqual([50, 100, 200, 400, 500, 500]);
});

test('after a failure calls go one at a time until one succeeds', async () => {
  const gate = openGate(() => 0);
  await gate.run(failing);
  await vi.advanceTimersByTimeAsync(60);
  let answer = (): void => {};
  const probe = gate.run(
    () =>
      new Promise<void>((resolve) => {
        answer = resolve;
      }),
  );
  expect(gate.mayCall()).toBe(false);
  answer();
  expect(await probe).toMatchObject({ ok: true });
  expect(gate.mayCall()).toBe(true);
});

test('several calls that fail together make one pause', async () => {
  const gate = openGate(() => 1);
  await Promise.all([gate.run(failing), gate.run(failing), gate.run(failing)]);
  await vi.advanceTimersByTimeAsync(101);
  expect(gate.mayCall()).toBe(true);
});

test('a call without an answer counts as failed, and too many of them stop the gate', async () => {
  let ready = 0;
  const gate = openGate(
    () => 0,
    () => void (ready += 1),
  );
  for (let call = 0; call < 8; call += 1) {
    const result = gate.run(() => new Promise(() => {}));
    await vi.advanceTimersByTimeAsync(10_000);
    expect(await result).toEqual({ ok: false });
    await vi.advanceTimersByTimeAsync(1_000);
  }
  expect(ready).toBe(8);
  expect(gate.mayCall()).toBe(false);
  gate.close();
  expect(vi.getTimerCount()).toBe(0);
});
