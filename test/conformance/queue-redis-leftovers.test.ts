/**
 * What the redis store leaves in its keys, and when it looks and hints: things that no answer shows at once, and that would cost every
 * later call something, or let somebody wait for a poll.
 */
import type { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createQueue, type LeasedMessage, type NewMessage, type Queue } from '../../src/queue/index.js';
import { createRedisQueueStore, type RedisQueueStore } from '../../src/queue/redis/index.js';
import { ManualClock } from '../../src/testing/manual-clock.js';
import { findRedisServer, type RedisServer, startRedisServer } from '../../src/testing/redis-server.js';

const day = 86_400_000;
const exclusive = { type: { kind: 'exclusive', key: 'user' } } as const;
let runs = 0;

describe.skipIf(!findRedisServer())('keys of the redis store (need redis-server on the PATH)', () => {
  let server: RedisServer;
  let client: Redis;
  let store: RedisQueueStore;
  let queue: Queue;
  let clock: ManualClock;
  let base: string;
  let damaged: unknown[];

  beforeAll(async () => {
    server = await startRedisServer();
    client = server.connect();
  });
  afterAll(async () => {
    client.disconnect();
    await server.stop();
  });
  beforeEach(() => {
    const prefix = `k${++runs}`;
    base = `${prefix}:{q}`;
    damaged = [];
    const log = {
      debug() {},
      info() {},
      warn() {},
      error: ({ message }: { message?: unknown }) => void damaged.push(message),
    };
    store = createRedisQueueStore({ url: server.url, durability: 'none', prefix, log });
    clock = new ManualClock();
    queue = createQueue({ store, clock });
  });
  afterEach(() => store.stop());

  const enqueue = (ids: readonly string[], more: Partial<NewMessage> = {}) =>
    queue.enqueue(
      'q',
      ids.map((id) => ({ id, payload: {}, ...more })),
    );
  const take = (count: number, where: Record<string, string> = {}) => queue.dequeue('q', { count, where });
  const takeOne = async (where: Record<string, string> = {}): Promise<LeasedMessage> => {
    const [lease] = await take(1, where);
    return lease!;
  };
  async function tidy(): Promise<void> {
    while ((await store.housekeep({ now: clock.storeNow() })).moved > 0);
  }

  describe('when every message has ended', () => {
    const retentions = [
      ['at once', { completed: 0, canceled: 0, errored: 0 }],
      ['after a day', { completed: day, canceled: day, errored: day }],
    ] as const;
    const kinds = [
      ['a simple queue', {}, {}],
      ['a simple queue with filters', {}, { user: 'u', tenant: 't' }],
      ['an exclusive queue', exclusive, { user: 'u', tenant: 't' }],
    ] as const;

    test.each(kinds.flatMap((kind) => retentions.map((retention) => [...kind, ...retention] as const)))(
      '%s holds no key but its own',
      async (_kind, type, metadata, _when, retentionMs) => {
        await queue.configure('q', { ...type, retentionMs });
        const ids = Array.from({ length: 12 }, (_, index) => `m${index}`);
        await enqueue(ids, { metadata, attemptsMax: 2 });
        await enqueue(['once'], { metadata, uniqueWhileLive: true });
        const where: Record<string, string> = 'tenant' in metadata ? { tenant: 't' } : {};
        const first = await takeOne(where);
        // Of an exclusive queue the others are set aside by this.
        await take(2, where).then((leases) => queue.complete('q', leases));
        await queue.complete('q', [first]);
        await queue.fail('q', [{ ...(await takeOne()), error: 'no', retryDelayMs: 0 }]);
        await queue.fail('q', [{ ...(await takeOne(where)), error: 'no' }]);
        await queue.release('q', [{ ...(await takeOne()), delayMs: 10 }]);
        const canceled = await takeOne(where);
        await take(1, where).then((leases) =>
          queue.cancel('q', [canceled.id, ...leases.map(({ id }) => id)]),
        );
        await queue.complete('q', await take(3));
        await takeOne();
        clock.advance(60_000);
        await tidy();
        // Set aside and canceled before their value is free again.
        const last = await takeOne();
        await take(1, where).then((leases) => queue.complete('q', leases));
        await queue.cancel('q', [...ids, 'once']);
        await queue.complete('q', [last]);
        clock.advance(2 * day);
        await tidy();
        clock.advance(60_001);
        await tidy();
        expect((await client.keys(`${base}:*`)).sort()).toEqual([`${base}:q`, `${base}:r`]);
        expect(await client.zcard(`${base}:r`)).toBe(1);
      },
    );

    test('of a lease that ended a queue remembers no request, however it was taken and ended', async () => {
      await enqueue(Array.from({ length: 20 }, (_, index) => `m${index}`));
      await queue.complete('q', [await takeOne()]);
      await queue.complete('q', await take(3));
      await queue.fail('q', [{ ...(await takeOne()), error: 'no' }]);
      const [one, ...others] = await take(3);
      await queue.complete('q', [one!]);
      await queue.cancel(
        'q',
        others.map(({ id }) => id),
      );
      expect(await client.exists(`${base}:t`)).toBe(0);
    });

    test('the token of what is not kept is remembered for 60 s, and then no more', async () => {
      await queue.configure('q', { retentionMs: { completed: 0, canceled: 0, errored: 0 } });
      await enqueue(['alone', 'a', 'b']);
      const leases = await take(3);
      await queue.complete('q', leases.slice(0, 1));
      await queue.complete('q', leases.slice(1));
      const kinds = async () => {
        await tidy();
        return (await queue.complete('q', leases)).map(({ kind }) => kind);
      };
      clock.advance(59_999);
      expect(await kinds()).toEqual(['done', 'done', 'done']);
      clock.advance(1);
      expect(await kinds()).toEqual(['lease-lost', 'lease-lost', 'lease-lost']);
    });

    test('a message that ended again is kept from then on, not from its first end', async () => {
      await queue.configure('q', { retentionMs: { completed: day, canceled: day, errored: day } });
      // What ends together is remembered together, and not taken out again when one of it goes on.
      await enqueue(['m', 'n']);
      await queue.fail(
        'q',
        (await take(2)).map((lease) => ({ ...lease, error: 'no' })),
      );
      clock.advance(day / 2);
      await queue.requeue('q', ['m']);
      await queue.fail('q', [{ ...(await takeOne()), error: 'no' }]);
      clock.advance(day / 2 + 1);
      await tidy();
      expect(await queue.get('q', 'n')).toBeUndefined();
      expect(await queue.get('q', 'm')).toMatchObject({ state: 'errored' });
      clock.advance(day / 2);
      await tidy();
      expect(await queue.get('q', 'm')).toBeUndefined();
    });
  });

  describe('to the millisecond, though nobody looks before something comes due', () => {
    const ended: [string, (lease: LeasedMessage) => Promise<unknown>][] = [
      ['a lease that runs out', async () => {}],
      ['a lease that was made shorter', (lease) => queue.extend('q', [{ ...lease, leaseMs: 5 }])],
      ['a release with a delay', (lease) => queue.release('q', [{ ...lease, delayMs: 5 }])],
      ['a retry with a delay', (lease) => queue.fail('q', [{ ...lease, error: 'no', retryDelayMs: 5 }])],
    ];
    test.each(ended)('%s is due again', async (name, end) => {
      const leaseMs = name === ended[0]![0] ? 5 : 1_000;
      await queue.configure('q', { retentionMs: { completed: 0, canceled: 0, errored: 0 } });
      // Taken alone, several at once, and by a filter: three ways through the store.
      for (const [count, where] of [
        [1, undefined],
        [2, undefined],
        [1, { kind: 'a' }],
      ] as const) {
        await enqueue(['a', 'b'].slice(0, count), { metadata: where ?? {} });
        // One look, so that it is known when the next is needed.
        await queue.depth('q');
        const leases = await queue.dequeue('q', { count, leaseMs, ...(where && { where }) });
        expect(leases).toHaveLength(count);
        for (const lease of leases) await end(lease);
        clock.advance(4);
        expect(await take(5)).toEqual([]);
        clock.advance(1);
        const again = await take(5);
        expect(again).toHaveLength(count);
        await queue.complete('q', again);
      }
    });

    test('a message with a delay is due, and one whose time is changed', async () => {
      await queue.depth('q');
      await enqueue(['m'], { delayMs: 5 });
      await enqueue(['later'], { delayMs: 3_600_000 });
      await queue.change('q', [{ id: 'later', visibleAt: clock.now() + 7 }]);
      clock.advance(5);
      expect(await take(5)).toMatchObject([{ id: 'm' }]);
      clock.advance(2);
      expect(await take(5)).toMatchObject([{ id: 'later' }]);
    });

    test('a lease is due that outlives a look, beside a message that is due later', async () => {
      await enqueue(['m']);
      await enqueue(['later'], { delayMs: 3_600_000 });
      await queue.dequeue('q', { leaseMs: 45 });
      for (const ms of [20, 20]) {
        clock.advance(ms);
        expect(await take(5)).toEqual([]);
      }
      clock.advance(5);
      expect(await take(5)).toMatchObject([{ id: 'm' }]);
    });

    test('what another has put among what comes due is found 20 ms after the last look', async () => {
      await enqueue(['m'], { delayMs: 3_600_000 });
      expect(await take(1)).toEqual([]);
      const [member] = await client.zrangeBuffer(`${base}:i`, '0', '0');
      await client.zadd(`${base}:i`, 'XX', '1', member!);
      clock.advance(20);
      expect(await take(1)).toMatchObject([{ id: 'm' }]);
    });
  });

  describe('a hint is published', () => {
    /** How many hints a call has sent. */
    async function hintsOf(call: () => Promise<unknown>): Promise<number> {
      const listener = server.connect();
      let hints = 0;
      const marked = new Promise<void>((resolve) => {
        listener.on('message', (channel: string) => {
          if (channel === `${base}:mark`) resolve();
          else hints += 1;
        });
      });
      await listener.subscribe(`${base}:hint`, `${base}:mark`);
      await call();
      await client.publish(`${base}:mark`, '');
      await marked;
      listener.disconnect();
      return hints;
    }

    const a = { metadata: { user: 'u' } };
    test.each<[string, object, (lease: LeasedMessage) => Promise<unknown>]>([
      [
        'an enqueue beside a message of another filter',
        {},
        () => enqueue(['new'], { metadata: { kind: 'b' } }),
      ],
      [
        'a bulk beside a message of another filter',
        {},
        () => enqueue(['n1', 'n2'], { metadata: { kind: 'b' } }),
      ],
      ['a release', {}, (lease) => queue.release('q', [lease])],
      ['a retry', {}, (lease) => queue.fail('q', [{ ...lease, error: 'no', retryDelayMs: 0 }])],
      ['a lease that housekeeping finds expired', {}, () => (clock.advance(day), tidy())],
      [
        'a message that is requeued',
        {},
        (lease) => queue.fail('q', [{ ...lease, error: 'no' }]).then(() => queue.requeue('q', [lease.id])),
      ],
      ['a completion that frees a value', exclusive, (lease) => queue.complete('q', [lease])],
      ['a failure that frees a value', exclusive, (lease) => queue.fail('q', [{ ...lease, error: 'no' }])],
      ['a cancel that frees a value', exclusive, (lease) => queue.cancel('q', [lease.id])],
      [
        'a release with a delay that frees a value',
        exclusive,
        (lease) => queue.release('q', [{ ...lease, delayMs: 1_000 }]),
      ],
      [
        'a queue that is resumed',
        { dequeueBlocked: false },
        () => queue.configure('q', { dequeueBlocked: false }),
      ],
    ])('by %s', async (_, configuration, call) => {
      await queue.configure('q', configuration);
      await enqueue(['running', 'behind'], a);
      const lease = await takeOne();
      expect(await hintsOf(() => call(lease))).toBeGreaterThan(0);
    });
  });

  test.each([
    ['waiting', {}, ':p'],
    ['the best of its value', exclusive, ':h'],
    ['met by a filter', {}, ':k:user\0u1'],
    ['invisible', { delayMs: 10 }, ':i'],
  ] as const)(
    'an id that an index names in vain is told, and taken out of it (%s)',
    async (_, configuration, index) => {
      await queue.configure('q', configuration);
      await enqueue(['m0'], { metadata: { user: 'u0' } });
      await enqueue(['m1'], { metadata: { user: 'u1' } });
      await enqueue(['m2'], { metadata: { user: 'u1', kind: 'b' } });
      await client.hdel(`${base}:m`, 'm1');
      clock.advance(10);
      const where = index.startsWith(':k') ? { user: 'u1' } : undefined;
      const taken = await queue.dequeue('q', { count: 10, ...(where && { where }) });
      expect(taken.map(({ id }) => id)).toEqual(where ? ['m2'] : index === ':h' ? ['m0'] : ['m0', 'm2']);
      expect(damaged).toEqual(['m1']);
      const members = await client.zrange(`${base}${index}`, '0', '-1');
      expect(members.filter((member) => member.endsWith('m1'))).toEqual([]);
    },
  );

  test('beside an id without a message each of the others keeps what is its own', async () => {
    await enqueue(['a', 'b']);
    await queue.release(
      'q',
      (await take(2)).map((lease) => ({ ...lease, refund: false })),
    );
    await enqueue(['fresh']);
    await client.hdel(`${base}:m`, 'b');
    expect((await take(3)).map(({ id, attempts, version }) => [id, attempts, version])).toEqual([
      ['a', 2, 4],
      ['fresh', 1, 2],
    ]);
  });

  test('of a history the enqueue and the last 256 changes are kept, whichever way the message ends', async () => {
    const ids = ['alone', 'b1', 'b2', 'failed'];
    await enqueue(ids, { attemptsMax: 1 });
    const leases = await take(4);
    await Promise.all(Array.from({ length: 260 }, () => queue.extend('q', leases)));
    await queue.complete('q', [leases[0]!]);
    await queue.complete('q', [leases[1]!, leases[2]!]);
    await queue.fail('q', [{ ...leases[3]!, error: 'no' }]);
    for (const id of ids) {
      const versions = (await queue.history('q', id)).map(({ version }) => version);
      const last = (await queue.get('q', id))!.version;
      expect(last).toBe(1 + 1 + 260 + 1);
      expect(versions).toEqual([1, ...Array.from({ length: 256 }, (_, index) => last - 255 + index)]);
    }
  });
});
