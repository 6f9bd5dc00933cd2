import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isHeadgateError } from '../errors.js';
import { checkFloors, laneOf, noLane, resolveLanes, SlotLedger } from './lanes.js';

const resolve = (lanes: Parameters<typeof resolveLanes>[0]['lanes'], slots = 10) =>
  resolveLanes({ lanes, slots, queues: ['q'] });

describe('lanes', () => {
  test('a floor may be a number or a share of the slots', () => {
    const lanes = resolve([
      { name: 'a', where: { k: 'a' }, floor: 2 },
      { name: 'b', where: { k: 'b' }, floor: { share: 0.25 } },
      { name: 'c', where: { k: 'c' }, floor: { share: 0.01 } },
    ]);
    expect(lanes.map((lane) => lane.floor)).toEqual([2, 2, 1]);
  });

  test.each([
    ['lanes[0].floor', { name: 'a', where: { k: 'a' }, floor: 1.5 }],
    ['lanes[0].floor', { name: 'a', where: { k: 'a' }, floor: { share: 1 } }],
    ['lanes[0].name', { name: '', where: { k: 'a' }, floor: 1 }],
    ['lanes[0].queue', { name: 'a', queue: 'other', floor: 1 }],
    ['lanes[0]', { name: 'a', floor: 1 }],
  ])('%s is refused by name when it makes no sense', (field, lane) => {
    expect(() => resolve([lane])).toThrow(expect.objectContaining({ code: 'invalid-input', field }));
  });

  test('floors that leave no shared slot are refused and the error names them', () => {
    const lanes = resolve([
      { name: 'otp', where: { k: 'otp' }, floor: 6 },
      { name: 'mail', where: { k: 'mail' }, floor: 4 },
    ]);
    let refused: unknown;
    try {
      checkFloors(lanes, 10);
    } catch (error) {
      refused = error;
    }
    expect(isHeadgateError(refused, 'invalid-input') && refused.message).toMatch(
      /lanes.*at most 9.*otp 6, mail 4/,
    );
    expect(() => checkFloors(lanes, 11)).not.toThrow();
  });

  test('a message belongs to the first lane whose queue and pairs it has', () => {
    const lanes = resolve([
      { name: 'both', where: { k: 'a', region: 'eu' }, floor: 1 },
      { name: 'k', where: { k: 'a' }, floor: 1 },
    ]);
    expect(laneOf(lanes, { queue: 'q', metadata: { k: 'a', region: 'eu' } })).toBe(0);
    expect(laneOf(lanes, { queue: 'q', metadata: { k: 'a' } })).toBe(1);
    expect(laneOf(lanes, { queue: 'q', metadata: { region: 'eu' } })).toBe(noLane);
  });
});

describe('the slot ledger', () => {
  test('a lane borrows shared slots and never loses its floor', () => {
    const ledger = new SlotLedger(4, [1]);
    for (let i = 0; i < 3; i += 1) ledger.take(noLane);
    expect(ledger.canTake(noLane)).toBe(false);
    expect(ledger.canTake(0)).toBe(true);
    ledger.give(noLane);
    ledger.take(0);
    ledger.take(0);
    expect(ledger.sharedFree()).toBe(0);
    expect(ledger.canTake(0)).toBe(false);
  });

  test('the end of a message above the floor frees a shared slot', () => {
    const ledger = new SlotLedger(2, [1]);
    ledger.take(0);
    ledger.take(0);
    expect(ledger.canTake(noLane)).toBe(false);
    ledger.give(0);
    expect(ledger.canTake(noLane)).toBe(true);
    expect(ledger.canTake(0)).toBe(true);
  });

  test('whatever comes and goes, no more run than there are slots and every floor stays reachable', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 8 }),
        fc.array(fc.integer({ min: 0, max: 4 }), { maxLength: 3 }),
        fc.array(fc.tuple(fc.boolean(), fc.integer({ min: -1, max: 2 })), { maxLength: 60 }),
        (shared, floors, steps) => {
          const slots = shared + floors.reduce((a, b) => a + b, 0);
          const ledger = new SlotLedger(slots, floors);
          const running = new Map<number, number>();
          for (const [take, asked] of steps) {
            const lane = asked < floors.length ? asked : noLane;
            const count = running.get(lane) ?? 0;
            if (take && ledger.canTake(lane)) {
              ledger.take(lane);
              running.set(lane, count + 1);
            } else if (!take && count > 0) {
              ledger.give(lane);
              running.set(lane, count - 1);
            }
            const total = [...running.values()].reduce((a, b) => a + b, 0);
            expect(total).toBeLessThanOrEqual(slots);
            floors.forEach((floor, index) => {
              expect((running.get(index) ?? 0) >= floor || ledger.canTake(index)).toBe(true);
            });
            expect(ledger.canTake(noLane)).toBe(ledger.sharedFree() > 0);
            const borrowed = floors.map((floor, index) => Math.max(0, (running.get(index) ?? 0) - floor));
            const used = borrowed.reduce((a, b) => a + b, running.get(noLane) ?? 0);
            expect(ledger.sharedFree()).toBe(shared - used);
          }
        },
      ),
    );
  });
});
