/** The redis store on a Cluster under load: a primary is killed, slots move to another. What was recorded is checked. */
import { Cluster } from 'ioredis';
import { describe, expect, test, vi } from 'vitest';
import { createQueue } from '../../src/queue/index.js';
import {
  createRedisQueueStore,
  type RedisDurability,
  type RedisQueueStore,
} from '../../src/queue/redis/index.js';
import type { RedisCluster } from '../../src/testing/redis-cluster.js';
import { findRedisServer } from '../../src/testing/redis-server.js';
import { until } from '../../src/testing/until.js';
import { failOver, slotOf } from './redis/fail-over.js';
import { countLosses, countOldTokensAccepted, findBroken, Load } from './redis/load.js';
import { useOpened } from './redis/opened.js';

// Loads that run to their end on a busy machine.
vi.setConfig({ testTimeout: 150_000 });

const { atEnd, startCluster } = useOpened();

async function open(
  cluster: RedisCluster,
  count: number,
  durability: RedisDurability,
): Promise<RedisQueueStore[]> {
  const all = Array.from({ length: count }, () =>
    createRedisQueueStore({ cluster: cluster.nodes, durability, silenceMs: 2_000, prefix: 'c' }),
  );
  atEnd(() => Promise.all(all.map((store) => store.stop())));
  for (const store of all) await store.start();
  return all;
}

describe.skipIf(!findRedisServer())('the redis store on a Cluster (needs redis-server on the PATH)', () => {
  test('loses nothing that was acknowledged in strict when a primary is killed', async () => {
    const cluster = await startCluster({ fsync: 'everysec', nodeTimeoutMs: 1_000 });
    const all = await open(cluster, 6, 'strict');
    const report = await all[0]!.durability();
    expect(report).toMatchObject({ durability: 'strict', confirmedBy: 1 });
    const load = new Load({
      producers: all.slice(0, 2),
      consumers: all.slice(2),
      queue: 'q',
      messages: 3_000,
      leaseMs: 3_000,
    });
    const slot = await slotOf(cluster, 'c', 'q');
    const primary = await cluster.primaryOf(slot);
    const running = load.run();
    await until(() => load.progress >= 0.3);
    await primary.kill();
    await until(async () => (await cluster.primaryOf(slot)) !== primary);
    // Nobody confirms what is written to the new primary until the old one is back as its replica.
    await until(() => load.history.failures > 0);
    await primary.restart();
    await running;
    expect(load.history.enqueued.size).toBe(3_000);
    expect(findBroken(load.history)).toEqual([]);
  });

  test('without strict a failover may lose what was acknowledged, and lets no old token through', async () => {
    const cluster = await startCluster({ fsync: 'everysec', nodeTimeoutMs: 1_000 });
    const all = await open(cluster, 6, 'everysec');
    const producing = new AbortController();
    const load = new Load({
      producers: all.slice(0, 2),
      consumers: all.slice(2),
      queue: 'q',
      messages: 3_000,
      leaseMs: 2_000,
      producing: producing.signal,
      untilEmpty: true,
    });
    const slot = await slotOf(cluster, 'c', 'q');
    const primary = await cluster.primaryOf(slot);
    const running = load.run();
    await until(() => load.progress >= 0.3);
    await failOver(cluster, { primary, slot, behindMs: 200 });
    producing.abort();
    await running;
    const { lost, doneTwice, tokensTwice } = countLosses(load.history);
    // The replica was behind when it took over, and nobody waited for it.
    expect(lost + doneTwice).toBeGreaterThan(0);
    expect(tokensTwice).toBe(0);
    expect(await countOldTokensAccepted(all[0]!, 'q', load.history)).toBe(0);
  });

  test('goes on while the slot of the queue moves to another primary, key by key', async () => {
    const cluster = await startCluster({ replicas: false });
    const all = await open(cluster, 4, 'none');
    const load = new Load({
      producers: all.slice(0, 2),
      consumers: all.slice(2),
      queue: 'q',
      messages: 3_000,
      leaseMs: 3_000,
      metadata: (number) => ({ kind: `k${number % 5}` }),
    });
    const slot = await slotOf(cluster, 'c', 'q');
    const running = load.run();
    for (const at of [0.2, 0.5]) {
      await until(() => load.progress >= at);
      const source = await cluster.primaryOf(slot);
      await cluster.moveSlot(slot, cluster.servers.find((server) => server !== source)!);
    }
    await running;
    expect(load.history.enqueued.size).toBe(3_000);
    expect(findBroken(load.history)).toEqual([]);
    for (const kind of ['k0', 'k4'])
      expect(await all[0]!.depth({ queue: 'q', where: { kind }, now: undefined })).toMatchObject({
        invisible: 0,
        pending: 0,
        running: 0,
      });
  });

  test('reaches every node with the password that one of them was named with', async () => {
    const cluster = await startCluster({ replicas: false });
    for (const server of cluster.servers) {
      const client = server.connect();
      await client.config('SET', 'requirepass', 'p@ss');
      client.disconnect();
    }
    const store = createRedisQueueStore({
      cluster: [`redis://:p%40ss@127.0.0.1:${cluster.servers[0]!.port}`],
      durability: 'none',
    });
    atEnd(() => store.stop());
    const queue = createQueue({ store });
    for (const name of ['a', 'b', 'c', 'd', 'e']) {
      await queue.enqueue(name, [{ payload: {} }]);
      expect(await queue.dequeue(name)).toHaveLength(1);
    }
  });

  test('uses no key outside of the slot of its queue, whatever the queue is called', async () => {
    const cluster = await startCluster({ replicas: false });
    const [store] = await open(cluster, 1, 'none');
    const client = new Cluster([...cluster.nodes]);
    atEnd(() => client.disconnect());
    for (const queue of ['orders', 'a{b}c', 'x y', '}{', '{}', '100%']) {
      const messages = ['1', '2'].map((id) => ({
        id,
        payload: '1',
        metadata: { key: '{other}' },
        priority: undefined,
        delayMs: undefined,
        attemptsMax: undefined,
        leaseMs: undefined,
        uniqueWhileLive: false,
        trace: undefined,
      }));
      await store!.enqueue({ queue, messages, now: undefined });
      await store!.dequeue({
        queue,
        count: 1,
        where: { key: '{other}' },
        leaseMs: 1_000,
        requestId: 'r',
        worker: undefined,
        now: undefined,
      });
    }
    const keys = (await Promise.all(client.nodes('master').map((node) => node.keys('c:*')))).flat();
    const tags = new Set(keys.filter((key) => key.includes('{')).map((key) => /\{([^}]*)\}/.exec(key)![1]));
    expect(tags).toEqual(new Set(['orders', 'a%7Bb%7Dc', 'x y', '%7D%7B', '%7B%7D', '100%25']));
    expect(await store!.queues()).toEqual(['100%', 'a{b}c', 'orders', 'x y', '{}', '}{']);
  });
});
