/**
 * A queue on a throwaway server for one experiment, on the store that `--store` names: the seam by which one experiment
 * measures several stores.
 */
import { openPostgres } from '../../../src/database/index.js';
import { createQueue, type NewMessage, type Queue } from '../../../src/queue/index.js';
import { createPostgresQueueStore } from '../../../src/queue/postgres/index.js';
import { createRedisQueueStore } from '../../../src/queue/redis/index.js';
import { startPostgresServer } from '../../../src/testing/index.js';
import { startRedisServer } from '../../../src/testing/redis-server.js';
import type { ExperimentContext } from '../../experiment.js';

export type StoreName = 'postgres' | 'redis';

/**
 * What an acknowledged change survives. strict: a power cut. relaxed: a killed process, and of a power cut all but about
 * the last second (synchronous_commit off; AOF everysec). none: nothing (Redis without AOF; only there).
 */
export type LabDurability = 'strict' | 'relaxed' | 'none';

export interface QueueUnderTest {
  readonly queue: Queue;
  /** What an acknowledged write survives, as the server says it. */
  readonly durability: string;
  /** Bytes that everything of the queue takes: tables with their indexes, or memory of the server. */
  storedBytes(): Promise<number>;
  /** After a bulk load, where the store has statistics or dead rows. */
  maintain(statement: 'analyze' | 'vacuum analyze'): Promise<void>;
  /** SIGKILL; the data stay for `restart`. */
  kill(): Promise<void>;
  restart(): Promise<void>;
}

export interface QueueUnderTestOptions {
  readonly store: StoreName;
  /** Default strict. */
  readonly durability?: LabDurability;
  /** Connections to PostgreSQL. Default 10. */
  readonly poolMax?: number;
}

/** For times that are compared with each other: on Redis a flush would be most of every one, and hide the rest. */
export const durabilityOfTimes = (store: StoreName): LabDurability => (store === 'redis' ? 'none' : 'strict');

/** The store that was asked for, else `otherwise`. */
export function storeOf({ store }: ExperimentContext, otherwise: StoreName = 'postgres'): StoreName {
  if (store === undefined) return otherwise;
  if (store !== 'postgres' && store !== 'redis')
    throw new Error(`--store: expected postgres or redis, got "${store}"`);
  return store;
}

export function withQueue<T>(
  options: QueueUnderTestOptions,
  work: (lab: QueueUnderTest) => Promise<T>,
): Promise<T> {
  return { postgres: withPostgres, redis: withRedis }[options.store](options, work);
}

async function withPostgres<T>(
  { durability = 'strict', poolMax = 10 }: QueueUnderTestOptions,
  work: (lab: QueueUnderTest) => Promise<T>,
): Promise<T> {
  const settings = {
    synchronous_commit: durability === 'strict' ? 'on' : 'off',
    wal_writer_delay: '200ms',
  };
  const server = await startPostgresServer({ fsync: true, settings });
  try {
    const connectionString = await server.createDatabase();
    const database = await openPostgres({ connectionString, poolMax, acquireTimeoutMs: 60_000 });
    const queue = createQueue({ store: createPostgresQueueStore({ database }) });
    await queue.start();
    const { fsync, synchronousCommit } = await database.durability();
    try {
      return await work({
        queue,
        durability: `PostgreSQL ${server.majorVersion}, fsync ${fsync ? 'on' : 'off'}, synchronous_commit ${synchronousCommit}`,
        async storedBytes() {
          const { rows } = await database.query<{ bytes: string }>(
            `select sum(pg_total_relation_size(oid))::text as bytes from pg_class
             where relnamespace = 'headgate_queue'::regnamespace and relkind = 'r'`,
          );
          return Number(rows[0]?.bytes);
        },
        maintain: (statement) => database.script(statement),
        kill: () => server.kill(),
        restart: () => server.restart(),
      });
    } finally {
      await queue.stop();
      await database.close();
    }
  } finally {
    await server.stop();
  }
}

const redisLevels = {
  strict: { fsync: 'always', durability: 'strict' },
  relaxed: { fsync: 'everysec', durability: 'everysec' },
  none: { fsync: 'none', durability: 'none' },
} as const;

async function withRedis<T>(
  { durability = 'strict' }: QueueUnderTestOptions,
  work: (lab: QueueUnderTest) => Promise<T>,
): Promise<T> {
  const level = redisLevels[durability];
  const server = await startRedisServer({ fsync: level.fsync });
  const client = server.connect();
  try {
    const store = createRedisQueueStore({ url: server.url, durability: level.durability });
    const queue = createQueue({ store });
    await queue.start();
    const { settings } = await store.durability();
    try {
      return await work({
        queue,
        durability: `Redis ${settings.version}, ${settings.appendOnly ? `AOF ${settings.appendFsync}` : 'no AOF'}`,
        storedBytes: async () =>
          Number(/^used_memory:(\d+)/m.exec(await client.info('memory'))?.[1] ?? Number.NaN),
        maintain: async () => {},
        kill: () => server.kill(),
        restart: () => server.restart(),
      });
    } finally {
      await queue.stop();
    }
  } finally {
    client.disconnect();
    await server.stop();
  }
}

/** Enqueues `count` messages in steps of 1,000. */
export async function fill(
  queue: Queue,
  name: string,
  count: number,
  message: (index: number) => NewMessage,
): Promise<void> {
  for (let from = 0; from < count; from += 1_000) {
    const length = Math.min(1_000, count - from);
    await queue.enqueue(
      name,
      Array.from({ length }, (_, index) => message(from + index)),
    );
  }
}
