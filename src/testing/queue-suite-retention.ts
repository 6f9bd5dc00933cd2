/** Store suite: how long ids, messages and tokens are known, and what history tells. */
import { expect, test } from 'vitest';
import type { LeasedMessage, MessageEvent } from '../queue/index.js';
import { bind, idsOf, type QueueHarness, startsAt } from './queue-suite-harness.js';

const retention = (ms: number) => ({ retentionMs: { completed: ms, canceled: ms, errored: ms } });

export function retentionTests(harness: () => QueueHarness): void {
  test('Q56: an id is known for the retention time, then free', async () => {
    const { queue, clock, enqueue, takeOne, tidy } = bind(harness());
    await queue.configure('q', retention(10_000));
    await enqueue(['x']);
    await queue.complete('q', [await takeOne()]);
    clock.advance(5_000);
    await tidy();
    expect(await queue.enqueue('q', [{ id: 'x', payload: {} }])).toEqual([
      { kind: 'enqueued', id: 'x', created: false, state: 'completed' },
    ]);
    expect(await queue.enqueue('q', [{ id: 'x', payload: 2 }])).toEqual([
      { kind: 'conflict', id: 'x', state: 'completed' },
    ]);
    clock.advance(6_000);
    await tidy();
    expect(await queue.get('q', 'x')).toBeUndefined();
    expect(await queue.enqueue('q', [{ id: 'x', payload: 2 }])).toMatchObject([
      { created: true, state: 'pending' },
    ]);
    expect(await queue.get('q', 'x')).toMatchObject({ attempts: 0, version: 1 });
  });

  test('the token of an ended message is remembered for 60 s, whatever the retention', async () => {
    for (const [name, retentionMs] of Object.entries({ none: 0, short: 1_000, long: 100_000 })) {
      const { queue, clock, enqueue, takeOne, tidy } = bind(harness());
      await queue.configure(name, retention(retentionMs));
      await enqueue(['done', 'failed', 'canceled'], {}, name);
      const [done, failed, canceled] = [
        await takeOne({}, name),
        await takeOne({}, name),
        await takeOne({}, name),
      ];
      const first = await queue.complete(name, [done]);
      await queue.fail(name, [{ ...failed, error: 'x' }]);
      await queue.cancel(name, ['canceled']);
      for (const step of [0, 30_000, 29_999]) {
        clock.advance(step);
        await tidy();
        expect(await queue.complete(name, [done])).toEqual(first);
        expect(await queue.fail(name, [{ ...failed, error: 'x' }])).toMatchObject([
          { kind: 'done', state: 'errored' },
        ]);
        expect(await queue.complete(name, [canceled])).toEqual([{ kind: 'canceled', id: 'canceled' }]);
        expect(await queue.complete(name, [failed])).toEqual([{ kind: 'lease-lost', id: 'failed' }]);
      }
    }
  });

  test('with a retention of 0 the id is free at once and nothing is left to see', async () => {
    const { queue, clock, enqueue, take, tidy } = bind(harness());
    await queue.configure('q', retention(0));
    await enqueue(idsOf(3));
    await queue.complete('q', await take({ count: 3 }));
    expect(await queue.get('q', 'm0')).toBeUndefined();
    expect((await queue.list('q', { state: 'completed' })).messages).toEqual([]);
    await enqueue(['m0']);
    expect((await queue.get('q', 'm0'))?.version).toBe(1);
    clock.advance(120_000);
    await tidy();
  });

  test('uniqueWhileLive: the id is free as soon as the message is terminal', async () => {
    const { queue, enqueue, takeOne } = bind(harness());
    await enqueue(['x'], { uniqueWhileLive: true });
    expect(await queue.enqueue('q', [{ id: 'x', payload: {}, uniqueWhileLive: true }])).toMatchObject([
      { created: false },
    ]);
    const first = await takeOne();
    expect(await queue.enqueue('q', [{ id: 'x', payload: {}, uniqueWhileLive: true }])).toMatchObject([
      { created: false, state: 'running' },
    ]);
    const answer = await queue.complete('q', [first]);
    await enqueue(['x'], { uniqueWhileLive: true });
    const second = await takeOne();
    expect(second.id).toBe('x');
    expect(await queue.complete('q', [first])).toEqual(answer);
    expect(await queue.get('q', 'x')).toMatchObject({ state: 'running' });
    expect(await queue.cancel('q', ['x'])).toMatchObject([{ kind: 'canceled' }]);
    await enqueue(['x']);
  });

  test('what is forgotten of an earlier message frees no id of a later one', async () => {
    const { queue, clock, enqueue, takeOne, tidy } = bind(harness());
    const ways: Record<string, () => Promise<unknown>> = {
      purged: () => queue.purge('purged', 'completed'),
      collected: async () => {
        clock.advance(1_000);
        await tidy();
      },
      'collected with its token': async () => {
        clock.advance(61_000);
        await tidy();
      },
    };
    for (const [name, forget] of Object.entries(ways)) {
      const again = () => queue.enqueue(name, [{ id: 'x', payload: {}, uniqueWhileLive: true }]);
      await queue.configure(name, retention(1_000));
      await enqueue(['x'], { uniqueWhileLive: true }, name);
      await queue.complete(name, [await takeOne({}, name)]);
      await enqueue(['x'], { uniqueWhileLive: true, delayMs: 600_000 }, name);
      await forget();
      expect((await queue.list(name, { state: 'completed' })).messages).toEqual([]);
      expect(await again()).toMatchObject([{ created: false, state: 'invisible' }]);
    }
  });

  test('more terminal messages than one step takes are collected', async () => {
    const { queue, store, clock, enqueue, take, tidy } = bind(harness());
    await queue.configure('q', retention(1_000));
    for (let step = 0; step < 3; step += 1) {
      await enqueue(idsOf(900, `s${step}-`));
      await queue.complete('q', await take({ count: 1_000 }));
    }
    clock.advance(1_000);
    const { moved } = await store.housekeep({ now: clock.storeNow() });
    expect(moved).toBeGreaterThan(0);
    expect(moved).toBeLessThan(2_700);
    await tidy();
    expect((await queue.list('q', { state: 'completed' })).messages).toEqual([]);
    expect(await queue.get('q', 's0-0')).toBeUndefined();
  });

  test.each(['message', 'batch'] as const)(
    'history by %s tells every change, versions without a gap',
    async (history) => {
      const { queue, clock, enqueue, take, takeOne } = bind(harness());
      await queue.configure('q', { history });
      await enqueue(['other', 'm'], { delayMs: 100, metadata: { k: 'v' } });
      clock.advance(100);
      await take({ count: 2, leaseMs: 1_000 });
      clock.advance(1_000);
      const lease = (await take({ count: 2 }))[1]!;
      await queue.extend('q', [lease]);
      await queue.release('q', [{ ...lease, delayMs: 0 }]);
      await takeOne({ where: { none: 'such' } }).catch(() => undefined);
      const last = await takeOne();
      await queue.complete('q', [last]);
      const events = await queue.history('q', 'm');
      const brief = events.map(({ version, from, to, attempt, at }) => [
        version,
        from,
        to,
        attempt,
        at - startsAt,
      ]);
      expect(brief).toEqual([
        [1, undefined, 'invisible', 0, 0],
        [2, 'invisible', 'pending', 0, 100],
        [3, 'pending', 'running', 1, 100],
        [4, 'running', 'pending', 1, 1_100],
        [5, 'pending', 'running', 2, 1_100],
        [6, 'running', 'running', 2, 1_100],
        [7, 'running', 'pending', 1, 1_100],
        [8, 'pending', 'running', 2, 1_100],
        [9, 'running', 'completed', 2, 1_100],
      ]);
      expect(events[0]).toMatchObject({ queue: 'q', id: 'm', metadata: { k: 'v' } });
      expect(new Set(events.map(({ incarnation }) => incarnation)).size).toBe(1);
    },
  );

  test('a queue without history keeps none', async () => {
    const { queue, enqueue } = bind(harness());
    await queue.configure('q', { history: 'off' });
    await enqueue(['m']);
    expect(await queue.history('q', 'm')).toEqual([]);
    expect(await queue.history('q', 'unknown')).toEqual([]);
  });

  test('Q54: of many changes at once, the accepted ones are the versions 1..n', async () => {
    const { queue, enqueue } = bind(harness());
    await enqueue(['m'], { attemptsMax: 1_000 });
    const leases: LeasedMessage[] = [];
    const changes = idsOf(100).map((_, index) => async () => {
      const lease = leases.at(-1);
      if (index % 4 === 0 || !lease) leases.push(...(await queue.dequeue('q')));
      else if (index % 4 === 1) await queue.extend('q', [lease]);
      else if (index % 4 === 2) await queue.release('q', [lease]);
      else await queue.fail('q', [{ ...lease, error: 'x', retryDelayMs: 0 }]);
    });
    for (let step = 0; step < changes.length; step += 10)
      await Promise.all(changes.slice(step, step + 10).map((change) => change()));
    await queue.cancel('q', ['m']);
    const last = (await queue.get('q', 'm'))!.version;
    const versions = (await queue.history('q', 'm')).map(({ version }) => version);
    expect(versions).toEqual(Array.from({ length: last }, (_, index) => index + 1));
    expect(last).toBeGreaterThan(10);
  });

  test('Q53: listeners are told each change once, and can order them by version', async () => {
    const { queue, enqueue, take } = bind(harness());
    const seen = new Map<string, MessageEvent[]>();
    const end = queue.onEvent((event) => {
      seen.set(event.id, [...(seen.get(event.id) ?? []), event]);
    });
    await enqueue(idsOf(50), { metadata: { k: 'v' } });
    const leases = await take({ count: 50 });
    await queue.complete('q', leases.slice(0, 20));
    await queue.release('q', leases.slice(20, 30));
    await queue.fail(
      'q',
      leases.slice(30, 40).map((lease) => ({ ...lease, error: 'x' })),
    );
    await queue.cancel(
      'q',
      leases.slice(40).map(({ id }) => id),
    );
    await expect.poll(() => [...seen.values()].flat().length).toBe(150);
    for (const id of idsOf(50)) {
      const events = seen.get(id)!;
      expect(events.map(({ version }) => version)).toEqual([1, 2, 3]);
      expect(events.map(({ to }) => to)).toEqual(['pending', 'running', (await queue.get('q', id))!.state]);
      expect(events[2]).toMatchObject({ queue: 'q', from: 'running', metadata: { k: 'v' } });
      expect(new Set(events.map(({ incarnation }) => incarnation)).size).toBe(1);
    }
    end();
  });

  test('listeners are told of every kind of change, each version once', async () => {
    const { queue, enqueue, takeOne } = bind(harness());
    const seen: MessageEvent[] = [];
    queue.onEvent((event) => void seen.push(event));
    await enqueue(['m'], { metadata: { k: 'v' } });
    const change = () => queue.change('q', [{ id: 'm', visibleAt: startsAt + 1_000 }]);
    await change();
    // What is so already, and what is unknown, moves nothing.
    await change();
    await queue.change('q', [{ id: 'unknown', priority: 1 }]);
    await queue.change('q', [{ id: 'm', priority: 1, visibleAt: startsAt }]);
    const lease = await takeOne();
    await queue.extend('q', [lease]);
    await queue.fail('q', [{ ...lease, error: 'x' }]);
    await queue.requeue('q', ['m', 'm', 'unknown']);
    await queue.requeue('q', ['m']);
    await queue.cancel('q', ['m']);
    await queue.cancel('q', ['m']);
    await expect.poll(() => seen.at(-1)?.to).toBe('canceled');
    expect(seen.map(({ version, from, to, attempt }) => [version, from, to, attempt])).toEqual([
      [1, undefined, 'pending', 0],
      [2, 'pending', 'invisible', 0],
      [3, 'invisible', 'pending', 0],
      [4, 'pending', 'running', 1],
      [5, 'running', 'running', 1],
      [6, 'running', 'errored', 1],
      [7, 'errored', 'pending', 0],
      [8, 'pending', 'canceled', 0],
    ]);
    for (const event of seen) expect(event).toMatchObject({ queue: 'q', id: 'm', metadata: { k: 'v' } });
    expect(new Set(seen.map(({ incarnation }) => incarnation)).size).toBe(1);
  });

  test('listeners are told of what follows from a completion, and not of what was known', async () => {
    const { queue, enqueue, takeOne } = bind(harness());
    const seen: MessageEvent[] = [];
    await enqueue(['known'], {}, 'next');
    queue.onEvent((event) => void seen.push(event));
    await enqueue(['m']);
    const messages = [
      { id: 'known', payload: {} },
      { id: 'new', payload: {}, metadata: { k: 'v' }, delayMs: 1_000 },
    ];
    const followUps = [{ queue: 'next', messages }];
    await queue.complete('q', [{ ...(await takeOne()), followUps }]);
    await enqueue(['last']);
    await expect.poll(() => seen.at(-1)?.id).toBe('last');
    const followed = seen.filter(({ queue: name }) => name === 'next');
    expect(followed).toMatchObject([
      { id: 'new', version: 1, from: undefined, to: 'invisible', metadata: { k: 'v' }, attempt: 0 },
    ]);
    expect(followed).toMatchObject(await queue.history('next', 'new'));
  });
}
