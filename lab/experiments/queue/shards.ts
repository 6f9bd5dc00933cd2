/**
 * One hot queue over 1, 2 and 4 shards on a loopback Cluster of three primaries: throughput, how much of the work falls to
 * the busiest node, by how many less urgent messages one is overtaken at most, and whether exclusivity is kept.
 */
import { createQueue, createWorker, type Queue } from '../../../src/queue/index.js';
import { createRedisQueueStore } from '../../../src/queue/redis/index.js';
import { type RedisCluster, startRedisCluster } from '../../../src/testing/redis-cluster.js';
import type { Experiment, ExperimentContext, Figure, Report } from '../../experiment.js';
import { seededRandom } from '../../random.js';
import { fill } from './queue-under-test.js';
import { largestDisplacement, type Taken, type Written } from './displacement.js';

const shardCounts = [1, 2, 4];
const primaries = 3;
const payload = {};

interface Measured {
  readonly perSecond: number;
  /** Messages that the busiest node's CPU carries in a second of its time. */
  readonly perBusiestSecond: number;
  readonly displacement: number;
  readonly overlaps: number;
}

/** A name whose shards lie on as many primaries as they can. */
async function spreadName(cluster: RedisCluster, shards: number): Promise<string> {
  const client = cluster.servers[0]!.connect();
  try {
    for (let attempt = 0; attempt < 500; attempt += 1) {
      const name = `hot-${shards}-${attempt}`;
      const perPrimary = new Map<unknown, number>();
      for (let shard = 0; shard < shards; shard += 1) {
        const tag = shard === 0 ? name : `${name}#${shard}`;
        const slot = (await client.call('CLUSTER', 'KEYSLOT', `{${tag}}`)) as number;
        const primary = await cluster.primaryOf(slot);
        perPrimary.set(primary, (perPrimary.get(primary) ?? 0) + 1);
      }
      if (Math.max(...perPrimary.values()) === Math.ceil(shards / primaries)) return name;
    }
  } finally {
    client.disconnect();
  }
  throw new Error('no name spreads the shards evenly');
}

/** Seconds of CPU that each node has used so far. */
async function cpuSeconds(cluster: RedisCluster): Promise<number[]> {
  const clients = cluster.servers.map((server) => server.connect());
  const infos = await Promise.all(clients.map((client) => client.info('cpu')));
  for (const client of clients) client.disconnect();
  const field = (info: string, name: string): number =>
    Number(new RegExp(`^${name}:([\\d.]+)`, 'm').exec(info)?.[1]);
  return infos.map((info) => field(info, 'used_cpu_user') + field(info, 'used_cpu_sys'));
}

async function drain(
  queue: Queue,
  name: string,
  count: number,
  handle: (value: string | undefined) => Promise<void> | void,
): Promise<number> {
  let handled = 0;
  let allHandled = (): void => {};
  const all = new Promise<void>((resolve) => {
    allHandled = resolve;
  });
  const worker = createWorker({
    queue,
    queues: [name],
    slots: 100,
    handler: async ({ metadata }) => {
      await handle(metadata['value']);
      handled += 1;
      if (handled === count) allHandled();
    },
  });
  const startedAt = performance.now();
  await worker.start();
  await all;
  await worker.stop();
  return (performance.now() - startedAt) / 1_000;
}

/** Two producers with random priorities and four consumers at once. */
async function displacement(
  queue: Queue,
  name: string,
  random: () => number,
  count: number,
): Promise<number> {
  const written = new Map<string, Written>();
  const taken: Taken[] = [];
  let left = count;
  const produce = async (producer: number): Promise<void> => {
    for (let index = 0; index < count / 2; index += 1) {
      const id = `${producer}-${index}`;
      const priority = Math.floor(random() * 2 ** 40);
      await queue.enqueue(name, [{ id, payload, priority }]);
      written.set(id, { priority, acknowledgedAt: performance.now() });
    }
  };
  const consume = async (): Promise<void> => {
    while (left > 0) {
      const askedAt = performance.now();
      const messages = await queue.dequeue(name, { count: 3 });
      const answeredAt = performance.now();
      for (const { id } of messages) taken.push({ id, askedAt, answeredAt });
      left -= messages.length;
      if (messages.length > 0) await queue.complete(name, messages);
    }
  };
  const producers = [produce(0), produce(1)];
  await new Promise((resolve) => setTimeout(resolve, 200));
  await Promise.all([...producers, ...Array.from({ length: 4 }, consume)]);
  return largestDisplacement(written, taken);
}

