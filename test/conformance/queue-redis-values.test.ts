/** Values, filters and limits of the redis store where its indexes take a way of their own: what is set aside, joined or compared as text. */
import { afterAll, beforeAll, expect, test, describe } from 'vitest';
import { createQueue, type Queue } from '../../src/queue/index.js';
import { createRedisQueueStore, type RedisQueueStore } from '../../src/queue/redis/index.js';
import { createKeys } from '../../src/queue/redis/keys.js';
import { functionLibrary } from '../../src/queue/redis/library.js';
import { ManualClock } from '../../src/testing/manual-clock.js';
import { findRedisServer, type RedisServer, startRedisServer } from '../../src/testing/redis-server.js';

const type = { kind: 'exclusive', key: 'user' } as const;

describe.skipIf(!findRedisServer())('values on the redis store (need redis-server on the PATH)', () => {
  let server: RedisServer;
  let store: RedisQueueStore;
  let queue: Queue;
  const clock = new ManualClock();
  beforeAll(async () => {
    server = await startRedisServer();
    store = createRedisQueueStore({ url: server.url, durability: 'none' });
    await store.start();
    queue = createQueue({ store, clock });
  });
  afterAll(async () => {
    await store.stop();
    await server.stop();
  });

  const message = (id: string, user: string, priority: number) => ({
    id,
    payload: {},
    priority,
    metadata: { user, tenant: 't' },
  });
  const where = { tenant: 't' };

  test('what a filter has set aside comes back at its own place', async () => {
    await queue.configure('aside', { type });
    await queue.enqueue('aside', [message('running', 'u', 1), message('blocked', 'u', 5)]);
    const [running] = await queue.dequeue('aside', { where });
    expect(await queue.dequeue('aside', { where })).toEqual([]);
    await queue.complete('aside', [running!]);
    await queue.enqueue('aside', [message('better', 'v', 3), message('worse', 'w', 7)]);
    const taken = await queue.dequeue('aside', { where, count: 3 });
    expect(taken.map(({ id }) => id)).toEqual(['better', 'blocked', 'worse']);
  });

  test('a filter takes one message of a value at a time, however many it asks for', async () => {
    await queue.configure('one', { type });
    await queue.enqueue('one', [message('u1', 'u', 1), message('u2', 'u', 2), message('v1', 'v', 3)]);
    const taken = await queue.dequeue('one', { where, count: 3 });
    expect(taken.map(({ id }) => id)).toEqual(['u1', 'v1']);
  });

  test('priorities of sixteen digits are told apart in every index', async () => {
    await queue.configure('digits', { type });
    const best = Number.MAX_SAFE_INTEGER - 3;
    const messages = [2, 0, 3, 1].map((more) => message(`m${more}`, `u${more}`, best + more));
    await queue.enqueue('digits', messages);
    const first = await queue.dequeue('digits', { where, count: 2 });
    const others = await queue.dequeue('digits', { count: 2 });
    expect([...first, ...others].map(({ id }) => id)).toEqual(['m0', 'm1', 'm2', 'm3']);
  });

  test('a rate limit whose many grants are joined lets through less rather than more', async () => {
    await queue.configure('limit', { rateLimit: { count: 140, perMs: 1_000 } });
    await queue.enqueue(
      'limit',
      Array.from({ length: 300 }, () => ({ payload: {} })),
    );
    for (let call = 0; call < 140; call += 1) {
      expect(await queue.dequeue('limit')).toHaveLength(1);
      clock.advance(1);
    }
    expect(await queue.dequeue('limit')).toEqual([]);
    // Nine of the 140 are less than a second old.
    clock.advance(990);
    expect((await queue.dequeue('limit', { count: 200 })).length).toBeLessThanOrEqual(140 - 9);
  });

  test('a walk of a filter goes on with the equals of a message that has left meanwhile', async () => {
    await queue.enqueue('walk', [message('a', 'u', 1), message('b', 'u', 2), message('c', 'u', 2)]);
    const client = server.connect();
    const base = createKeys('headgate').base('walk');
    const [, cursor] = await client.zrangeBuffer(`${base}:k:tenant\0t`, '0', '-1');
    await queue.cancel('walk', ['b']);
    const name = functionLibrary().functionName('dequeue');
    // As a client asks that was told to go on behind `b`.
    const args = [clock.storeNow(), '0', '5', '', 'r.random', '0', '2', cursor!, 'tenant', 't'];
    await client.call('FCALL', name, '2', `${base}:q`, base, ...args);
    client.disconnect();
    expect(await queue.get('walk', 'c')).toMatchObject({ state: 'running' });
    expect(await queue.get('walk', 'a')).toMatchObject({ state: 'pending' });
  });
});
