/** Store suite: dequeues that wait, wake-ups, results. Times here are real; bounds are the promises. */
import { expect, test } from 'vitest';
import { bind, type QueueHarness } from './queue-suite-harness.js';

export function waitingTests(harness: () => QueueHarness): void {
  const waiting = (options: { where?: Record<string, string>; waitMs?: number } = {}) => {
    const { queue } = bind(harness());
    return queue.dequeue('q', { waitMs: 10_000, ...options }).then(([message]) => message?.id);
  };
  const soon = () => new Promise((resolve) => setTimeout(resolve, 20));

  test('a dequeue that waits returns nothing when its time has passed', async () => {
    expect(await waiting({ waitMs: 50 })).toBeUndefined();
  });

  test('a dequeue that waits is woken by an enqueue, each by one', async () => {
    const { enqueue } = bind(harness());
    const waiters = [waiting(), waiting(), waiting()];
    await soon();
    await enqueue(['a', 'b', 'c']);
    expect((await Promise.all(waiters)).sort()).toEqual(['a', 'b', 'c']);
  });

  test('a wake-up is not consumed by a dequeue that waits for something else', async () => {
    const { enqueue } = bind(harness());
    const other = waiting({ where: { kind: 'other' }, waitMs: 1_500 });
    const wanted = waiting({ where: { kind: 'wanted' } });
    await soon();
    await enqueue(['m'], { metadata: { kind: 'wanted' } });
    expect(await wanted).toBe('m');
    expect(await other).toBeUndefined();
  });

  test('a dequeue that waits is woken by a release', async () => {
    const { queue, enqueue, takeOne } = bind(harness());
    await enqueue(['m']);
    const lease = await takeOne();
    const waiter = waiting();
    await soon();
    await queue.release('q', [lease]);
    expect(await waiter).toBe('m');
  });

  test('a dequeue that waits is woken when a message comes due and when a lease runs out', async () => {
    const { clock, enqueue } = bind(harness());
    await enqueue(['m'], { delayMs: 60_000 });
    const first = waiting();
    await soon();
    clock.advance(60_000);
    expect(await first).toBe('m');
    const second = waiting();
    await soon();
    clock.advance(30_000);
    expect(await second).toBe('m');
  });

  test('a dequeue that waits is woken when an exclusivity value is freed', async () => {
    const { queue, enqueue, takeOne } = bind(harness());
    await queue.configure('q', { type: { kind: 'exclusive', key: 'user' } });
    await enqueue(['a', 'b'], { metadata: { user: 'u' } });
    const lease = await takeOne();
    const waiter = waiting();
    await soon();
    await queue.complete('q', [lease]);
    expect(await waiter).toBe('b');
  });

  test('a dequeue that waits is let go by stop and by its signal', async () => {
    const { queue } = bind(harness());
    const controller = new AbortController();
    const aborted = queue.dequeue('q', { waitMs: 60_000, signal: controller.signal });
    const stopped = queue.dequeue('q', { waitMs: 60_000 });
    await soon();
    controller.abort();
    expect(await aborted).toEqual([]);
    await queue.stop();
    expect(await stopped).toEqual([]);
  });

  test('the result of a message can be waited for', async () => {
    const { queue, enqueue, takeOne } = bind(harness());
    await enqueue(['m']);
    expect(await queue.result('q', 'm', { waitMs: 20 })).toBeUndefined();
    expect(await queue.result('q', 'unknown')).toBeUndefined();
    const result = queue.result('q', 'm');
    await soon();
    await queue.complete('q', [{ ...(await takeOne()), result: 42 }]);
    expect(await result).toMatchObject({ state: 'completed', result: 42 });
  });
}
