/** The redis store under load while its server is killed and its connections are cut: what was recorded is checked. */
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, test, vi } from 'vitest';
import { createRedisQueueStore, type RedisQueueStore } from '../../src/queue/redis/index.js';
import { startProxy } from '../../src/testing/proxy.js';
import { findRedisServer } from '../../src/testing/redis-server.js';
import { until } from '../../src/testing/until.js';
import { findBroken, Load, type LoadHistory } from './redis/load.js';
import { useOpened } from './redis/opened.js';

// Loads that run to their end on a busy machine.
vi.setConfig({ testTimeout: 150_000 });

const { atEnd, startServer } = useOpened();

function stores(count: number, url: string): RedisQueueStore[] {
  const all = Array.from({ length: count }, () =>
    createRedisQueueStore({ url, durability: 'strict', silenceMs: 1_000 }),
  );
  atEnd(() => Promise.all(all.map((store) => store.stop())));
  return all;
}

async function versionsHaveNoGap(
  store: RedisQueueStore,
  queue: string,
  history: LoadHistory,
): Promise<boolean> {
  for (const id of history.enqueued) {
    const versions = (await store.history({ queue, id, now: undefined })).map(({ version }) => version);
    if (versions.some((version, index) => version !== index + 1)) return false;
  }
  return true;
}

describe('the check itself', () => {
  const empty = (): LoadHistory => ({
    enqueued: new Set(),
    leases: [],
    completed: new Map(),
    staleAccepted: [],
    failures: 0,
  });
  const lease = { id: 'm', attempts: 1, startedAt: 0, leaseUntil: 100 };

  test.each<[string, Partial<LoadHistory>]>([
    [
      'two live leases',
      {
        leases: [
          { ...lease, leaseToken: 'a' },
          { ...lease, leaseToken: 'b', startedAt: 50, attempts: 2 },
        ],
      },
    ],
    [
      'an attempt that was not counted',
      {
        leases: [
          { ...lease, leaseToken: 'a' },
          { ...lease, leaseToken: 'b', startedAt: 150 },
        ],
      },
    ],
    ['a lost enqueue', { enqueued: new Set(['m']) }],
    ['an old token that was accepted', { staleAccepted: ['m'] }],
  ])('finds %s', (_, fault) => {
    expect(findBroken({ ...empty(), ...fault })).toHaveLength(1);
  });
});

describe.skipIf(!findRedisServer())('the history of the redis store (needs redis-server on the PATH)', () => {
  test('holds through SIGKILL and restart of a server with AOF always', async () => {
    const server = await startServer({ fsync: 'always' });
    const all = stores(6, server.url);
    const load = new Load({
      producers: all.slice(0, 2),
      consumers: all.slice(2),
      queue: 'q',
      messages: 3_000,
      leaseMs: 700,
      metadata: (number) => ({ kind: `k${number % 3}` }),
    });
    const running = load.run();
    for (const at of [0.1, 0.4, 0.7]) {
      await until(() => load.progress >= at);
      await server.kill();
      await delay(100);
      await server.restart();
    }
    await running;
    expect(load.history.enqueued.size).toBe(3_000);
    expect(findBroken(load.history)).toEqual([]);
    expect(await versionsHaveNoGap(all[0]!, 'q', load.history)).toBe(true);
    expect(await all[0]!.depth({ queue: 'q', where: { kind: 'k1' }, now: undefined })).toMatchObject({
      invisible: 0,
      pending: 0,
      running: 0,
    });
  });

  test('holds through connections that are cut and connections that go silent', async () => {
    const server = await startServer({ fsync: 'always' });
    const proxy = await startProxy({ target: { host: '127.0.0.1', port: server.port } });
    atEnd(() => proxy.stop());
    const all = stores(6, proxy.urlOf(server.url));
    const load = new Load({
      producers: all.slice(0, 2),
      consumers: all.slice(2),
      queue: 'q',
      messages: 3_000,
      leaseMs: 3_000,
    });
    const running = load.run();
    for (const at of [0.1, 0.2, 0.3, 0.4]) {
      await until(() => load.progress >= at);
      proxy.cut();
    }
    for (const at of [0.5, 0.7]) {
      await until(() => load.progress >= at);
      proxy.goHalfOpen();
    }
    await running;
    expect(proxy.accepted).toBeGreaterThan(all.length * 3);
    expect(load.history.enqueued.size).toBe(3_000);
    expect(findBroken(load.history)).toEqual([]);
  });
});
