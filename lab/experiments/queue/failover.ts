/**
 * What a failover of a Redis Cluster under load costs without strict durability: the primary of a busy queue is killed, at
 * once or after its replica has been cut off from it for a moment; counted is what was acknowledged and is gone, what was
 * done twice, and whether an old lease token is let through.
 */
import { createRedisQueueStore, type RedisDurability } from '../../../src/queue/redis/index.js';
import { startRedisCluster } from '../../../src/testing/redis-cluster.js';
import { failOver, slotOf } from '../../../test/faults/redis/fail-over.js';
import { countLosses, countOldTokensAccepted, Load, type Losses } from '../../../test/faults/redis/load.js';
import type { Experiment, ExperimentContext, Figure, Report } from '../../experiment.js';

const prefix = 'failover';
const queue = 'hot';

interface Case {
  readonly label: string;
  readonly durability: RedisDurability;
  /** How long the replica had been cut off when the primary died. */
  readonly behindMs: number;
}

const cases: readonly Case[] = [
  { label: 'strict, replica cut off 200 ms before', durability: 'strict', behindMs: 200 },
  { label: 'everysec, killed at once', durability: 'everysec', behindMs: 0 },
  { label: 'everysec, replica cut off 200 ms before', durability: 'everysec', behindMs: 200 },
];

interface Measured extends Losses {
  readonly acknowledged: number;
  readonly oldTokensAccepted: number;
}

async function measure({ durability, behindMs }: Case, messages: number): Promise<Measured> {
  const cluster = await startRedisCluster({ fsync: 'everysec', nodeTimeoutMs: 1_000 });
  const stores = Array.from({ length: 6 }, () =>
    createRedisQueueStore({ cluster: cluster.nodes, durability, silenceMs: 2_000, prefix }),
  );
  try {
    for (const store of stores) await store.start();
    const slot = await slotOf(cluster, prefix, queue);
    const primary = await cluster.primaryOf(slot);
    const producing = new AbortController();
    const load = new Load({
      producers: stores.slice(0, 2),
      consumers: stores.slice(2),
      queue,
      messages,
      leaseMs: 2_000,
      producing: producing.signal,
      untilEmpty: true,
    });
    const running = load.run();
    while (load.progress < 0.3) await new Promise((resolve) => setTimeout(resolve, 5));
    await failOver(cluster, { primary, slot, behindMs });
    producing.abort();
    await running;
    return {
      ...countLosses(load.history),
      acknowledged: load.history.enqueued.size,
      oldTokensAccepted: await countOldTokensAccepted(stores[0]!, queue, load.history),
    };
  } finally {
    await Promise.all(stores.map((store) => store.stop()));
    await cluster.stop();
  }
}

async function run({ quick, tell }: ExperimentContext): Promise<Report> {
  const rows: Figure[][] = [];
  const figures: Record<string, Figure> = {};
  const all: Measured[] = [];
  for (const tried of cases) {
    const measured = await measure(tried, quick ? 2_000 : 6_000);
    const { acknowledged, lost, doneTwice, tokensTwice, oldTokensAccepted } = measured;
    tell(`${tried.label}: ${lost} of ${acknowledged} lost, ${doneTwice} done twice`);
    rows.push([tried.label, acknowledged, lost, doneTwice, tokensTwice, oldTokensAccepted]);
    figures[`${tried.label}: lost`] = lost;
    figures[`${tried.label}: done twice`] = doneTwice;
    figures[`${tried.label}: old tokens accepted`] = oldTokensAccepted;
    all.push(measured);
  }
  const [strict, , behind] = all;
  const isFenced = all.every(({ tokensTwice, oldTokensAccepted }) => tokensTwice + oldTokensAccepted === 0);
  const isKept = strict!.lost + strict!.doneTwice === 0;
  return {
    tables: [
      {
        columns: ['failover', 'acknowledged', 'lost', 'done twice', 'tokens given twice', 'old accepted'],
        rows,
      },
    ],
    figures,
    reference: { expected: 'strict loses nothing; without it what the replica had not yet seen is gone' },
    durability: 'Redis Cluster of 3 primaries with a replica each on this machine, AOF everysec',
    holds: isKept && isFenced,
    verdict: `strict lost ${strict!.lost} and did ${strict!.doneTwice} twice; everysec with a replica 200 ms behind lost ${behind!.lost} of ${behind!.acknowledged} and did ${behind!.doneTwice} twice; ${isFenced ? 'no old token was accepted' : 'an OLD TOKEN was accepted'}`,
  };
}

export const failover: Experiment = {
  name: 'failover',
  shows: 'what a failover of a Redis Cluster under load loses or does twice, strict and not',
  run,
};
