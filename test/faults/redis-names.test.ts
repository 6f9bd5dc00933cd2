/** The set of the names of all queues: it lies on another node of a Cluster than the queue, and is confirmed and mended all the same. */
import { describe, expect, test } from 'vitest';
import { createQueue } from '../../src/queue/index.js';
import { createRedisQueueStore } from '../../src/queue/redis/index.js';
import type { RedisCluster } from '../../src/testing/redis-cluster.js';
import { findRedisServer } from '../../src/testing/redis-server.js';
import { until } from '../../src/testing/until.js';
import { useOpened } from './redis/opened.js';

const { atEnd, startCluster } = useOpened();
const primaries = 2;

/** The place of the primary that holds a key; its replica is as far behind it as there are primaries. */
async function placeOf(cluster: RedisCluster, key: string): Promise<number> {
  const client = cluster.servers[0]!.connect();
  try {
    const slot = (await client.call('CLUSTER', 'KEYSLOT', key)) as number;
    return cluster.servers.indexOf(await cluster.primaryOf(slot));
  } finally {
    client.disconnect();
  }
}

describe.skipIf(!findRedisServer())('the names of the queues (need redis-server on the PATH)', () => {
  test('the first message of a queue is refused while its name is confirmed by nobody, and a lost name comes back', async () => {
    const cluster = await startCluster({ primaries, fsync: 'everysec', nodeTimeoutMs: 60_000 });
    const store = createRedisQueueStore({
      cluster: cluster.nodes,
      durability: 'strict',
      replicaTimeoutMs: 300,
      prefix: 'n',
    });
    atEnd(() => store.stop());
    const queue = createQueue({ store });
    await store.start();
    const place = await placeOf(cluster, 'n:queues');
    const names = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];
    const places = await Promise.all(names.map((name) => placeOf(cluster, `n:{${name}}`)));
    const elsewhere = names[places.findIndex((other) => other !== place)]!;
    const replica = cluster.servers[place + primaries]!;
    process.kill(replica.pid!, 'SIGSTOP');
    atEnd(() => void process.kill(replica.pid!, 'SIGCONT'));
    const enqueue = () => queue.enqueue(elsewhere, [{ id: 'm', payload: 1 }]);
    await expect(enqueue()).rejects.toMatchObject({ code: 'not-replicated' });
    process.kill(replica.pid!, 'SIGCONT');
    await until(() =>
      enqueue().then(
        () => true,
        () => false,
      ),
    );
    expect(await queue.queues()).toEqual([elsewhere]);

    const client = cluster.servers[place]!.connect();
    atEnd(() => client.disconnect());
    await client.srem('n:queues', elsewhere);
    await store.housekeep({ now: undefined });
    expect(await queue.queues()).toEqual([elsewhere]);
  });
});
