/** What the redis store costs when little happens, and what it does when one call fails: commands, connections, promptness. */
import type { Redis } from 'ioredis';
import { setTimeout as delay } from 'node:timers/promises';
import { beforeEach, describe, expect, test } from 'vitest';
import { createQueue, createWorker, type Queue } from '../../src/queue/index.js';
import { createRedisQueueStore } from '../../src/queue/redis/index.js';
import { findRedisServer, type RedisServer } from '../../src/testing/redis-server.js';
import { until } from '../../src/testing/until.js';
import { useOpened } from './redis/opened.js';

describe.skipIf(!findRedisServer())('the redis store at rest (needs redis-server on the PATH)', () => {
  let server: RedisServer;
  let client: Redis;
  let queue: Queue;
  const { atEnd, startServer, connect } = useOpened();

  beforeEach(async () => {
    server = await startServer();
    client = connect(server);
    queue = createQueue({ store: createRedisQueueStore({ url: server.url, durability: 'none' }) });
    atEnd(() => queue.stop());
    await queue.start();
  });

  async function startWorker(queues: readonly string[], handled: string[]): Promise<void> {
    const worker = createWorker({
      queue,
      queues,
      slots: 20,
      handler: (message) => {
        handled.push(message.id);
      },
    });
    atEnd(() => worker.stop({ deadlineMs: 500 }));
    await worker.start();
  }

  test('an idle worker process sends fewer than 5 commands a second', async () => {
    await queue.enqueue('q', [{ id: 'm', payload: {} }]);
    const handled: string[] = [];
    await startWorker(['q'], handled);
    await until(() => handled.length === 1);
    await delay(500);
    const monitor = await server.connect().monitor();
    atEnd(() => monitor.disconnect());
    let commands = 0;
    monitor.on('monitor', (_time: string, _args: string[], source: string) => {
      if (source !== 'lua') commands += 1;
    });
    const beganMs = performance.now();
    await delay(6_000);
    expect(commands).toBeGreaterThan(0);
    expect(commands / ((performance.now() - beganMs) / 1_000)).toBeLessThan(5);
  });

  test('Q21: a process with 2,000 queues has as many connections as with two, and handles its first message soon', async () => {
    const names = Array.from({ length: 2_000 }, (_, index) => `q${index}`);
    await Promise.all(names.map((name) => queue.enqueue(name, [{ id: name, payload: {} }])));
    const handled: string[] = [];
    const beganMs = performance.now();
    await startWorker(names.slice(0, 200), handled);
    await until(() => handled.length > 0);
    expect(performance.now() - beganMs).toBeLessThan(5_000);
    await until(() => handled.length === 200);
    const connections = (await client.client('LIST')) as string;
    // One of them is the test's own.
    expect(connections.trim().split('\n').length - 1).toBeLessThanOrEqual(2);
  });

  test('Q25: a message whose first promotion failed is handled all the same, soon after it was due', async () => {
    const handled: string[] = [];
    await startWorker(['q'], handled);
    await queue.enqueue('q', [{ id: 'm', payload: {}, delayMs: 1_000 }]);
    await delay(900);
    // The server answers BUSY to everything until the script is killed.
    await client.config('SET', 'busy-reply-threshold', '1');
    const endless = connect(server);
    const running = endless.eval('while true do end', 0).catch(() => {});
    await delay(400);
    await client.script('KILL');
    await running;
    await until(() => handled.length === 1);
    const message = await queue.get('q', 'm');
    expect(message!.startedAt! - message!.visibleAt).toBeLessThan(2_000);
  });

  test('Q11: an expiry and an answer of the holder at one moment never undo each other', async () => {
    await queue.configure('q', { attemptsMax: 5 });
    for (let round = 0; round < 200; round += 1) {
      const id = `m${round}`;
      await queue.enqueue('q', [{ id, payload: {} }]);
      const [lease] = await queue.dequeue('q', { leaseMs: 1 });
      await delay(2);
      const [[completed], [canceled], [other]] = await Promise.all([
        round % 2 ? queue.complete('q', [lease!]) : Promise.resolve([undefined]),
        round % 4 === 0 ? queue.cancel('q', [id]) : Promise.resolve([undefined]),
        queue.dequeue('q', { leaseMs: 60_000 }),
        queue.store.housekeep({ now: undefined }),
      ]);
      const message = await queue.get('q', id);
      if (round % 2) expect(['done', 'lease-lost']).toContain(completed?.kind);
      if (round % 4 === 0) expect([canceled?.kind, message?.state]).toEqual(['canceled', 'canceled']);
      if (completed?.kind === 'done') expect(message?.state).toBe('completed');
      if (completed?.kind === 'lease-lost') expect(message).toMatchObject({ state: 'running', attempts: 2 });
      if (other && message?.state === 'running')
        expect(await queue.complete('q', [other])).toMatchObject([{ kind: 'done' }]);
    }
  });
});
