/** What `peers` compares: workloads, the sides of each, the factors to reach, and the servers that each store's run takes. */
import { startPostgresServer } from '../../../src/testing/index.js';
import { startRedisServer } from '../../../src/testing/redis-server.js';
import type { Figures } from '../../experiment.js';
import type { DriverRequest, PeerName } from '../../peers/run-driver.js';
import type { StoreName } from './queue-under-test.js';

export interface Side {
  readonly label: string;
  readonly peer: PeerName;
  readonly retention: DriverRequest['retention'];
}

export interface Comparison {
  readonly name: string;
  readonly request: Pick<DriverRequest, 'workload' | 'messages' | 'slots'>;
  /** Ours first. */
  readonly sides: readonly Side[];
  /** By which factor the first side must be faster than each of these. */
  readonly targets: Readonly<Partial<Record<PeerName, number>>>;
}

/** A server that all sides are measured on in turn. */
export interface Arena {
  readonly label: string;
  readonly durability: DriverRequest['durability'];
  /** An empty database, or the server emptied. */
  freshUrl(): Promise<string>;
  stop(): Promise<void>;
}

export interface Comparing {
  readonly arenas: readonly (() => Promise<Arena>)[];
  comparisons(quick: boolean): Comparison[];
  readonly reference: Figures;
}

const ours: Side = { label: 'headgate', peer: 'headgate', retention: 'default' };
const oursBare: Side = { label: 'headgate, retention 0', peer: 'headgate', retention: 'none' };

function workloads(messages: number, quick: boolean) {
  return {
    burnDown: { workload: 'burn-down', messages, slots: 100 },
    bulk: { workload: 'bulk-enqueue', messages, slots: 1 },
    alone: { workload: 'one-at-a-time', messages: quick ? 1_000 : 10_000, slots: 1 },
  } as const;
}

const graphile: Side = { label: 'graphile-worker', peer: 'graphile-worker', retention: 'default' };
const boss: Side = { label: 'pg-boss', peer: 'pg-boss', retention: 'default' };

const onPostgres: Comparing = {
  arenas: [
    async () => {
      const server = await startPostgresServer({ fsync: true });
      return {
        label: `PostgreSQL ${server.majorVersion}, fsync on`,
        durability: 'strict',
        freshUrl: () => server.createDatabase(),
        stop: () => server.stop(),
      };
    },
  ],
  comparisons(quick) {
    const { burnDown, bulk, alone } = workloads(quick ? 40_000 : 200_000, quick);
    return [
      {
        name: 'burn-down, 100 slots',
        request: burnDown,
        sides: [ours, oursBare, graphile, boss],
        targets: { 'graphile-worker': 2, 'pg-boss': 2.5 },
      },
      { name: 'bulk enqueue', request: bulk, sides: [ours, graphile, boss], targets: { 'pg-boss': 2 } },
      { name: 'one at a time', request: alone, sides: [ours, boss], targets: { 'pg-boss': 1.2 } },
      {
        name: 'one at a time, 64 side by side',
        request: { ...alone, slots: 64 },
        sides: [ours, boss],
        targets: { 'pg-boss': 1.2 },
      },
    ];
  },
  reference: {
    machine: 'two cores shared by server and workers, PostgreSQL 15, fsync on',
    'graphile-worker 0.18 burn-down': 25_800,
    'pg-boss 12 burn-down': 19_600,
    'pg-boss 12 insert': 52_000,
  },
};

const bull: Side = { label: 'bullmq', peer: 'bullmq', retention: 'default' };
const bullBare: Side = { label: 'bullmq, removeOnComplete', peer: 'bullmq', retention: 'none' };

/** No peer: the three round trips alone, which bound what any queue can reach for one caller. */
const bareFunctions: Side = { label: 'three bare functions', peer: 'bare-functions', retention: 'default' };

const redisArena = (fsync: 'none' | 'always') => async (): Promise<Arena> => {
  const server = await startRedisServer({ fsync });
  const client = server.connect();
  return {
    label: fsync === 'none' ? 'no AOF' : 'AOF always',
    durability: fsync === 'none' ? 'none' : 'strict',
    async freshUrl() {
      await client.flushall();
      return server.url;
    },
    async stop() {
      client.disconnect();
      await server.stop();
    },
  };
};

const onRedis: Comparing = {
  arenas: [redisArena('none'), redisArena('always')],
  comparisons(quick) {
    const { burnDown, bulk, alone } = workloads(quick ? 30_000 : 200_000, quick);
    const targets = { bullmq: 1.2 };
    return [
      { name: 'burn-down, 100 slots', request: burnDown, sides: [ours, bull], targets: { bullmq: 3 } },
      {
        name: 'burn-down, 100 slots, nothing kept',
        request: burnDown,
        sides: [oursBare, bullBare],
        targets: { bullmq: 3 },
      },
      { name: 'bulk enqueue', request: bulk, sides: [ours, bull], targets: { bullmq: 4 } },
      { name: 'one at a time', request: alone, sides: [ours, bull, bareFunctions], targets },
      {
        name: 'one at a time, 64 side by side',
        request: { ...alone, messages: 5 * alone.messages, slots: 64 },
        sides: [ours, bull],
        targets,
      },
    ];
  },
  reference: {
    machine: 'two cores shared by server and workers, Redis 7.0',
    'BullMQ 6.7 bulk adds': '30,000-33,000',
    'BullMQ 6.7 burn-down, 100 slots': '20,000-23,000',
  },
};

export const comparing: Readonly<Record<StoreName, Comparing>> = { postgres: onPostgres, redis: onRedis };
