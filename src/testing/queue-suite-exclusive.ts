/** Store suite: at most one running message of each exclusivity value, and nobody hidden behind a busy one. */
import { expect, test } from 'vitest';
import { bind, idsOf, type QueueHarness } from './queue-suite-harness.js';

export function exclusiveTests(harness: () => QueueHarness): void {
  const exclusive = async () => {
    const bound = bind(harness());
    await bound.queue.configure('q', { type: { kind: 'exclusive', key: 'user' } });
    const put = (id: string, user: string, priority: number) =>
      bound.enqueue([id], { metadata: { user }, priority });
    return { ...bound, put };
  };

  test('a message without the key is refused by name, and hurts no other', async () => {
    const { queue, depth } = await exclusive();
    const outcomes = await queue.enqueue('q', [
      { id: 'a', payload: 1, metadata: { user: 'u' } },
      { id: 'b', payload: 1 },
      { id: 'c', payload: 1, metadata: { other: 'u' } },
    ]);
    expect(outcomes).toMatchObject([
      { kind: 'enqueued' },
      { kind: 'refused', error: { field: 'metadata.user' } },
      { kind: 'refused' },
    ]);
    expect(await depth()).toEqual([0, 1, 0]);
  });

  test('a message without the key is refused, though another of its batch has its id', async () => {
    const { queue } = await exclusive();
    const batch = [
      { id: 'a', payload: 1 },
      { id: 'a', payload: 1, metadata: { user: 'ann' } },
    ];
    expect(await queue.enqueue('q', batch)).toMatchObject([
      { kind: 'refused', error: { field: 'metadata.user' } },
      { kind: 'enqueued', created: true },
    ]);
    expect(await queue.enqueue('q', batch)).toMatchObject([{ created: false }, { created: false }]);
  });

  test('Q31: a value is handed out again only when its running message has ended', async () => {
    const { queue, put, takeIds, takeOne } = await exclusive();
    await put('m1', 'u', 1);
    const m1 = await takeOne();
    await put('m2', 'u', 10);
    await put('m3', 'u', 5);
    expect(await takeIds({ count: 5 })).toEqual([]);
    await queue.extend('q', [m1]);
    expect(await takeIds({ count: 5 })).toEqual([]);
    await queue.complete('q', [m1]);
    const m3 = await takeOne({ count: 5 });
    expect(m3.id).toBe('m3');
    expect(await takeIds({ count: 5 })).toEqual([]);
    await queue.complete('q', [m3]);
    expect(await takeIds({ count: 5 })).toEqual(['m2']);
  });

  test('Q32: a message that waits for its retry comes before the others of its value', async () => {
    const { queue, put, takeIds, take, takeOne } = await exclusive();
    await put('m1', 'u', 1);
    await put('m2', 'u', 2);
    await put('m3', 'v', 3);
    await queue.fail('q', [{ ...(await takeOne()), error: 'x', retryDelayMs: 0 }]);
    const taken = await take({ count: 10 });
    expect(taken.map(({ id }) => id)).toEqual(['m1', 'm3']);
    expect(await takeIds({ count: 10 })).toEqual([]);
    await queue.complete('q', [taken[0]!]);
    expect(await takeIds({ count: 10 })).toEqual(['m2']);
  });

  test('a value is freed by complete, fail, release, cancel and expiry alike', async () => {
    const { queue, clock, put, takeOne, takeIds } = await exclusive();
    const ways: Record<string, (lease: Awaited<ReturnType<typeof takeOne>>) => Promise<unknown>> = {
      complete: (lease) => queue.complete('q', [lease]),
      fail: (lease) => queue.fail('q', [{ ...lease, error: 'x' }]),
      retry: (lease) => queue.fail('q', [{ ...lease, error: 'x', retryDelayMs: 3_600_000 }]),
      release: (lease) => queue.release('q', [{ ...lease, delayMs: 3_600_000 }]),
      cancel: (lease) => queue.cancel('q', [lease.id]),
      expiry: async () => clock.advance(30_000),
    };
    for (const [way, end] of Object.entries(ways)) {
      const last = way === 'expiry' ? { attemptsMax: 1 } : {};
      await queue.enqueue('q', [
        { id: `${way}1`, payload: 1, metadata: { user: way }, priority: 1, ...last },
      ]);
      await put(`${way}2`, way, 2);
      const lease = await takeOne();
      expect(lease.id).toBe(`${way}1`);
      expect(await takeIds()).toEqual([]);
      await end(lease);
      const next = await takeOne({ count: 9, leaseMs: 86_400_000 });
      expect(next.id).toBe(`${way}2`);
    }
  });

  test('a waiting head that is canceled, changed or purged leaves its place to the next', async () => {
    const { queue, put, takeIds } = await exclusive();
    await put('a1', 'a', 1);
    await put('a2', 'a', 2);
    await put('b1', 'b', 3);
    await put('b2', 'b', 4);
    await queue.cancel('q', ['a1']);
    await queue.change('q', [{ id: 'b1', priority: 9 }]);
    expect(await takeIds({ count: 9 })).toEqual(['a2', 'b2']);
    await queue.purge('q', 'pending');
    await put('c1', 'c', 1);
    expect(await takeIds({ count: 9 })).toEqual(['c1']);
  });

  test('a message that is requeued, or whose priority changes, stands where it belongs among the values', async () => {
    const { queue, put, takeIds, takeOne } = await exclusive();
    await put('a', 'a', 1);
    await queue.fail('q', [{ ...(await takeOne()), error: 'x' }]);
    await put('b', 'b', 2);
    await put('c', 'c', 3);
    await put('d', 'd', 4);
    await put('e', 'e', 5);
    expect(await takeIds()).toEqual(['b']);
    await queue.requeue('q', ['a']);
    await queue.change('q', [{ id: 'e', priority: 0 }]);
    expect(await takeIds({ count: 2 })).toEqual(['e', 'a']);
    expect(await takeIds({ count: 9 })).toEqual(['c', 'd']);
  });

  test('oldest leaves out what waits behind a running message of its value', async () => {
    const { queue, clock, put, takeOne } = await exclusive();
    await put('a1', 'a', 1);
    await put('a2', 'a', 2);
    const lease = await takeOne();
    clock.advance(1_000);
    expect(await queue.oldest('q')).toBeUndefined();
    await put('b', 'b', 3);
    expect(await queue.oldest('q')).toEqual({ id: 'b', ageMs: 0 });
    await queue.complete('q', [lease]);
    expect(await queue.oldest('q')).toEqual({ id: 'a2', ageMs: 1_000 });
  });

  test('of a value that comes due while another of it runs, the best is next', async () => {
    const { queue, clock, enqueue, takeOne, takeIds } = await exclusive();
    await enqueue(['later'], { metadata: { user: 'u' }, priority: 1, delayMs: 1_000 });
    await enqueue(['now'], { metadata: { user: 'u' }, priority: 2 });
    await enqueue(['after'], { metadata: { user: 'u' }, priority: 3 });
    const now = await takeOne();
    clock.advance(1_000);
    expect(await takeIds()).toEqual([]);
    await queue.complete('q', [now]);
    expect(await takeIds({ count: 9 })).toEqual(['later']);
  });

  test('Q34: busy values hide no free one, however many there are', async () => {
    const { enqueue, take, takeIds, put } = await exclusive();
    for (let step = 0; step < 1_001; step += 1) {
      const metadata = { user: `busy${step}` };
      if (step % 500 === 0) await takeAll();
      await enqueue([`run${step}`], { metadata, priority: 1 });
      await enqueue([`wait${step}`], { metadata, priority: 2 });
    }
    await takeAll();
    await put('free', 'free', 1_000);
    expect(await takeIds({ count: 9 })).toEqual(['free']);

    async function takeAll() {
      const taken = await take({ count: 1_000 });
      expect(taken.every(({ id }) => id.startsWith('run'))).toBe(true);
    }
  });

  test('Q36: no value is special', async () => {
    const { queue, take } = await exclusive();
    const values = ['*', ':', '{', '}', '{x}', '%', 'a b', 'a\nb', '', '\\', '"', "'", '1:kv', '😀'];
    const messages = values.flatMap((user, index) =>
      [0, 1].map((n) => ({ id: `${index}-${n}`, payload: 1, metadata: { user } })),
    );
    await queue.enqueue('q', messages);
    const long = await queue.enqueue('q', [
      { id: 'long', payload: 1, metadata: { user: 'x'.repeat(10_000) } },
    ]);
    expect(long).toMatchObject([{ kind: 'refused', error: { field: 'metadata.user' } }]);
    const first = await take({ count: 100 });
    expect(first.map(({ id }) => id).sort()).toEqual(values.map((_, index) => `${index}-0`).sort());
    expect(await take({ count: 100 })).toEqual([]);
    await queue.complete('q', first);
    expect((await take({ count: 100 })).map(({ id }) => id).sort()).toEqual(
      values.map((_, index) => `${index}-1`).sort(),
    );
  });

  test('a free value gives its best message that matches the filter', async () => {
    const { queue, takeIds, takeOne } = await exclusive();
    const put = (id: string, user: string, kind: string, priority: number) =>
      queue.enqueue('q', [{ id, payload: 1, metadata: { user, kind }, priority }]);
    await put('u-a', 'u', 'a', 1);
    await put('u-b', 'u', 'b', 2);
    await put('v-b', 'v', 'b', 3);
    expect(await takeIds({ where: { kind: 'b' }, count: 9 })).toEqual(['u-b', 'v-b']);
    expect(await takeIds({ count: 9 })).toEqual([]);
    await put('w-b', 'w', 'b', 4);
    const w = await takeOne({ where: { kind: 'b' } });
    expect(w.id).toBe('w-b');
    await put('w-b2', 'w', 'b', 5);
    expect(await takeIds({ where: { kind: 'b' }, count: 9 })).toEqual([]);
  });

  test('a filter finds the best match also behind a hundred messages of its value', async () => {
    const { queue, takeIds } = await exclusive();
    const message = (id: string, user: string, priority: number, kind: string) => ({
      id,
      payload: 1,
      priority,
      metadata: { user, kind },
    });
    await queue.enqueue('q', [
      ...Array.from({ length: 101 }, (_, index) => message(`a${index}`, 'a', 1, 'other')),
      message('deep', 'a', 2, 'wanted'),
      message('other', 'b', 3, 'wanted'),
    ]);
    expect(await takeIds({ where: { kind: 'wanted' } })).toEqual(['deep']);
    expect(await takeIds({ where: { kind: 'wanted' } })).toEqual(['other']);
  });

  test('at most one message of a value runs, whatever many workers do at once', async () => {
    const { queue, enqueue, take } = await exclusive();
    for (let step = 0; step < 100; step += 1)
      await enqueue([`m${step}`], { metadata: { user: `u${step % 7}` } });
    const running = new Map<string, string>();
    let completed = 0;
    const worker = async () => {
      while (completed < 100) {
        for (const message of await take({ count: 2 })) {
          const user = message.metadata['user']!;
          expect(running.get(user), `two of ${user}`).toBeUndefined();
          running.set(user, message.id);
          await new Promise((resolve) => setImmediate(resolve));
          running.delete(user);
          expect(await queue.complete('q', [message])).toMatchObject([{ kind: 'done' }]);
          completed += 1;
        }
        await new Promise((resolve) => setImmediate(resolve));
      }
    };
    await Promise.all(idsOf(8).map(worker));
    expect(completed).toBe(100);
  });

  test('the type cannot change while the queue holds messages', async () => {
    const { queue, put } = await exclusive();
    await put('m', 'u', 1);
    await expect(queue.configure('q', { type: { kind: 'simple' } })).rejects.toMatchObject({
      code: 'configuration-fixed',
    });
    await queue.configure('q', { type: { kind: 'exclusive', key: 'user' }, leaseMs: 1 });
    await queue.cancel('q', ['m']);
    expect((await queue.configure('q', { type: { kind: 'simple' } })).type).toEqual({ kind: 'simple' });
  });
}
