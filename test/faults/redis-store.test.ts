/** What the redis store does when its server forgets, refuses, is full, falls behind or is damaged. */
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import type { LogFields } from '../../src/log.js';
import { createQueue, type Queue } from '../../src/queue/index.js';
import {
  createRedisQueueStore,
  type RedisQueueStore,
  type RedisQueueStoreOptions,
} from '../../src/queue/redis/index.js';
import { startProxy } from '../../src/testing/proxy.js';
import { findRedisServer } from '../../src/testing/redis-server.js';
import { until } from '../../src/testing/until.js';
import { useOpened } from './redis/opened.js';

const { atEnd, startServer, connect } = useOpened();

function open(
  url: string,
  options: Partial<RedisQueueStoreOptions> = {},
): { store: RedisQueueStore; queue: Queue } {
  const store = createRedisQueueStore({
    url,
    durability: 'none',
    prefix: 't',
    ...options,
  } as RedisQueueStoreOptions);
  atEnd(() => store.stop());
  return { store, queue: createQueue({ store }) };
}

const messages = (count: number, more: object = {}) =>
  Array.from({ length: count }, (_, index) => ({ id: `m${index}`, payload: {}, ...more }));

describe.skipIf(!findRedisServer())('the redis store and its server (needs redis-server on the PATH)', () => {
  test('a server that has lost its functions gets them again, and no call fails', async () => {
    const server = await startServer();
    const { queue } = open(server.url);
    await queue.enqueue('q', messages(1));
    const client = connect(server);
    await client.script('FLUSH');
    await client.call('FUNCTION', 'FLUSH');
    const [answer] = await Promise.all([
      queue.dequeue('q'),
      queue.enqueue('q', messages(3)),
      queue.depth('q'),
    ]);
    expect(answer).toHaveLength(1);
    expect(await queue.depth('q')).toMatchObject({ pending: 2, running: 1 });
  });

  test('a server that was emptied is used anew, and its queues are found again', async () => {
    const server = await startServer();
    const { queue } = open(server.url);
    await queue.enqueue('q', messages(1));
    await connect(server).flushall();
    await queue.enqueue('q', messages(1));
    expect(await queue.queues()).toEqual(['q']);
  });

  test('a replica is refused by name, and used once it has become the primary', async () => {
    const primary = await startServer();
    const replica = await startServer({ settings: { replicaof: `127.0.0.1 ${primary.port}` } });
    const { queue } = open(replica.url);
    await expect(queue.enqueue('q', messages(1))).rejects.toMatchObject({ code: 'redis-unavailable' });
    await connect(replica).replicaof('NO', 'ONE');
    await until(() =>
      queue.enqueue('q', messages(1)).then(
        () => true,
        () => false,
      ),
    );
    expect(await queue.dequeue('q')).toHaveLength(1);
  });

  test('Q44: a full server refuses messages cleanly; what runs can be ended, and after a purge there is room', async () => {
    const server = await startServer({ settings: { maxmemory: '8mb', 'maxmemory-policy': 'noeviction' } });
    const { queue } = open(server.url);
    const payload = 'x'.repeat(16_000);
    await queue.enqueue('q', messages(3, { payload, priority: -1 }));
    const leases = await queue.dequeue('q', { count: 3 });
    let number = 0;
    const fill = async (): Promise<unknown> => {
      for (;;) await queue.enqueue('q', [{ id: `fill${number++}`, payload }]);
    };
    await expect(fill()).rejects.toMatchObject({ code: 'redis-full' });
    const { pending } = await queue.depth('q');
    expect(await queue.get('q', `fill${number - 1}`)).toBeUndefined();
    expect(pending).toBe(number - 1);
    expect(await queue.extend('q', [leases[0]!])).toMatchObject([{ kind: 'done' }]);
    expect(await queue.complete('q', [leases[0]!])).toMatchObject([{ kind: 'done' }]);
    expect(await queue.fail('q', [{ ...leases[1]!, error: 'no' }])).toMatchObject([{ kind: 'done' }]);
    expect(await queue.release('q', [leases[2]!])).toMatchObject([{ kind: 'done' }]);
    await queue.purge('q', 'pending');
    expect(await queue.enqueue('q', [{ id: 'again', payload }])).toMatchObject([{ created: true }]);
  });

  test('on a full server dequeue, cancel and what is due go on, and what would store more changes nothing', async () => {
    const server = await startServer();
    const { store, queue } = open(server.url);
    await queue.enqueue('q', [
      ...messages(11, { priority: -1, attemptsMax: 1 }),
      { id: 'late', payload: {}, delayMs: 1 },
    ]);
    const [held, wrong] = await queue.dequeue('q', { count: 2 });
    await queue.fail('q', [{ ...wrong!, error: 'no' }]);
    // More than that is in use by any server: from here on it is full.
    await connect(server).config('SET', 'maxmemory', '1');
    const full = { code: 'redis-full' };
    await expect(queue.enqueue('q', [{ id: 'more', payload: {} }])).rejects.toMatchObject(full);
    await expect(queue.change('q', [{ id: 'm9', payload: 1 }])).rejects.toMatchObject(full);
    await expect(queue.requeue('q', [wrong!.id])).rejects.toMatchObject(full);
    await expect(queue.configure('q', { attemptsMax: 9 })).rejects.toMatchObject(full);
    const followUps = [{ queue: 'q', messages: [{ id: 'next', payload: 1 }] }];
    await expect(queue.complete('q', [{ ...held!, followUps }])).rejects.toMatchObject(full);
    expect(await queue.get('q', held!.id)).toMatchObject({ state: 'running', version: 2 });
    expect(await queue.get('q', 'm9')).toMatchObject({ payload: {}, version: 1 });
    expect(await queue.get('q', wrong!.id)).toMatchObject({ state: 'errored' });
    // Alone, several by one call, and two calls together.
    expect(await queue.dequeue('q')).toHaveLength(1);
    expect(await queue.dequeue('q', { count: 2 })).toHaveLength(2);
    expect((await Promise.all([queue.dequeue('q'), queue.dequeue('q')])).flat()).toHaveLength(2);
    expect(await queue.dequeue('q', { leaseMs: 1 })).toHaveLength(1);
    await until(async () => (await store.housekeep({ now: undefined })).moved > 0);
    expect(await queue.cancel('q', ['m8'])).toMatchObject([{ kind: 'canceled' }]);
    const { messages: next } = await store.settleAndDequeue!({
      queue: 'q',
      complete: [{ id: held!.id, leaseToken: held!.leaseToken, result: undefined }],
      dequeue: {
        queue: 'q',
        count: 9,
        where: {},
        leaseMs: undefined,
        requestId: 'r',
        worker: undefined,
        now: undefined,
      },
      now: undefined,
    });
    expect(next.map(({ id }) => id)).toEqual(['m9', 'm10', 'late']);
  });

  test('Q10: a request whose reply was lost gets the same leases again, the next request the next message', async () => {
    const server = await startServer();
    const proxy = await startProxy({ target: { host: '127.0.0.1', port: server.port } });
    atEnd(() => proxy.stop());
    const { queue } = open(server.url);
    await queue.enqueue('q', messages(3));
    const cut = open(proxy.urlOf(server.url), { silenceMs: 300 });
    await cut.store.start();
    proxy.goHalfOpen();
    proxy.delayReplies(60_000);
    const lost = cut.queue.dequeue('q', { count: 2, requestId: 'r1' }).catch(() => undefined);
    await delay(50);
    proxy.heal();
    proxy.cut();
    await lost;
    const first = await queue.dequeue('q', { count: 2, requestId: 'r1' });
    expect(first.map(({ id, attempts }) => [id, attempts])).toEqual([
      ['m0', 1],
      ['m1', 1],
    ]);
    expect(await queue.dequeue('q', { count: 2, requestId: 'r1' })).toEqual(first);
    expect((await queue.dequeue('q', { count: 2, requestId: 'r2' })).map(({ id }) => id)).toEqual(['m2']);
  });

  test('Q15: a damaged message holds no other back, and the log names it once a second at most', async () => {
    const server = await startServer();
    const lines: LogFields[] = [];
    const log = { debug() {}, info() {}, warn() {}, error: (fields: LogFields) => void lines.push(fields) };
    const { queue } = open(server.url, { log });
    await queue.enqueue('q', messages(1_000, { delayMs: 50 }));
    await queue.enqueue('q', [{ id: 'other', payload: {} }]);
    const client = connect(server);
    await client.hdel('t:{q}:m', 'm500', 'm501');
    await delay(60);
    const taken = await queue.dequeue('q', { count: 1_000 });
    expect(taken).toHaveLength(999);
    expect(lines).toMatchObject([{ queue: 'q', message: 'm500' }]);
  });

  test('Q50: numbers past 2^31, 2^32 and 2^53, and past the end of a half, stay exact and in order', async () => {
    const server = await startServer();
    const client = connect(server);
    for (const start of [9_999_997n, 2n ** 31n - 2n, 2n ** 32n - 2n, 2n ** 53n - 2n]) {
      const { queue } = open(server.url, { prefix: `t${start}` });
      const seq = Buffer.alloc(8);
      seq.writeUInt32BE(Number(start / 10_000_000n), 0);
      seq.writeUInt32BE(Number(start % 10_000_000n), 4);
      await client.hset(`t${start}:{q}:q`, 'seq', seq);
      await queue.enqueue('q', messages(5, { priority: 1 }));
      const first = await queue.list('q', { state: 'pending', limit: 3 });
      const rest = await queue.list('q', { state: 'pending', limit: 3, after: first.next });
      expect([...first.messages, ...rest.messages].map(({ id }) => id)).toEqual([
        'm0',
        'm1',
        'm2',
        'm3',
        'm4',
      ]);
      const [event] = await queue.history('q', 'm4');
      expect(event?.incarnation).toBe(String(start + 5n));
      const leases = await queue.dequeue('q', { count: 5 });
      expect(leases.map(({ id }) => id)).toEqual(['m0', 'm1', 'm2', 'm3', 'm4']);
      expect(await queue.complete('q', leases)).toHaveLength(5);
      const done = await queue.list('q', { state: 'completed', limit: 2 });
      const more = await queue.list('q', { state: 'completed', limit: 5, after: done.next });
      expect([...done.messages, ...more.messages].map(({ id }) => id)).toEqual([
        'm0',
        'm1',
        'm2',
        'm3',
        'm4',
      ]);
    }
  });

  test('Q37, Q41: of dead messages, values and pairs no key and no member is left', async () => {
    const server = await startServer();
    const { store, queue } = open(server.url);
    await queue.configure('q', {
      type: { kind: 'exclusive', key: 'user' },
      retentionMs: { completed: 0, canceled: 0, errored: 0 },
    });
    const many = Array.from({ length: 2_000 }, (_, index) => ({
      id: `m${index}`,
      payload: {},
      metadata: { user: `u${index}`, tenant: `t${index % 7}` },
      ...(index % 5 === 0 ? { delayMs: 1 } : {}),
    }));
    await queue.enqueue('q', many);
    await delay(5);
    for (;;) {
      const leases = await queue.dequeue('q', { count: 500 });
      if (leases.length === 0) break;
      await queue.complete('q', leases);
    }
    const later = (await store.time(undefined)) + 60_001;
    while ((await store.housekeep({ now: later })).moved > 0);
    expect((await connect(server).keys('t:{q}:*')).sort()).toEqual(['t:{q}:q', 't:{q}:r']);
    expect(await connect(server).zcard('t:{q}:r')).toBe(1);
  });

  test('what another than these functions has put among what comes due is found as well', async () => {
    const server = await startServer();
    const { queue } = open(server.url);
    await queue.enqueue('q', [{ id: 'm', payload: {}, delayMs: 3_600_000 }]);
    expect(await queue.dequeue('q')).toEqual([]);
    const client = connect(server);
    const [member] = await client.zrangeBuffer('t:{q}:i', '0', '0');
    await client.zadd('t:{q}:i', 'XX', '1', member!);
    await until(async () => (await queue.dequeue('q')).some(({ id }) => id === 'm'));
  });

  test('who watches is told when the listening connection is back: hints may have been missed', async () => {
    const server = await startServer();
    const proxy = await startProxy({ target: { host: '127.0.0.1', port: server.port } });
    atEnd(() => proxy.stop());
    const { store } = open(proxy.urlOf(server.url));
    const told = new Set<string>();
    await store.watch(['q', 'r'], (name) => told.add(name));
    await until(() => told.size === 2);
    told.clear();
    proxy.cut();
    await until(() => told.size === 2);
  });

  test('hints come again after the listening connection has gone silent', async () => {
    const server = await startServer();
    const proxy = await startProxy({ target: { host: '127.0.0.1', port: server.port } });
    atEnd(() => proxy.stop());
    const { store, queue } = open(proxy.urlOf(server.url));
    let hints = 0;
    await store.watch(['q'], () => {
      hints += 1;
    });
    const isHinted = async (): Promise<boolean> => {
      await queue.purge('q', 'pending');
      hints = 0;
      await queue.enqueue('q', [{ payload: {} }]);
      await delay(50);
      return hints > 0;
    };
    const isHintedAlways = async () => (await isHinted()) && (await isHinted()) && (await isHinted());
    await delay(200);
    await until(isHintedAlways);
    expect(proxy.goHalfOpen({ sent: 'subscribe' })).toBe(1);
    expect(await isHinted()).toBe(false);
    await until(isHintedAlways);
    expect(proxy.accepted).toBeGreaterThan(2);
  });
});

test('a start without an answer is refused by the name that every later call has', async () => {
  const server = await startServer();
  const { url } = server;
  await server.stop();
  const { queue } = open(url);
  await expect(queue.start()).rejects.toMatchObject({ code: 'redis-unavailable' });
});
