/** Store suite: filters by metadata, depth and oldest. */
import { expect, test } from 'vitest';
import type { LeasedMessage, LiveState } from '../queue/index.js';
import { bind, idsOf, type QueueHarness, seededRandom } from './queue-suite-harness.js';

export function filterTests(harness: () => QueueHarness): void {
  test('a filter gives the messages that have all its pairs, in order', async () => {
    const { enqueue, takeIds } = bind(harness());
    await enqueue(['a'], { metadata: { region: 'eu', kind: 'x' }, priority: 3 });
    await enqueue(['b'], { metadata: { region: 'us', kind: 'x' }, priority: 2 });
    await enqueue(['c'], { metadata: { region: 'eu', kind: 'y' }, priority: 1 });
    await enqueue(['d'], { priority: 0 });
    await enqueue(['e'], { metadata: { region: 'eu', kind: 'x' }, priority: 1 });
    expect(await takeIds({ where: { region: 'eu', kind: 'x' }, count: 9 })).toEqual(['e', 'a']);
    expect(await takeIds({ where: { region: 'eu' }, count: 9 })).toEqual(['c']);
    expect(await takeIds({ where: { region: 'xx' }, count: 9 })).toEqual([]);
    expect(await takeIds({ count: 9 })).toEqual(['d', 'b']);
  });

  test('a message that comes back is found by its filter again', async () => {
    const { queue, clock, enqueue, takeOne, takeIds } = bind(harness());
    const where = { k: 'v' };
    await enqueue(['a'], { metadata: where });
    await queue.release('q', [await takeOne({ where })]);
    await queue.fail('q', [{ ...(await takeOne({ where })), error: 'x', retryDelayMs: 100 }]);
    expect(await takeIds({ where })).toEqual([]);
    clock.advance(100);
    await takeOne({ where, leaseMs: 100 });
    clock.advance(100);
    await queue.change('q', [{ id: 'a', priority: 7 }]);
    expect(await takeIds({ where })).toEqual(['a']);
  });

  test('a filter finds a message in its new place when its priority has changed', async () => {
    const { queue, enqueue, takeIds } = bind(harness());
    const metadata = { kind: 'a' };
    await enqueue(['first'], { metadata, priority: 1 });
    await enqueue(['second'], { metadata, priority: 2 });
    await queue.change('q', [{ id: 'first', priority: 3 }]);
    expect(await takeIds({ where: metadata })).toEqual(['second']);
    expect(await takeIds({ where: metadata })).toEqual(['first']);
  });

  test('Q40: a filter finds what matches however much else is in front', async () => {
    const { queue, enqueue, takeIds, depth } = bind(harness());
    for (let step = 0; step < 20; step += 1)
      await enqueue(idsOf(1_000, `s${step}-`), { metadata: { region: 'eu', kind: 'a' } });
    await enqueue(['x', 'y', 'z'], { metadata: { region: 'us', kind: 'a' } });
    expect(await depth({ region: 'us', kind: 'a' })).toEqual([0, 3, 0]);
    expect(await depth({ kind: 'a' })).toEqual([0, 20_003, 0]);
    expect(await queue.oldest('q', { region: 'us' })).toMatchObject({ id: 'x' });
    expect(await takeIds({ where: { region: 'us', kind: 'a' }, count: 5 })).toEqual(['x', 'y', 'z']);
    expect(await takeIds({ where: { region: 'xx' } })).toEqual([]);
  });

  test('pairs that look alike are not alike', async () => {
    const { enqueue, takeIds, depth } = bind(harness());
    await enqueue(['a'], { metadata: { a: '=b' } });
    await enqueue(['b'], { metadata: { 'a=': 'b' } });
    await enqueue(['c'], { metadata: { a: '' } });
    await enqueue(['d'], { metadata: { constructor: 'x', ['__proto__']: 'y' } });
    expect(await depth({ a: '=b' })).toEqual([0, 1, 0]);
    expect(await takeIds({ where: { 'a=': 'b' }, count: 9 })).toEqual(['b']);
    expect(await takeIds({ where: { a: '' }, count: 9 })).toEqual(['c']);
    expect(await takeIds({ where: { constructor: 'x' }, count: 9 })).toEqual(['d']);
  });

  test('oldest is the pending message that has waited longest, by the clock', async () => {
    const { queue, clock, enqueue, takeOne } = bind(harness());
    expect(await queue.oldest('q')).toBeUndefined();
    await enqueue(['urgent'], { priority: 1 });
    clock.advance(1_000);
    await enqueue(['late'], { priority: 0, delayMs: 5_000 });
    await enqueue(['next'], { priority: 2 });
    clock.advance(500);
    expect(await queue.oldest('q')).toEqual({ id: 'urgent', ageMs: 1_500 });
    await takeOne();
    expect(await queue.oldest('q')).toEqual({ id: 'next', ageMs: 500 });
    clock.advance(60_000);
    expect(await queue.oldest('q')).toEqual({ id: 'next', ageMs: 60_500 });
  });

  test('depth counts by the clock', async () => {
    const { clock, enqueue, takeOne, depth } = bind(harness());
    await enqueue(['due'], { delayMs: 1_000, priority: 1 });
    await enqueue(['run'], { priority: 0 });
    await takeOne({ leaseMs: 1_000 });
    expect(await depth()).toEqual([1, 0, 1]);
    clock.advance(1_000);
    expect(await depth()).toEqual([0, 2, 0]);
  });

  test('Q39: depth is a recount, for every filter and state, through random operations', async () => {
    const { queue, clock, store, depth } = bind(harness());
    const seed = Number(process.env['HEADGATE_SEED'] ?? 39);
    const random = seededRandom(seed);
    const pick = (count: number) => Math.floor(random() * count);
    const held: LeasedMessage[] = [];
    let made = 0;
    const metadata = () => {
      const pairs = ['a', 'b', 'c'].filter(() => random() < 0.7).map((key) => [key, `v${pick(4)}`] as const);
      return Object.fromEntries(pairs);
    };
    const drop = () => held.splice(pick(held.length), 1);
    const operations = [
      () =>
        queue.enqueue(
          'q',
          idsOf(1 + pick(4)).map(() => ({
            id: `m${++made}`,
            payload: 1,
            metadata: metadata(),
            ...(random() < 0.3 ? { delayMs: pick(500) } : {}),
            attemptsMax: 1 + pick(3),
          })),
        ),
      async () =>
        held.push(
          ...(await queue.dequeue('q', {
            count: 1 + pick(4),
            where: random() < 0.5 ? metadata() : {},
            leaseMs: 1 + pick(1_000),
          })),
        ),
      () => queue.complete('q', drop()),
      () =>
        queue.fail(
          'q',
          drop().map((lease) => ({
            ...lease,
            error: 'x',
            ...(random() < 0.7 ? { retryDelayMs: pick(2) * 300 } : {}),
          })),
        ),
      () =>
        queue.release(
          'q',
          drop().map((lease) => ({ ...lease, delayMs: pick(2) * 300 })),
        ),
      () => queue.cancel('q', [`m${1 + pick(made + 1)}`]),
      async () => clock.advance(pick(200)),
      async () => (random() < 0.02 ? queue.purge('q', 'invisible') : undefined),
    ];
    const filters = allFilters();
    for (let round = 0; round < 8; round += 1) {
      for (let step = 0; step < 100; step += 1) await operations[pick(operations.length)]!();
      await store.housekeep({ now: clock.storeNow() });
      await checkAll(`seed ${seed}, round ${round} (replay: HEADGATE_SEED=${seed})`);
    }
    await drain();

    async function checkAll(hint: string) {
      const states: LiveState[] = ['invisible', 'pending', 'running'];
      const lists = await Promise.all(states.map((state) => queue.list('q', { state, limit: 1_000 })));
      for (const where of filters) {
        const recount = lists.map(
          ({ messages }) =>
            messages.filter((m) => Object.entries(where).every(([k, v]) => m.metadata[k] === v)).length,
        );
        expect(await depth(where), `${hint}, ${JSON.stringify(where)}`).toEqual(recount);
      }
    }

    async function drain() {
      clock.advance(10_000);
      for (;;) {
        const messages = await queue.dequeue('q', { count: 1_000 });
        if (messages.length === 0) break;
        await queue.complete('q', messages);
      }
      for (const where of filters) expect(await depth(where)).toEqual([0, 0, 0]);
    }
  });
}

/** No pair, every pair, and every combination of pairs of three keys with four values each. */
function allFilters(): Record<string, string>[] {
  const choices = [undefined, 'v0', 'v1', 'v2', 'v3'];
  return choices.flatMap((a) =>
    choices.flatMap((b) =>
      choices.map(
        (c) =>
          Object.fromEntries(
            Object.entries({ a, b, c }).filter(([, value]) => value !== undefined),
          ) as Record<string, string>,
      ),
    ),
  );
}
