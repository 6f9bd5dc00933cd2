/** A queue over several hash tags, on one Redis and on a Cluster: what holds as for any queue, and what holds less. */
import { Cluster } from 'ioredis';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createQueue, type LeasedMessage, type Queue } from '../../src/queue/index.js';
import { createRedisQueueStore, type RedisQueueStore } from '../../src/queue/redis/index.js';
import { createKeys } from '../../src/queue/redis/keys.js';
import { functionLibrary } from '../../src/queue/redis/library.js';
import { shardOfToken } from '../../src/queue/redis/shards.js';
import { ManualClock } from '../../src/testing/manual-clock.js';
import { type RedisCluster, startRedisCluster } from '../../src/testing/redis-cluster.js';
import { findRedisServer, type RedisServer, startRedisServer } from '../../src/testing/redis-server.js';
import { until } from '../../src/testing/until.js';

const shards = { q: 4, 'x {y}': 3, wide: 12 };
let runs = 0;

const idsOf = (count: number): string[] => Array.from({ length: count }, (_, index) => `m${index}`);

describe.skipIf(!findRedisServer()).each(['one Redis', 'a Cluster'])(
  'a sharded queue on %s (needs redis-server on the PATH)',
  (kind) => {
    let server: RedisServer | undefined;
    let cluster: RedisCluster | undefined;
    let store: RedisQueueStore;
    let queue: Queue;
    let clock: ManualClock;

    beforeAll(async () => {
      if (kind === 'one Redis') server = await startRedisServer();
      else cluster = await startRedisCluster({ replicas: false });
    });
    afterAll(async () => {
      await server?.stop();
      await cluster?.stop();
    });
    beforeEach(async () => {
      const common = { durability: 'none', prefix: `s${++runs}`, shards } as const;
      store = createRedisQueueStore(
        server ? { ...common, url: server.url } : { ...common, cluster: cluster!.nodes },
      );
      await store.start();
      clock = new ManualClock();
      queue = createQueue({ store, clock });
    });
    afterEach(() => store.stop());

    async function drain(name: string, count = 7): Promise<LeasedMessage[]> {
      const all: LeasedMessage[] = [];
      for (;;) {
        const leases = await queue.dequeue(name, { count });
        if (leases.length === 0) return all;
        all.push(...leases);
        expect((await queue.complete(name, leases)).map((outcome) => outcome.kind)).toEqual(
          leases.map(() => 'done'),
        );
      }
    }

    test.each(['q', 'x {y}'])('gives each message of "%s" once, in the order of priorities', async (name) => {
      const messages = idsOf(200).map((id, index) => ({
        id,
        payload: { index },
        priority: (index * 7_919) % 200,
      }));
      await queue.enqueue(name, messages);
      expect(
        (await queue.enqueue(name, messages)).every(
          (outcome) => outcome.kind === 'enqueued' && !outcome.created,
        ),
      ).toBe(true);
      expect(await queue.depth(name)).toMatchObject({ pending: 200, exact: true });
      const taken = await drain(name);
      expect(taken.map(({ priority }) => priority)).toEqual(idsOf(200).map((_, index) => index));
      expect(await queue.depth(name)).toMatchObject({ invisible: 0, pending: 0, running: 0 });
    });

    test('repeats a request with the leases that it holds in any shard', async () => {
      await queue.enqueue(
        'q',
        idsOf(20).map((id) => ({ id, payload: {} })),
      );
      const first = await queue.dequeue('q', { count: 10, requestId: 'r' });
      expect(first).toHaveLength(10);
      const again = await queue.dequeue('q', { count: 1, requestId: 'r' });
      expect(again.map(({ leaseToken }) => leaseToken).sort()).toEqual(
        first.map(({ leaseToken }) => leaseToken).sort(),
      );
      expect(await queue.dequeue('q', { count: 20, requestId: 'other' })).toHaveLength(10);
    });

    test('repeats a request that holds a lease in a single shard, and takes nothing from the others', async () => {
      await queue.enqueue(
        'q',
        idsOf(20).map((id) => ({ id, payload: {} })),
      );
      const first = await queue.dequeue('q', { count: 1, requestId: 'r' });
      expect(await queue.dequeue('q', { count: 20, requestId: 'r' })).toEqual(first);
      expect(await queue.depth('q')).toMatchObject({ pending: 19, running: 1 });
    });

    test('answers in the order of what was asked, whichever shards that leads to', async () => {
      await queue.enqueue('q', [
        { id: 'm1', payload: {} },
        { id: 'm4', payload: {} },
      ]);
      const outcomes = await queue.enqueue(
        'q',
        idsOf(12).map((id) => ({ id, payload: id === 'm4' ? 'other' : {} })),
      );
      expect(outcomes.map((outcome) => [outcome.id, outcome.kind === 'enqueued' && outcome.created])).toEqual(
        idsOf(12).map((id) => [id, id !== 'm1' && id !== 'm4']),
      );
      const leases = await queue.dequeue('q', { count: 12 });
      const wrong = leases.map((lease, index) =>
        index % 3 === 1 ? { ...lease, leaseToken: `${lease.leaseToken}x` } : lease,
      );
      expect((await queue.complete('q', wrong)).map(({ id, kind }) => [id, kind])).toEqual(
        leases.map(({ id }, index) => [id, index % 3 === 1 ? 'lease-lost' : 'done']),
      );
      for (const newestFirst of [false, true]) {
        const { messages } = await queue.list('q', { state: 'completed', newestFirst });
        const events = await Promise.all(messages.map(({ id }) => queue.history('q', id)));
        const numbers = events.map(([event]) => Number(event!.incarnation));
        expect(numbers).toHaveLength(8);
        expect(numbers).toEqual(numbers.toSorted((x, y) => (newestFirst ? y - x : x - y)));
      }
    });

    test('keeps exclusivity, because a value lives in one shard', async () => {
      await queue.configure('q', { type: { kind: 'exclusive', key: 'user' } });
      await queue.enqueue(
        'q',
        idsOf(60).map((id, index) => ({ id, payload: {}, metadata: { user: `u${index % 6}` } })),
      );
      const first = await queue.dequeue('q', { count: 60 });
      expect(first.map(({ metadata }) => metadata['user']).sort()).toEqual([
        'u0',
        'u1',
        'u2',
        'u3',
        'u4',
        'u5',
      ]);
      expect(await queue.dequeue('q', { count: 60 })).toEqual([]);
      await queue.complete('q', first);
      expect((await drain('q')).map(({ id }) => id).sort()).toEqual(idsOf(60).slice(6).sort());
    });

    test('finds a message by its id in whichever shard it is', async () => {
      await queue.enqueue(
        'q',
        idsOf(20).map((id) => ({ id, payload: { id }, delayMs: 1_000 })),
      );
      expect(await Promise.all(idsOf(20).map(async (id) => (await queue.get('q', id))?.payload))).toEqual(
        idsOf(20).map((id) => ({ id })),
      );
      expect(await queue.cancel('q', ['m3', 'nobody', 'm4'])).toEqual([
        { kind: 'canceled', id: 'm3' },
        { kind: 'unknown', id: 'nobody' },
        { kind: 'canceled', id: 'm4' },
      ]);
      expect(
        await queue.change('q', [
          { id: 'm5', priority: -1 },
          { id: 'm3', priority: 1 },
        ]),
      ).toMatchObject([{ kind: 'changed', version: 2 }, { kind: 'not-waiting' }]);
      expect(await queue.history('q', 'm5')).toHaveLength(2);
      clock.advance(1_000);
      expect((await queue.dequeue('q', { count: 1 })).map(({ id }) => id)).toEqual(['m5']);
      expect(await queue.oldest('q')).toMatchObject({ ageMs: 0 });
    });

    test('lists every message of a state once, page by page, in the order of what goes on', async () => {
      await queue.enqueue(
        'q',
        idsOf(50).map((id, index) => ({ id, payload: {}, priority: index })),
      );
      const seen: string[] = [];
      for (let after: string | undefined; ; ) {
        const page = await queue.list('q', { state: 'pending', limit: 7, after });
        seen.push(...page.messages.map(({ id }) => id));
        after = page.next;
        if (after === undefined) break;
      }
      expect(seen).toEqual(idsOf(50));
      expect(await queue.purge('q', 'pending')).toBe(50);
    });

    test('sends follow-ups from any shard to any shard', async () => {
      await queue.enqueue(
        'q',
        idsOf(12).map((id) => ({ id, payload: {} })),
      );
      const leases = await queue.dequeue('q', { count: 12 });
      const followUps = (id: string) => [
        {
          queue: 'x {y}',
          messages: [
            { id: `${id}-a`, payload: 1 },
            { id: `${id}-b`, payload: 2 },
          ],
        },
      ];
      const outcomes = await queue.complete(
        'q',
        leases.map((lease) => ({ ...lease, followUps: followUps(lease.id) })),
      );
      expect(outcomes.every(({ kind }) => kind === 'done')).toBe(true);
      expect(await queue.depth('x {y}')).toMatchObject({ pending: 24 });
    });

    test('leads the holder of a lease to its shard, though that has two digits', async () => {
      await queue.enqueue(
        'wide',
        idsOf(60).map((id) => ({ id, payload: {} })),
      );
      const leases = await queue.dequeue('wide', { count: 60 });
      expect(leases).toHaveLength(60);
      for (const settle of [queue.extend, queue.release])
        expect((await settle.call(queue, 'wide', leases)).map(({ kind }) => kind)).toEqual(
          leases.map(() => 'done'),
        );
      expect(await drain('wide')).toHaveLength(60);
      expect(await queue.complete('wide', [{ id: 'm0', leaseToken: 'r.99~x' }])).toMatchObject([
        { kind: 'lease-lost' },
      ]);
    });

    test('names the oldest of all shards, and hands out nothing while it is paused', async () => {
      const [first, ...others] = idsOf(12);
      await queue.enqueue('q', [{ id: first!, payload: {}, priority: 1 }]);
      clock.advance(5_000);
      await queue.enqueue(
        'q',
        others.map((id) => ({ id, payload: {}, priority: 0 })),
      );
      expect(await queue.oldest('q')).toEqual({ id: first, ageMs: 5_000 });
      await queue.configure('q', { dequeueBlocked: true });
      expect(await queue.dequeue('q', { count: 12 })).toEqual([]);
      await queue.configure('q', { dequeueBlocked: false });
      expect(await queue.dequeue('q', { count: 12 })).toHaveLength(12);
    });

    test('moves the follow-ups that a process left behind when it ended after its completion', async () => {
      await queue.enqueue('q', [{ id: 'm', payload: {} }]);
      const [lease] = await queue.dequeue('q');
      const { id, leaseToken } = lease!;
      const shard = shardOfToken(leaseToken);
      const base = createKeys(`s${runs}`).base('q', shard);
      const follower = { id: 'next', payload: '1', metadata: {}, uniqueWhileLive: false };
      // What `completeAcrossSlots` does first, and nothing of what it does then.
      const stored = JSON.stringify([{ queue: 'x {y}', messages: [follower] }]);
      const client = server ? server.connect() : new Cluster([...cluster!.nodes]);
      const name = functionLibrary().functionName('complete_store');
      const args = [clock.storeNow(), '0', id, leaseToken, '', stored];
      await client.call('FCALL', name, '2', `${base}:q`, base, ...args.map(String));
      expect(await queue.depth('x {y}')).toMatchObject({ pending: 0 });
      await queue.configure('x {y}', { enqueueBlocked: true });
      await store.housekeep({ now: clock.storeNow() });
      expect(await client.exists(`${base}:f`)).toBe(1);
      await queue.configure('x {y}', { enqueueBlocked: false });
      await store.housekeep({ now: clock.storeNow() });
      expect(await queue.depth('x {y}')).toMatchObject({ pending: 1 });
      expect(await queue.get('x {y}', 'next')).toMatchObject({ state: 'pending' });
      expect(await client.exists(`${base}:f`)).toBe(0);
      client.disconnect();
    });

    test('hints, is ready and collects whichever shard a message is in', async () => {
      await queue.configure('q', { retentionMs: { completed: 0, canceled: 0, errored: 0 } });
      let hints = 0;
      const unwatch = await store.watch(['q'], () => {
        hints += 1;
      });
      // That of the connection itself.
      await until(() => hints > 0);
      for (const id of idsOf(12)) {
        hints = 0;
        await queue.enqueue('q', [{ id, payload: {} }]);
        await until(() => hints > 0);
        expect(await store.ready!({ queues: ['q', 'x {y}'], now: clock.storeNow() })).toEqual(['q']);
        await drain('q');
      }
      await unwatch();
      expect(await store.ready!({ queues: ['q'], now: clock.storeNow() })).toEqual([]);
      clock.advance(60_000);
      let moved = 0;
      for (let step = 1; step > 0; moved += step)
        step = (await store.housekeep({ now: clock.storeNow() })).moved;
      expect(moved).toBe(12);
    });

    test('wakes a dequeue that waits, whichever shard the message goes to', async () => {
      for (const id of idsOf(6)) {
        const waiting = queue.dequeue('q', { waitMs: 10_000 });
        await new Promise((resolve) => setTimeout(resolve, 30));
        await queue.enqueue('q', [{ id, payload: {} }]);
        expect((await waiting).map((message) => message.id)).toEqual([id]);
      }
    });

    test('shares nothing with a queue that is called like one of its shards', async () => {
      await queue.enqueue(
        'q#1',
        idsOf(3).map((id) => ({ id, payload: {} })),
      );
      expect(await queue.depth('q')).toMatchObject({ pending: 0 });
      expect(await queue.dequeue('q', { count: 3 })).toEqual([]);
      expect(await queue.dequeue('q#1', { count: 3 })).toHaveLength(3);
    });

    test('refuses a rate limit, and a change of type while any shard holds a message', async () => {
      await expect(queue.configure('q', { rateLimit: { count: 1, perMs: 1_000 } })).rejects.toMatchObject({
        field: 'rateLimit',
      });
      await queue.enqueue('q', [{ id: 'm1', payload: {} }]);
      const exclusive = { type: { kind: 'exclusive', key: 'user' } } as const;
      await expect(queue.configure('q', exclusive)).rejects.toMatchObject({ code: 'configuration-fixed' });
      await drain('q');
      expect(await queue.configure('q', exclusive)).toMatchObject(exclusive);
    });
  },
);
