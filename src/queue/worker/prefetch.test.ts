import { expect, test } from 'vitest';
import type { Clock } from '../../clock.js';
import { noLane, SlotLedger } from '../lanes.js';
import type { LeasedMessage } from '../message.js';
import { Held } from './held.js';
import { prefetchTarget, Rate, WaitingRoom } from './prefetch.js';

function manualClock(): Clock & { ms: number } {
  return {
    ms: 0,
    now: () => 0,
    storeNow: () => undefined,
    monotonicMs(): number {
      return this.ms;
    },
  };
}

const held = (id: string, lane: number, priority = 0, queue = 'q'): Held =>
  new Held({ message: { id, queue, priority } as LeasedMessage, lane, leasedAtMs: 0, fetchedAtMs: 0 });

test('at most the work of 100 ms at the present rate is held, and little is not worth it', () => {
  const clock = manualClock();
  const rate = new Rate(clock);
  const options = { holdMs: 100, messagesMax: 1_000 };
  expect(prefetchTarget(rate, options)).toBe(0);
  for (let window = 0; window < 20; window += 1) {
    rate.add(250);
    clock.ms += 50;
  }
  expect(prefetchTarget(rate, options)).toBeGreaterThan(490);
  expect(prefetchTarget(rate, options)).toBeLessThanOrEqual(500);
  clock.ms += 2_000;
  expect(prefetchTarget(rate, options)).toBe(0);
});

test('a rate is known 10 ms after work has begun, and neither an idle time before nor a slow first message falsifies it', () => {
  const clock = manualClock();
  const rate = new Rate(clock);
  const end = (count: number, afterMs: number) => {
    clock.ms += afterMs;
    rate.add(count);
    return rate.perMs();
  };
  clock.ms += 60_000;
  expect(rate.perMs()).toBe(0);
  rate.begin();
  expect(end(100, 5)).toBe(0);
  expect(end(100, 5)).toBe(20);
  // The next window is longer, and the one before counts for half.
  expect(end(500, 10)).toBe(20);
  expect(end(500, 10)).toBe(35);
  clock.ms += 60_000;
  expect(rate.perMs()).toBe(0);
  rate.begin();
  clock.ms += 300;
  expect(rate.perMs()).toBe(0);
  expect(end(1, 5)).toBeCloseTo(1 / 305);
  // Work that goes on is no beginning.
  rate.begin();
  expect(rate.perMs()).toBeCloseTo(1 / 305);
});

test('a waiting message of a lane with a free floor starts first, then the most urgent of a queue', () => {
  const room = new WaitingRoom(1);
  const ledger = new SlotLedger(3, [1]);
  room.add(held('later', noLane, 9));
  room.add(held('lane', 0, 99));
  room.add(held('lane too', 0, 5));
  const order: string[] = [];
  for (let lane = room.nextLane(ledger); lane !== undefined; lane = room.nextLane(ledger)) {
    ledger.take(lane);
    order.push(...room.take(lane, 1).map(({ message }) => message.id));
  }
  expect(order).toEqual(['lane', 'lane too', 'later']);
});

test('a waiting message never takes the place of a floor', () => {
  const room = new WaitingRoom(1);
  const ledger = new SlotLedger(2, [1]);
  room.add(held('a', noLane));
  room.add(held('b', noLane));
  expect(room.nextLane(ledger)).toBe(noLane);
  ledger.take(noLane);
  room.take(noLane, 1);
  expect(room.nextLane(ledger)).toBeUndefined();
});

test('what leaves the room is gone from it, whatever its place', () => {
  const room = new WaitingRoom(1);
  for (let index = 0; index < 2_500; index += 1) room.add(held(`m${index}`, index % 2 === 0 ? noLane : 0));
  expect(room.take(noLane, 1_200)).toHaveLength(1_200);
  expect(room.takeIf(({ lane }) => lane === 0)).toHaveLength(1_250);
  expect(room.size).toBe(50);
  expect(room.take(noLane, 100).map(({ message }) => message.id)[0]).toBe('m2400');
  expect(room.size).toBe(0);
});