/** How often two messages of one value were handled at once. */
async function overlaps(queue: Queue, name: string, count: number): Promise<number> {
  await queue.configure(name, { type: { kind: 'exclusive', key: 'value' } });
  await fill(queue, name, count, (index) => ({ payload, metadata: { value: `v${index % 150}` } }));
  const running = new Set<string>();
  let found = 0;
  await drain(queue, name, count, async (value = '') => {
    if (running.has(value)) found += 1;
    running.add(value);
    await new Promise((resolve) => setTimeout(resolve, 1));
    running.delete(value);
  });
  return found;
}

async function measure(cluster: RedisCluster, shards: number, context: ExperimentContext): Promise<Measured> {
  const names = {
    plain: await spreadName(cluster, shards),
    order: `order-${shards}`,
    exclusive: `exclusive-${shards}`,
  };
  const store = createRedisQueueStore({
    cluster: cluster.nodes,
    durability: 'none',
    ...(shards > 1 && { shards: Object.fromEntries(Object.values(names).map((name) => [name, shards])) }),
  });
  const queue = createQueue({ store });
  await queue.start();
  try {
    const count = context.quick ? 40_000 : 200_000;
    await fill(queue, names.plain, count, () => ({ payload }));
    const before = await cpuSeconds(cluster);
    const seconds = await drain(queue, names.plain, count, () => {});
    const after = await cpuSeconds(cluster);
    const busiest = Math.max(...after.map((used, node) => used - before[node]!));
    const random = seededRandom(context.seed);
    return {
      perSecond: count / seconds,
      perBusiestSecond: count / busiest,
      displacement: await displacement(queue, names.order, random, 4_000),
      overlaps: await overlaps(queue, names.exclusive, context.quick ? 5_000 : 20_000),
    };
  } finally {
    await queue.stop();
  }
}

async function run(context: ExperimentContext): Promise<Report> {
  const cluster = await startRedisCluster({ primaries, replicas: false });
  const all = new Map<number, Measured>();
  try {
    for (const shards of shardCounts) {
      const measured = await measure(cluster, shards, context);
      all.set(shards, measured);
      context.tell(
        `${shards} shards: ${Math.round(measured.perSecond)}/s, displacement ${measured.displacement}, ${measured.overlaps} overlaps`,
      );
    }
  } finally {
    await cluster.stop();
  }
  const rows = [...all].map(([shards, measured]): Figure[] => [
    shards,
    Math.round(measured.perSecond),
    Math.round(measured.perBusiestSecond),
    measured.displacement,
    measured.overlaps,
  ]);
  const figures = Object.fromEntries(
    [...all].flatMap(([shards, measured]) => [
      [`${shards} shards: per second`, Math.round(measured.perSecond)],
      [`${shards} shards: per CPU second of the busiest node`, Math.round(measured.perBusiestSecond)],
      [`${shards} shards: largest displacement`, measured.displacement],
      [`${shards} shards: overlaps`, measured.overlaps],
    ]),
  );
  const [one, most] = [all.get(1)!, all.get(4)!];
  const isKept = [...all.values()].every((measured) => measured.overlaps === 0) && one.displacement === 0;
  const carries = most.perBusiestSecond / one.perBusiestSecond;
  return {
    tables: [
      {
        columns: [
          'shards',
          'burn-down/s',
          'per CPU s of the busiest node',
          'largest displacement',
          'overlaps',
        ],
        rows,
      },
    ],
    figures,
    reference: { Timestone: 'one queue is one shard, and its limit is that of one node' },
    durability: 'Redis Cluster of 3 primaries on this machine, no AOF, no replicas',
    holds: isKept && carries > 1,
    verdict: `exclusivity ${isKept ? 'is kept' : 'or the order of one shard is BROKEN'}; with 4 shards the busiest node carries ${carries.toFixed(2)} x the messages for the same CPU, a message is overtaken by at most ${most.displacement} less urgent ones; ${(most.perSecond / one.perSecond).toFixed(2)} x the throughput where client and nodes share the cores`,
  };
}

export const shards: Experiment = {
  name: 'shards',
  shows: 'one hot queue over 1, 2, 4 shards on a Cluster: throughput, largest displacement, exclusivity kept',
  run,
};
