/**
 * A connection to Redis that has gone silent while it owes an answer is replaced, and the call is made again; nobody waits without end for a
 * server that never answers.
 */
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
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

/** Accepts connections; answers what a driver says to greet it, if anything. */
async function startSilentServer({ greets }: { greets: boolean }): Promise<number> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket.on('error', () => socket.destroy()));
    let infos = 0;
    socket.on('data', (bytes) => {
      if (!greets) return;
      for (const [, command = ''] of bytes.toString('latin1').matchAll(/\*\d+\r\n\$\d+\r\n(\w+)\r\n/g)) {
        if (/^hello$/i.test(command)) socket.write('%1\r\n$5\r\nproto\r\n:3\r\n');
        if (/^client$/i.test(command)) socket.write('+OK\r\n');
        if (/^info$/i.test(command) && infos++ === 0) socket.write('$9\r\nloading:0\r\n');
      }
    });
  });
  ends.push(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

describe('a server that accepts connections and never answers', () => {
  test.each([
    ['is silent from the start', false],
    ['greets and is silent then', true],
  ])('is not waited for without end when it %s', async (_, greets) => {
    const port = await startSilentServer({ greets });
    const store = createRedisQueueStore({
      url: `redis://127.0.0.1:${port}`,
      durability: 'none',
      silenceMs: 50,
    });
    ends.push(() => store.stop());
    await expect(store.start()).rejects.toMatchObject({ code: 'redis-unavailable' });
  });

  test('is not waited for without end as the only node of a Cluster', async () => {
    const port = await startSilentServer({ greets: false });
    const store = createRedisQueueStore({
      cluster: [{ host: '127.0.0.1', port }],
      durability: 'none',
      silenceMs: 50,
    });
    ends.push(() => store.stop());
    await expect(store.start()).rejects.toMatchObject({ code: 'redis-unavailable' });
  });
});
