/** Store suite: cancel, change, requeue, purge, list. */
import { expect, test } from 'vitest';
import { createQueue } from '../queue/index.js';
import { bind, idsOf, type QueueHarness, startsAt } from './queue-suite-harness.js';

export function operateTests(harness: () => QueueHarness): void {
  test('cancel ends a message from any live state, and says the same again', async () => {
    const { queue, enqueue, takeOne, stateOf, depth } = bind(harness());
    await enqueue(['running']);
    const lease = await takeOne();
    await enqueue(['pending']);
    await enqueue(['invisible'], { delayMs: 1_000 });
    const ids = ['running', 'pending', 'invisible', 'unknown', 'pending'];
    const kinds = async () => (await queue.cancel('q', ids)).map(({ kind }) => kind);
    expect(await kinds()).toEqual(['canceled', 'canceled', 'canceled', 'unknown', 'canceled']);
    expect(await kinds()).toEqual(['canceled', 'canceled', 'canceled', 'unknown', 'canceled']);
    expect(await depth()).toEqual([0, 0, 0]);
    expect(await stateOf('pending')).toBe('canceled');
    expect(await queue.extend('q', [lease])).toEqual([{ kind: 'canceled', id: 'running' }]);
    expect(await queue.complete('q', [lease])).toEqual([{ kind: 'canceled', id: 'running' }]);
    expect(await stateOf('running')).toBe('canceled');
  });

  test('what has ended otherwise is not canceled any more', async () => {
    const { queue, enqueue, takeOne } = bind(harness());
    await enqueue(['m']);
    await queue.complete('q', [await takeOne()]);
    expect(await queue.cancel('q', ['m'])).toEqual([{ kind: 'terminal', id: 'm', state: 'completed' }]);
  });

  test('change moves a waiting message in the order, in time and in content', async () => {
    const { queue, clock, enqueue, takeIds, take } = bind(harness());
    await enqueue(['a', 'b', 'c'], { priority: 5 });
    expect(await queue.change('q', [{ id: 'c', priority: 1, payload: { new: true } }])).toEqual([
      { kind: 'changed', id: 'c', state: 'pending', version: 2 },
    ]);
    expect(await queue.change('q', [{ id: 'c', priority: 1, payload: { new: true } }])).toMatchObject([
      { version: 2 },
    ]);
    expect(await queue.change('q', [{ id: 'a', visibleAt: startsAt + 1_000 }])).toMatchObject([
      { state: 'invisible' },
    ]);
    expect(await take({ count: 9 })).toMatchObject([
      { id: 'c', payload: { new: true }, priority: 1 },
      { id: 'b' },
    ]);
    clock.advance(1_000);
    expect(await takeIds()).toEqual(['a']);
    expect(
      await queue.change('q', [
        { id: 'a', priority: 1 },
        { id: 'none', priority: 1 },
      ]),
    ).toEqual([
      { kind: 'not-waiting', id: 'a', state: 'running' },
      { kind: 'unknown', id: 'none' },
    ]);
    expect(await queue.enqueue('q', [{ id: 'c', payload: { new: true } }])).toMatchObject([
      { created: false },
    ]);
  });

  test('an errored message is requeued with its attempts anew', async () => {
    const { queue, enqueue, takeOne, stateOf } = bind(harness());
    await enqueue(['m', 'n'], { attemptsMax: 1 });
    await queue.fail('q', [{ ...(await takeOne()), error: 'boom' }]);
    expect(await queue.requeue('q', ['m', 'n', 'none'])).toEqual([
      { kind: 'requeued', id: 'm', state: 'pending', version: 4 },
      { kind: 'not-errored', id: 'n', state: 'pending' },
      { kind: 'unknown', id: 'none' },
    ]);
    expect(await queue.requeue('q', ['m'])).toEqual([{ kind: 'not-errored', id: 'm', state: 'pending' }]);
    const again = await takeOne();
    expect(again).toMatchObject({ id: 'm', attempts: 1, version: 5, error: undefined });
    await queue.complete('q', [again]);
    expect(await stateOf('m')).toBe('completed');
    expect((await queue.history('q', 'm')).map(({ from, to }) => [from, to])).toEqual([
      [undefined, 'pending'],
      ['pending', 'running'],
      ['running', 'errored'],
      ['errored', 'pending'],
      ['pending', 'running'],
      ['running', 'completed'],
    ]);
  });

  test('all errored messages, or those that match, are requeued in steps', async () => {
    const { store, clock, enqueue, depth } = bind(harness());
    const queue = createQueue({ store, clock, limits: { batchMax: 4 } });
    await enqueue(idsOf(10), { metadata: { k: 'v' } });
    await enqueue(idsOf(3, 'other'));
    for (let left = 13; left > 0; left -= 4) {
      const leases = await queue.dequeue('q', { count: 4 });
      await queue.fail(
        'q',
        leases.map((lease) => ({ ...lease, error: 'x' })),
      );
    }
    expect(await queue.requeueAll('q', { k: 'v' })).toBe(10);
    expect(await depth({ k: 'v' })).toEqual([0, 10, 0]);
    expect(await queue.requeueAll('q')).toBe(3);
    expect(await queue.requeueAll('q')).toBe(0);
    expect(await depth()).toEqual([0, 13, 0]);
  });

  test('purge forgets all messages of one state, their ids with them', async () => {
    const { queue, store, clock, enqueue, take, depth, stateOf } = bind(harness());
    await enqueue(idsOf(1_200), { metadata: { k: 'v' } });
    await enqueue(['later'], { delayMs: 1_000 });
    await queue.complete('q', await take({ count: 10 }));
    const step = { queue: 'q', state: 'pending', limit: 7, now: clock.storeNow() } as const;
    const { removed } = await store.purge(step);
    expect(removed).toBeGreaterThan(0);
    expect(removed).toBeLessThanOrEqual(7);
    expect(await queue.purge('q', 'pending')).toBe(1_190 - removed);
    expect(await depth()).toEqual([1, 0, 0]);
    expect(await depth({ k: 'v' })).toEqual([0, 0, 0]);
    expect(await queue.purge('q', 'completed')).toBe(10);
    expect(await stateOf('m0')).toBeUndefined();
    await enqueue(['m0', 'm500']);
    expect(await queue.purge('q', 'invisible')).toBe(1);
    await expect(queue.purge('q', 'running' as 'pending')).rejects.toMatchObject({ field: 'state' });
  });

  test('list pages through each state, each message once', async () => {
    const { queue, clock, enqueue, take } = bind(harness());
    await enqueue(idsOf(60), { metadata: { k: 'v' } });
    await enqueue(idsOf(25, 'd'), { delayMs: 9_000 });
    await queue.complete('q', await take({ count: 20 }));
    for (let step = 0; step < 10; step += 1) {
      await take({ leaseMs: 5_000 - step });
      clock.advance(1);
    }
    const all = async (state: 'pending' | 'invisible' | 'running' | 'completed', where = {}) => {
      const ids: string[] = [];
      let after: string | undefined;
      do {
        const page = await queue.list('q', { state, where, limit: 7, after });
        expect(page.messages.length).toBeLessThanOrEqual(7);
        ids.push(...page.messages.map(({ id }) => id));
        after = page.next;
      } while (after !== undefined);
      return ids;
    };
    expect(await all('completed')).toEqual(idsOf(20));
    expect((await all('running')).sort()).toEqual(idsOf(30).slice(20).sort());
    expect(await all('pending')).toEqual(idsOf(60).slice(30));
    expect(await all('pending', { k: 'v' })).toEqual(idsOf(60).slice(30));
    expect(await all('pending', { k: 'w' })).toEqual([]);
    expect(await all('invisible')).toEqual(idsOf(25, 'd'));
    expect((await queue.list('q', { state: 'errored' })).messages).toEqual([]);
  });

  test('list pages through ended messages from the newest on, also while more end', async () => {
    const { queue, enqueue, take } = bind(harness());
    await enqueue(idsOf(30), { metadata: { k: 'v' } });
    await queue.complete('q', await take({ count: 20 }));
    const page = (after?: string, where = {}) =>
      queue.list('q', { state: 'completed', where, limit: 7, after, newestFirst: true });
    const idsIn = ({ messages }: { messages: readonly { readonly id: string }[] }) =>
      messages.map(({ id }) => id);
    const newest = idsOf(20).toReversed();
    const first = await page();
    expect(idsIn(first)).toEqual(newest.slice(0, 7));
    await queue.complete('q', await take({ count: 5 }));
    const second = await page(first.next);
    expect(idsIn(second)).toEqual(newest.slice(7, 14));
    const third = await page(second.next);
    expect(idsIn(third)).toEqual(newest.slice(14));
    expect(third.next).toBeUndefined();
    expect(idsIn(await page(undefined, { k: 'v' }))).toEqual(idsOf(25).toReversed().slice(0, 7));
    expect(idsIn(await page(undefined, { k: 'w' }))).toEqual([]);
    const live = queue.list('q', { state: 'pending', newestFirst: true });
    await expect(live).rejects.toMatchObject({ code: 'invalid-input', field: 'newestFirst' });
  });

  test('input that is no such thing is refused by name', async () => {
    const { queue } = bind(harness());
    const name = (field: string) => ({ code: 'invalid-input', field });
    await expect(queue.enqueue('', [])).rejects.toMatchObject(name('queue'));
    await expect(queue.enqueue('a\u0000', [])).rejects.toMatchObject(name('queue'));
    await expect(queue.dequeue('q', { count: 0 })).rejects.toMatchObject(name('count'));
    await expect(queue.dequeue('q', { requestId: 'a.b' })).rejects.toMatchObject(name('requestId'));
    await expect(queue.list('q', { state: 'nope' as 'pending' })).rejects.toMatchObject(name('state'));
    await expect(queue.configure('q', { leaseMs: 0 })).rejects.toMatchObject(name('leaseMs'));
    await expect(queue.configure('q', { typo: 1 } as object)).rejects.toMatchObject(name('typo'));
    await expect(queue.configure('q', { constructor: 1 } as object)).rejects.toMatchObject(
      name('constructor'),
    );
    const none = null as unknown as never;
    await expect(queue.enqueue('q', none)).rejects.toMatchObject(name('messages'));
    await expect(queue.complete('q', 'a' as unknown as [])).rejects.toMatchObject(name('leases'));
    await expect(queue.cancel('q', 'a' as unknown as [])).rejects.toMatchObject(name('ids'));
    await expect(queue.change('q', none)).rejects.toMatchObject(name('changes'));
    await expect(queue.configure('q', none)).rejects.toMatchObject(name('configuration'));
    await expect(queue.dequeue('q', none)).rejects.toMatchObject(name('options'));
    await expect(queue.list('q', none)).rejects.toMatchObject(name('options'));
    await expect(queue.recur(none)).rejects.toMatchObject(name('options'));
  });

  test('a member of a batch that is no such thing is refused by name and hurts none of the others', async () => {
    const { queue, enqueue, takeOne, stateOf } = bind(harness());
    await enqueue(['a', 'b', 'c']);
    const refused = (field: string) => ({ kind: 'refused', error: { code: 'invalid-input', field } });
    const lease = await takeOne();
    const none = null as unknown as never;
    expect(await queue.extend('q', [none, lease])).toMatchObject([refused('lease'), { kind: 'done' }]);
    expect(await queue.complete('q', [{ ...lease, followUps: {} as [] }])).toMatchObject([
      refused('followUps'),
    ]);
    expect(await queue.release('q', [{ ...lease, refund: 'no' as unknown as boolean }])).toMatchObject([
      refused('refund'),
    ]);
    expect(await queue.fail('q', [none, { ...lease, error: 'x' }])).toMatchObject([
      refused('lease'),
      { kind: 'done', state: 'errored' },
    ]);
    expect(await queue.change('q', [none, { id: 'b', priority: 1 }])).toMatchObject([
      refused('change'),
      { kind: 'changed' },
    ]);
    expect(await queue.requeue('q', ['', 'a', 'a'])).toMatchObject([
      refused('id'),
      { kind: 'requeued', id: 'a' },
      { kind: 'requeued', id: 'a' },
    ]);
    expect(await queue.cancel('q', ['x'.repeat(513), 'b', 5 as unknown as string])).toMatchObject([
      refused('id'),
      { kind: 'canceled', id: 'b' },
      refused('id'),
    ]);
    expect(await Promise.all(['a', 'b', 'c'].map((id) => stateOf(id)))).toEqual([
      'pending',
      'canceled',
      'pending',
    ]);
  });

  test('a cursor that no page has given is refused by name', async () => {
    const { queue, enqueue } = bind(harness());
    await enqueue(['a']);
    for (const state of ['pending', 'invisible', 'running', 'completed'] as const) {
      for (const after of ['garbled', '1', '{}', '99999999999999999999.1', '1.2.3']) {
        await expect(queue.list('q', { state, after })).rejects.toMatchObject({
          code: 'invalid-input',
          field: 'after',
        });
      }
    }
  });

  test('recurring messages are set by name, and a tick is moved on by one only', async () => {
    const { store } = bind(harness());
    const message = {
      id: 'x',
      payload: '1',
      metadata: {},
      priority: undefined,
      delayMs: undefined,
      attemptsMax: undefined,
      leaseMs: undefined,
      uniqueWhileLive: false,
      trace: undefined,
    };
    const recurring = {
      name: 'nightly',
      queue: 'q',
      cron: '0 3 * * *',
      timeZone: 'UTC',
      message,
      next: startsAt + 10,
    };
    await store.putRecurring(recurring);
    expect(await store.recurring({ due: true, now: startsAt })).toEqual([]);
    expect(await store.recurring({ due: true, now: startsAt + 10 })).toMatchObject([
      { name: 'nightly', next: startsAt + 10 },
    ]);
    const moves = await Promise.all(
      [1, 2, 3].map(() =>
        store.advanceRecurring({ name: 'nightly', from: startsAt + 10, next: startsAt + 20 }),
      ),
    );
    expect(moves.filter(Boolean)).toHaveLength(1);
    await store.putRecurring({ ...recurring, next: startsAt + 5 });
    expect(await store.recurring({ due: false, now: startsAt })).toMatchObject([{ next: startsAt + 20 }]);
    await store.putRecurring({ ...recurring, cron: '0 4 * * *', next: startsAt + 5 });
    expect(await store.recurring({ due: false, now: startsAt })).toMatchObject([{ next: startsAt + 5 }]);
    expect(await store.removeRecurring('nightly')).toBe(true);
    expect(await store.removeRecurring('nightly')).toBe(false);
  });
}
