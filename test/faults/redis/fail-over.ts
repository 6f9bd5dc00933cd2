/** A failover in a throwaway Cluster: the primary of a slot is killed, its replica takes over, the old one comes back as a replica. */
import { setTimeout as delay } from 'node:timers/promises';
import type { RedisCluster } from '../../../src/testing/redis-cluster.js';
import type { RedisServer } from '../../../src/testing/redis-server.js';
import { until } from '../../../src/testing/until.js';

/** The slot of a queue of the store. */
export async function slotOf(cluster: RedisCluster, prefix: string, queue: string): Promise<number> {
  const client = cluster.servers[0]!.connect();
  try {
    return (await client.call('CLUSTER', 'KEYSLOT', `${prefix}:{${queue}}`)) as number;
  } finally {
    client.disconnect();
  }
}

/** From now on nothing of what `primary` is told reaches its replicas; its restart undoes it. */
async function cutReplicas(primary: RedisServer): Promise<void> {
  const client = primary.connect();
  try {
    await client.call('ACL', 'SETUSER', 'default', '-psync', '-sync');
    await client.call('CLIENT', 'KILL', 'TYPE', 'replica');
  } finally {
    client.disconnect();
  }
}

/** `behindMs`: so long before `primary` dies its replica is cut off from it. Resolves when the old primary is back. */
export async function failOver(
  cluster: RedisCluster,
  { primary, slot, behindMs }: { primary: RedisServer; slot: number; behindMs: number },
): Promise<void> {
  if (behindMs > 0) await cutReplicas(primary);
  await delay(behindMs);
  await primary.kill();
  await until(async () => (await cluster.primaryOf(slot)) !== primary, {
    what: 'a replica takes over',
    everyMs: 50,
  });
  await primary.restart();
}
