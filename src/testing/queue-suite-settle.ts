/** Store suite: complete, fail, release, extend and their repeats. */
import { expect, test } from 'vitest';
import { bind, idsOf, type QueueHarness, startsAt } from './queue-suite-harness.js';

export function settleTests(harness: () => QueueHarness): void {
  test('a completed message keeps its result and gives the same answer to its holder again', async () => {
    const { queue, clock, enqueue, takeOne } = bind(harness());
    await enqueue(['m']);
    const lease = await takeOne();
    clock.advance(5);
    const answer = [{ kind: 'done', id: 'm', state: 'completed', version: 3 }];
    expect(await queue.complete('q', [{ ...lease, result: { ok: true } }])).toEqual(answer);
    expect(await queue.complete('q', [{ ...lease, result: { ok: false } }])).toEqual(answer);
    expect(await queue.get('q', 'm')).toMatchObject({
      state: 'completed',
      result: { ok: true },
      version: 3,
      finishedAt: startsAt + 5,
      leaseUntil: undefined,
    });
    expect(await queue.fail('q', [{ ...lease, error: 'late' }])).toEqual([{ kind: 'lease-lost', id: 'm' }]);
  });

  test('a lease twice in one batch is completed once and answered twice', async () => {
    const { queue, enqueue, takeOne, depth } = bind(harness());
    await enqueue(['m']);
    const lease = await takeOne();
    const done = { kind: 'done', id: 'm', state: 'completed', version: 3 };
    expect(await queue.complete('q', [lease, lease])).toEqual([done, done]);
    expect(await depth()).toEqual([0, 0, 0]);
  });

  test('a lease twice in one batch of failures or releases is ended once, as the first says', async () => {
    const { queue, enqueue, takeOne, stateOf } = bind(harness());
    await enqueue(['a', 'b']);
    const [a, b] = [await takeOne(), await takeOne()];
    const failures = [
      { ...a, error: 'x', retryDelayMs: 1_000 },
      { ...a, error: 'y' },
    ];
    const failed = { kind: 'done', state: 'invisible', version: 3 };
    expect(await queue.fail('q', failures)).toMatchObject([failed, failed]);
    const released = { kind: 'done', state: 'pending', version: 3 };
    expect(await queue.release('q', [b, { ...b, delayMs: 1_000 }])).toMatchObject([released, released]);
    expect([await stateOf('a'), await stateOf('b')]).toEqual(['invisible', 'pending']);
  });

  test('a failed message comes back after its delay, keeps its error and spends its attempt', async () => {
    const { queue, clock, enqueue, takeOne, takeIds } = bind(harness());
    await enqueue(['m']);
    const lease = await takeOne();
    const answer = [{ kind: 'done', id: 'm', state: 'invisible', version: 3 }];
    const fail = () => queue.fail('q', [{ ...lease, error: 'no luck', retryDelayMs: 1_000 }]);
    expect(await fail()).toEqual(answer);
    expect(await fail()).toEqual(answer);
    expect(await queue.get('q', 'm')).toMatchObject({
      state: 'invisible',
      error: 'no luck',
      attempts: 1,
      visibleAt: startsAt + 1_000,
    });
    expect(await takeIds()).toEqual([]);
    clock.advance(1_000);
    expect((await takeOne()).attempts).toBe(2);
  });

  test('a message that fails for good, or without attempts left, is errored', async () => {
    const { queue, enqueue, takeOne } = bind(harness());
    await enqueue(['good'], { priority: 1 });
    await enqueue(['last'], { priority: 2, attemptsMax: 1 });
    const good = await takeOne();
    const answer = [{ kind: 'done', id: 'good', state: 'errored', version: 3 }];
    expect(await queue.fail('q', [{ ...good, error: new Error('boom').message }])).toEqual(answer);
    expect(await queue.fail('q', [{ ...good, error: 'boom' }])).toEqual(answer);
    expect(await queue.fail('q', [{ ...(await takeOne()), error: 'x', retryDelayMs: 0 }])).toMatchObject([
      { state: 'errored' },
    ]);
    expect(await queue.get('q', 'good')).toMatchObject({ state: 'errored', error: 'boom', attempts: 1 });
  });

  test('a release refunds the attempt unless told not to', async () => {
    const { queue, enqueue, takeOne } = bind(harness());
    await enqueue(['m'], { attemptsMax: 1 });
    const first = await takeOne();
    const answer = [{ kind: 'done', id: 'm', state: 'pending', version: 3 }];
    expect(await queue.release('q', [first])).toEqual(answer);
    expect(await queue.release('q', [first])).toEqual(answer);
    const second = await takeOne();
    expect(second.attempts).toBe(1);
    expect(await queue.release('q', [{ ...second, refund: false }])).toMatchObject([{ state: 'errored' }]);
  });

  test('a release with a delay makes the message invisible', async () => {
    const { queue, clock, enqueue, takeOne, takeIds } = bind(harness());
    await enqueue(['m']);
    expect(await queue.release('q', [{ ...(await takeOne()), delayMs: 500 }])).toMatchObject([
      { state: 'invisible' },
    ]);
    clock.advance(499);
    expect(await takeIds()).toEqual([]);
    clock.advance(1);
    expect(await takeIds()).toEqual(['m']);
  });

  test('in a batch each lease is answered by itself and in the order of the request', async () => {
    const { queue, enqueue, take, depth } = bind(harness());
    await enqueue(idsOf(5));
    const leases = await take({ count: 5 });
    await queue.complete('q', [leases[3]!]);
    await queue.cancel('q', ['m1']);
    const batch = [
      { ...leases[4]! },
      { id: 'm1', leaseToken: leases[1]!.leaseToken },
      { id: 'm0', leaseToken: 'nonsense' },
      { id: '', leaseToken: 'x' },
      { ...leases[3]! },
      { id: 'm0', leaseToken: leases[2]!.leaseToken },
      { id: 'unknown', leaseToken: leases[0]!.leaseToken },
      { ...leases[0]! },
    ];
    expect((await queue.complete('q', batch)).map(({ kind }) => kind)).toEqual([
      'done',
      'canceled',
      'lease-lost',
      'refused',
      'done',
      'lease-lost',
      'lease-lost',
      'done',
    ]);
    expect(await depth()).toEqual([0, 0, 1]);
    expect(await queue.complete('other', [leases[2]!])).toEqual([{ kind: 'lease-lost', id: 'm2' }]);
  });

  test('completions and a dequeue in one step do what the two do', async () => {
    const { store, queue, clock, enqueue, take, depth } = bind(harness());
    await enqueue(idsOf(6));
    const leases = await take({ count: 2 });
    const complete = leases.map(({ id, leaseToken }) => ({ id, leaseToken, result: '1' }));
    const now = clock.storeNow();
    const dequeue = {
      queue: 'q',
      count: 3,
      where: {},
      leaseMs: undefined,
      requestId: 'r2',
      worker: undefined,
      now,
    };
    const step = () => store.settleAndDequeue!({ queue: 'q', complete, dequeue, now });
    const first = await step();
    expect(first.completed.map(({ kind }) => kind)).toEqual(['done', 'done']);
    expect(first.messages.map(({ id }) => id)).toEqual(['m2', 'm3', 'm4']);
    expect(await step()).toEqual(first);
    expect(await depth()).toEqual([0, 1, 3]);
    expect(await queue.get('q', 'm0')).toMatchObject({ state: 'completed', result: 1 });
  });

  test('follow-ups are enqueued with the completion, once', async () => {
    const { queue, enqueue, takeOne, depth } = bind(harness());
    await enqueue(['m']);
    const lease = {
      ...(await takeOne()),
      followUps: [
        {
          queue: 'next',
          messages: [
            { id: 'n1', payload: 1 },
            { id: 'n2', payload: 2, delayMs: 1 },
          ],
        },
      ],
    };
    expect(await queue.complete('q', [lease])).toMatchObject([{ kind: 'done' }]);
    expect(await queue.complete('q', [lease])).toMatchObject([{ kind: 'done' }]);
    expect(await depth({}, 'next')).toEqual([1, 1, 0]);
  });

  test('a holder that repeats a completion gets its answer, though the queue of a follow-up takes no more', async () => {
    const { queue, enqueue, takeOne, depth } = bind(harness());
    await enqueue(['m']);
    const lease = await takeOne();
    const followUps = [{ queue: 'next', messages: [{ id: 'n', payload: 1 }] }];
    const done = { kind: 'done', id: 'm', state: 'completed', version: 3 };
    expect(await queue.complete('q', [{ ...lease, followUps }])).toEqual([done]);
    await queue.pause('next', { enqueue: true });
    expect(await queue.complete('q', [{ ...lease, followUps }])).toEqual([done]);
    const lost = { id: 'm', leaseToken: 'of somebody else', followUps };
    expect(await queue.complete('q', [lost])).toEqual([{ kind: 'lease-lost', id: 'm' }]);
    expect(await depth({}, 'next')).toEqual([0, 1, 0]);
  });

  test('a completion whose follow-up is refused does not happen, and hurts no other', async () => {
    const { queue, enqueue, take, depth, stateOf } = bind(harness());
    await enqueue(['m', 'n']);
    await queue.configure('blocked', { enqueueBlocked: true });
    const [m, n] = await take({ count: 2 });
    const followUps = [{ queue: 'blocked', messages: [{ id: 'x', payload: 1 }] }];
    const outcomes = await queue.complete('q', [{ ...m!, followUps }, n!]);
    expect(outcomes).toMatchObject([
      { kind: 'refused', error: { code: 'enqueue-blocked' } },
      { kind: 'done' },
    ]);
    expect(await stateOf('m')).toBe('running');
    expect(await depth({}, 'blocked')).toEqual([0, 0, 0]);
    const lost = await queue.complete('q', [
      {
        id: 'm',
        leaseToken: n!.leaseToken,
        followUps: [{ queue: 'next', messages: [{ id: 'y', payload: 1 }] }],
      },
    ]);
    expect(lost).toMatchObject([{ kind: 'lease-lost' }]);
    expect(await depth({}, 'next')).toEqual([0, 0, 0]);
  });
}
