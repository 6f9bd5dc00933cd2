/** Store suite: leases, tokens, attempts, repeated requests. */
import { expect, test } from 'vitest';
import { bind, idsOf, type QueueHarness, startsAt } from './queue-suite-harness.js';

export function leaseTests(harness: () => QueueHarness): void {
  test('Q03: a leased message is nobody else’s until its lease ends, and an extension counts', async () => {
    const { queue, clock, enqueue, takeOne, takeIds } = bind(harness());
    await enqueue(['m']);
    const at = (seconds: number) => clock.set(startsAt + seconds * 1_000);
    await takeOne({ leaseMs: 60_000 });
    for (const seconds of [1, 59]) {
      at(seconds);
      expect(await takeIds()).toEqual([]);
    }
    at(61);
    const second = await takeOne({ leaseMs: 60_000 });
    expect(second.attempts).toBe(2);
    at(61 + 59);
    expect(await queue.extend('q', [{ ...second, leaseMs: 60_000 }])).toMatchObject([
      { kind: 'done', state: 'running', leaseUntil: startsAt + 180_000 },
    ]);
    at(61 + 118);
    expect(await takeIds()).toEqual([]);
    at(180);
    expect(await takeIds()).toEqual(['m']);
  });

  test('Q02: a holder whose message was taken over changes nothing, and makes no event', async () => {
    const { queue, clock, enqueue, takeOne } = bind(harness());
    await enqueue(['m']);
    const a = await takeOne({ leaseMs: 1_000 });
    clock.advance(1_500);
    const b = await takeOne();
    const before = await queue.get('q', 'm');
    const attempts = async () => [
      await queue.complete('q', [{ ...a, result: 'A' }]),
      await queue.extend('q', [{ id: 'm', leaseToken: a.leaseToken }]),
      await queue.fail('q', [{ ...a, error: 'A', retryDelayMs: 0 }]),
      await queue.release('q', [{ id: 'm', leaseToken: a.leaseToken }]),
    ];
    const lost = Array.from({ length: 4 }, () => [{ kind: 'lease-lost', id: 'm' }]);
    expect(await attempts()).toEqual(lost);
    expect(await queue.get('q', 'm')).toEqual(before);
    await queue.complete('q', [{ ...b, result: 'B' }]);
    expect(await attempts()).toEqual(lost);
    const after = await queue.get('q', 'm');
    expect(after).toMatchObject({ state: 'completed', result: 'B', attempts: 2 });
    expect((await queue.history('q', 'm')).map(({ version }) => version)).toEqual(
      idsOf(after!.version).map((_, index) => index + 1),
    );
  });

  test('a lease that has run out is still accepted while nobody has taken the message back', async () => {
    const { queue, clock, enqueue, takeOne } = bind(harness());
    await enqueue(['m']);
    const lease = await takeOne({ leaseMs: 1_000 });
    clock.advance(5_000);
    expect(await queue.complete('q', [lease])).toMatchObject([{ kind: 'done', state: 'completed' }]);
  });

  test('on the last attempt a lease that has run out is lost, and the message is errored at once', async () => {
    const { queue, clock, enqueue, takeOne, stateOf } = bind(harness());
    await enqueue(['m'], { attemptsMax: 1 });
    const lease = await takeOne({ leaseMs: 1_000 });
    clock.advance(1_000);
    expect(await queue.complete('q', [lease])).toEqual([{ kind: 'lease-lost', id: 'm' }]);
    expect(await stateOf('m')).toBe('errored');
    expect(await queue.extend('q', [lease])).toEqual([{ kind: 'lease-lost', id: 'm' }]);
  });

  test('Q12: messages that end by expiry hide nobody behind them', async () => {
    const { queue, clock, enqueue, take, takeIds, depth } = bind(harness());
    for (let priority = 1; priority <= 10; priority += 1)
      await enqueue([`m${priority}`], { priority, attemptsMax: 1 });
    await enqueue(['m11'], { priority: 100 });
    await take({ count: 10, leaseMs: 1_000 });
    clock.advance(1_000);
    expect(await takeIds({ count: 1 })).toEqual(['m11']);
    const errored = await queue.list('q', { state: 'errored' });
    expect(errored.messages.map(({ id }) => id)).toEqual(idsOf(10).map((_, index) => `m${index + 1}`));
    expect(await depth()).toEqual([0, 0, 1]);
  });

  test('an expiry on the last attempt is found by housekeeping alone', async () => {
    const { clock, enqueue, take, tidy, stateOf } = bind(harness());
    await enqueue(['last'], { attemptsMax: 1 });
    await enqueue(['more'], { attemptsMax: 2 });
    await take({ count: 2, leaseMs: 1_000 });
    clock.advance(1_000);
    await tidy();
    expect([await stateOf('last'), await stateOf('more')]).toEqual(['errored', 'pending']);
  });

  test('Q13: a short lease is found behind many long ones', async () => {
    const { clock, enqueue, take, takeIds, depth } = bind(harness());
    for (let step = 0; step < 10; step += 1) {
      await enqueue(idsOf(1_000, `s${step}-`));
      await take({ count: 1_000, leaseMs: 3_600_000 });
    }
    await enqueue(['short']);
    await take({ leaseMs: 1_000 });
    clock.advance(2_000);
    expect(await takeIds({ count: 10 })).toEqual(['short']);
    expect(await depth()).toEqual([0, 0, 10_001]);
  });

  test('Q08: leases of up to a year are kept, and what is no lease is refused by name', async () => {
    const { queue, clock, enqueue, takeOne, takeIds } = bind(harness());
    const year = 31_536_000_000;
    await enqueue(['a', 'b']);
    expect((await takeOne({ leaseMs: 2_147_483_648 })).leaseUntil).toBe(startsAt + 2_147_483_648);
    for (const leaseMs of [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, '30s' as unknown as number]) {
      await expect(queue.dequeue('q', { leaseMs })).rejects.toMatchObject({
        code: 'invalid-input',
        field: 'leaseMs',
      });
    }
    expect(await queue.get('q', 'b')).toMatchObject({ state: 'pending', attempts: 0 });
    await takeOne({ leaseMs: year });
    clock.advance(2_147_483_647);
    expect(await takeIds()).toEqual([]);
    clock.set(startsAt + year);
    expect(await takeIds({ count: 2 })).toEqual(['a', 'b']);
  });

  test('Q10: a repeated request gives the same leases while they run, and spends no attempt', async () => {
    const { queue, clock, enqueue, take } = bind(harness());
    await enqueue(['a', 'b', 'c']);
    const first = await take({ count: 2, requestId: 'r1', leaseMs: 10_000 });
    expect(await take({ count: 2, requestId: 'r1', leaseMs: 10_000 })).toEqual(first);
    expect(await take({ count: 9, where: { none: 'such' }, requestId: 'r1' })).toEqual(first);
    expect(await take({ count: 1, requestId: 'r2' })).toMatchObject([{ id: 'c' }]);
    await queue.complete('q', [first[0]!]);
    expect(await take({ requestId: 'r1' })).toEqual([first[1]]);
    clock.advance(10_000);
    const again = await take({ count: 2, requestId: 'r1' });
    expect(again.map(({ id, attempts }) => [id, attempts])).toEqual([['b', 2]]);
    expect(again[0]!.leaseToken).not.toBe(first[1]!.leaseToken);
  });

  test('a repeated request gives its leases in the order of the queue, whatever was extended meanwhile', async () => {
    const { queue, enqueue, take, takeIds } = bind(harness());
    await enqueue(idsOf(3));
    const [first] = await take({ count: 3, requestId: 'r1' });
    await queue.extend('q', [first!]);
    expect(await takeIds({ requestId: 'r1' })).toEqual(idsOf(3));
  });

  test('two of the same request at once get the same leases', async () => {
    const { enqueue, take } = bind(harness());
    await enqueue(idsOf(20));
    for (let round = 0; round < 10; round += 1) {
      const [one, two] = await Promise.all([0, 1].map(() => take({ count: 2, requestId: `r${round}` })));
      expect(one).toHaveLength(2);
      expect(two).toEqual(one);
    }
  });

  test('a request whose name begins like another is another', async () => {
    const { enqueue, takeIds } = bind(harness());
    await enqueue(['a', 'b', 'c']);
    expect(await takeIds({ requestId: 'r' })).toEqual(['a']);
    expect(await takeIds({ requestId: 'r-1' })).toEqual(['b']);
    expect(await takeIds({ requestId: 'r1' })).toEqual(['c']);
  });

  test('Q04: of many dequeues at once, no two get the same message', async () => {
    const { queue, enqueue, take, stateOf } = bind(harness());
    await enqueue(idsOf(300));
    const handed: string[] = [];
    const loops = Array.from({ length: 40 }, async (_, index) => {
      for (;;) {
        const messages = await take({ count: index % 2 === 0 ? 1 : 5 });
        if (messages.length === 0) return;
        handed.push(...messages.map(({ id, attempts }) => `${id}#${attempts}`));
        const outcomes = await queue.complete('q', messages);
        expect(outcomes.every(({ kind }) => kind === 'done')).toBe(true);
      }
    });
    await Promise.all(loops);
    expect(handed.sort()).toEqual(
      idsOf(300)
        .map((id) => `${id}#1`)
        .sort(),
    );
    expect(await stateOf('m0')).toBe('completed');
  });

  test('Q30: no call gets more than it asked for', async () => {
    const { enqueue, take } = bind(harness());
    await enqueue(idsOf(10), {}, 'small');
    for (let step = 0; step < 2; step += 1) await enqueue(idsOf(1_000, `s${step}-`), {}, 'large');
    const calls = await Promise.all(idsOf(100).map(() => take({ count: 5, leaseMs: 3_600_000 }, 'large')));
    expect(Math.max(...calls.map(({ length }) => length))).toBe(5);
    const ids = calls.flat().map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids).toHaveLength(500);
  });
}
