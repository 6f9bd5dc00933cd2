/** Store suite: the order of dequeue, and messages that come due. */
import { expect, test } from 'vitest';
import { bind, idsOf, type QueueHarness, seededRandom, shuffled, startsAt } from './queue-suite-harness.js';

export function orderTests(harness: () => QueueHarness): void {
  test('lower priorities come first, equal ones in order of enqueue', async () => {
    const { enqueue, takeIds } = bind(harness());
    await enqueue(['b1', 'b2'], { priority: 5 });
    await enqueue(['a1'], { priority: 4 });
    await enqueue(['b3'], { priority: 5 });
    expect(await takeIds({ count: 10 })).toEqual(['a1', 'b1', 'b2', 'b3']);
  });

  test('Q27: a message whose lease runs out keeps its place in the order', async () => {
    const { clock, enqueue, takeIds } = bind(harness());
    await enqueue(['first'], { priority: 10 });
    expect(await takeIds()).toEqual(['first']);
    await enqueue(idsOf(1_000), { priority: 20 });
    clock.advance(30_000);
    expect(await takeIds()).toEqual(['first']);
  });

  test('a message that is released, or failed with a retry, keeps its place in the order', async () => {
    const { queue, enqueue, takeOne, takeIds } = bind(harness());
    await enqueue(['a', 'b', 'c']);
    await queue.release('q', [await takeOne()]);
    await queue.fail('q', [{ ...(await takeOne()), error: 'x', retryDelayMs: 0 }]);
    expect(await takeIds({ count: 3 })).toEqual(['a', 'b', 'c']);
  });

  test('Q28: the default priority is the time of enqueue', async () => {
    const { clock, enqueue, takeIds } = bind(harness());
    const priorities = [undefined, 5, undefined, 1_660_000_000_000, 1_760_003_600_000, -3];
    for (const [index, priority] of priorities.entries()) {
      await enqueue(['abcdef'[index]!], priority === undefined ? {} : { priority });
      clock.advance(1);
    }
    expect((await takeIds({ count: 10 })).join('')).toBe('fbdace');
  });

  test('Q29: the order holds over all safe integers, and each is kept unchanged', async () => {
    const { queue, enqueue, take } = bind(harness());
    const priorities = [
      -9_007_199_254_740_991, -1, 0, 2_097_151, 2_097_152, 713_920_000_000, 1_660_000_000_000,
      1_660_000_000_001, 9_007_199_254_740_991,
    ];
    for (const priority of shuffled(priorities, seededRandom(29)))
      await enqueue([`p${priority}`], { priority });
    for (const priority of priorities)
      expect((await queue.get('q', `p${priority}`))?.priority).toBe(priority);
    expect((await take({ count: 20 })).map(({ priority }) => priority)).toEqual(priorities);
  });

  test('a delayed message is invisible until it is due', async () => {
    const { clock, enqueue, takeIds, stateOf, depth } = bind(harness());
    await enqueue(['a'], { delayMs: 1_000 });
    expect(await stateOf('a')).toBe('invisible');
    expect(await depth()).toEqual([1, 0, 0]);
    clock.advance(999);
    expect(await takeIds()).toEqual([]);
    clock.advance(1);
    expect(await depth()).toEqual([0, 1, 0]);
    expect(await takeIds()).toEqual(['a']);
  });

  test('Q24: what counts is when a message is due, not how long its delay was', async () => {
    const { clock, enqueue, takeIds } = bind(harness());
    await enqueue(['m'], { delayMs: 3_600_000, priority: 1 });
    for (let round = 0; round < 5; round += 1) {
      clock.set(startsAt + 3_600_000 - 25_000 + round * 5_000);
      await enqueue(idsOf(200, `r${round}-`), { delayMs: 30_000 });
    }
    clock.set(startsAt + 3_600_000 - 1);
    expect(await takeIds()).toEqual([]);
    clock.advance(1);
    expect(await takeIds()).toEqual(['m']);
  });

  test('Q26: a message of a long delay is handed out once', async () => {
    const { clock, enqueue, take } = bind(harness());
    const sixHours = 6 * 3_600_000;
    await enqueue(['m'], { delayMs: sixHours });
    const deliveries: number[] = [];
    for (const at of [
      0,
      sixHours / 2,
      sixHours - 10_000,
      sixHours - 1,
      sixHours,
      sixHours + 10_000,
      sixHours + 20_000,
    ]) {
      clock.set(startsAt + at);
      const taken = (await Promise.all([take(), take(), take()])).flat();
      deliveries.push(...taken.map(({ attempts }) => at + attempts));
    }
    expect(deliveries).toEqual([sixHours + 1]);
  });

  test('what is due a millisecond later is not moved along with what is due', async () => {
    const { clock, enqueue, take, takeIds, depth } = bind(harness());
    await enqueue(['now'], { delayMs: 1_000 });
    await enqueue(['later'], { delayMs: 1_001 });
    await enqueue(['run', 'longer'], { priority: 0 });
    await take({ leaseMs: 1_000 });
    await take({ leaseMs: 1_001 });
    clock.advance(1_000);
    expect(await depth()).toEqual([1, 2, 1]);
    expect(await takeIds({ count: 9 })).toEqual(['run', 'now']);
    clock.advance(1);
    expect(await takeIds({ count: 9 })).toEqual(['longer', 'later']);
  });

  test('more messages than one step moves come due in their order', async () => {
    const { clock, enqueue, takeIds } = bind(harness());
    await enqueue(idsOf(1_500), { delayMs: 1_000 });
    clock.advance(1_000);
    expect(await takeIds({ count: 3 })).toEqual(['m0', 'm1', 'm2']);
  });

  test('a rate limit bounds what is handed out in any window', async () => {
    const { queue, clock, enqueue, takeIds } = bind(harness());
    await queue.configure('q', { rateLimit: { count: 3, perMs: 1_000 } });
    await enqueue(idsOf(10));
    expect(await takeIds({ count: 2 })).toHaveLength(2);
    clock.advance(600);
    expect(await takeIds({ count: 5, requestId: 'r' })).toHaveLength(1);
    expect(await takeIds({ count: 5 })).toHaveLength(0);
    // A repeat is handed out no more than once.
    expect(await takeIds({ count: 5, requestId: 'r' })).toHaveLength(1);
    clock.advance(400);
    expect(await takeIds({ count: 5 })).toHaveLength(2);
    await queue.configure('q', { rateLimit: undefined });
    expect(await takeIds({ count: 9 })).toHaveLength(5);
  });
}
