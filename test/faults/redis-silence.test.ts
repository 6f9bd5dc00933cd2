/** A connection to Redis that has gone silent while it owes an answer is replaced, and the call is made again. */
import { afterEach, expect, test } from 'vitest';
import { createQueue } from '../../src/queue/index.js';
import { createRedisQueueStore } from '../../src/queue/redis/index.js';
import { startProxy } from '../../src/testing/proxy.js';
import { findRedisServer, startRedisServer } from '../../src/testing/redis-server.js';

const ends: (() => Promise<unknown> | void)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end();
});

test.skipIf(!findRedisServer())(
  'a connection that owes an answer and says nothing is replaced (needs redis-server on the PATH)',
  async () => {
    const server = await startRedisServer();
    ends.push(() => server.stop());
    const proxy = await startProxy({ target: { host: '127.0.0.1', port: server.port } });
    ends.push(() => proxy.stop());
    const store = createRedisQueueStore({
      url: proxy.urlOf(server.url),
      durability: 'none',
      silenceMs: 200,
    });
    const queue = createQueue({ store });
    ends.push(() => store.stop());
    await queue.enqueue('q', [{ id: 'a', payload: 1 }]);
    // The connections that there are stay silent for good; those by which the driver tries again do not.
    expect(proxy.goHalfOpen()).toBeGreaterThan(0);
    expect(await queue.get('q', 'a')).toMatchObject({ id: 'a' });
  },
);
