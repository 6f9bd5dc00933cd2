/**
 * The only place that joins a part to a concrete store: opens the database that the configuration names, brings its
 * schemas up to date, and puts queue and feed on it, the queue on Redis where that is asked for. Guarantees that what was
 * opened is closed when a later step fails.
 */
import { openPglite, openPostgres, type Database } from '../database/index.js';
import { invalidInput } from '../errors.js';
import { createFeed, createFeedWorker, type Feed, type TimelineLists } from '../feed/index.js';
import { createPostgresFeedStore } from '../feed/postgres/index.js';
import { createRedisTimelines } from '../feed/redis/index.js';
import { composeComponents, type Component } from '../lifecycle.js';
import type { Log } from '../log.js';
import type { MetricsBackend } from '../metrics.js';
import type { Notify } from '../notify/index.js';
import { createPostgresNotifyStore } from '../notify/postgres/index.js';
import { createQueue, type Queue } from '../queue/index.js';
import { createOutbox, createRelay } from '../queue/outbox/index.js';
import { createPostgresQueueStore } from '../queue/postgres/index.js';
import { createRedisQueueStore, redisQueueErrors } from '../queue/redis/index.js';
import type { RedisConfig, StoreConfig } from './config.js';
import type { NotifyConfiguration } from './notify/load.js';
import { stopDeadlineMs } from './shutdown.js';
import { wireNotify } from './wire-notify.js';

export interface Parts {
  readonly database: Database;
  readonly queue: Queue;
  readonly feed: Feed;
  readonly notify: Notify;
  /** Where providers and people reach this server. */
  readonly notifyPublicUrl: string | undefined;
  /** One sentence for /health. */
  readonly durability: string;
  /** Tells those who ask for the data folder where the server listens. */
  publishAddress(address: string): void;
  /** Everything that works in the background. */
  readonly workers: Component;
  /** Stops what runs and closes the database. May be called twice. */
  stop(options?: { deadlineMs?: number }): Promise<void>;
}

/** Codes that the stores bring along, for the page of errors. */
export const storeErrors = { 'Queue on Redis': redisQueueErrors };

export interface WireOptions {
  readonly log: Log;
  readonly metrics: MetricsBackend;
  /** Kinds and providers of notifications. Default: none, and no worker for them. */
  readonly notify?: NotifyConfiguration | undefined;
}

interface Opened {
  readonly database: Database;
  readonly publishAddress: (address: string) => void;
}

async function openDatabase(config: StoreConfig, log: Log): Promise<Opened> {
  if (config.databaseUrl !== undefined) {
    const database = await openPostgres({ connectionString: config.databaseUrl, log });
    return { database, publishAddress: () => {} };
  }
  const database = await openPglite({ folder: config.dataFolder, log });
  return { database, publishAddress: (address) => database.folderLock?.setAddress(address) };
}

interface OpenedQueue {
  readonly queue: Queue;
  /** Starts before the queue. */
  readonly before: readonly Component[];
  /** Works beside the queue's workers. */
  readonly beside: readonly Component[];
  /** What an acknowledged write survives, when that is not the database's to say. */
  survives(): Promise<string | undefined>;
}

/**
 * Where other processes have put the queue on Redis, one that was not told so would enqueue into tables that no worker looks at.
 * The outbox stands in the database from the first start with a Redis on.
 */
async function refuseQueueElsewhere(database: Database): Promise<void> {
  const { rows } = await database.query(`select 1 from pg_namespace where nspname = 'headgate_outbox'`);
  if (rows.length === 0) return;
  const expected =
    'the Redis that carries the queue of this database (it has the schema headgate_outbox; once that is empty and dropped, the database may carry the queue again)';
  throw invalidInput('--redis-url', undefined, expected);
}

function queueOnDatabase(database: Database, { log, metrics }: WireOptions): OpenedQueue {
  const queue = createQueue({ store: createPostgresQueueStore({ database, log }), log, metrics });
  return { queue, before: [], beside: [], survives: async () => undefined };
}

/** What the database's own queue still held when the queue went to Redis is worked on by nobody: said at every start. */
async function tellOfMessagesLeftBehind(database: Database, log: Log): Promise<void> {
  const { rows } = await database.query(`select 1 from pg_namespace where nspname = 'headgate_queue'`);
  if (rows.length === 0) return;
  const left = createQueue({ store: createPostgresQueueStore({ database, log }), log });
  await left.start();
  try {
    const queues: Record<string, number> = {};
    for (const queue of await left.queues()) {
      const { invisible, pending, running } = await left.depth(queue);
      if (invisible + pending + running > 0) queues[queue] = invisible + pending + running;
    }
    if (Object.keys(queues).length === 0) return;
    log.warn(
      { queues },
      'messages wait in the queue of the database, where nobody works while the queue is on Redis; the schema headgate_queue keeps them',
    );
  } finally {
    await left.stop();
  }
}

/** What a part enqueues in a transaction of the database goes through the outbox; the workers carry it on to Redis. */
function queueOnRedis(
  { urls, durability }: RedisConfig,
  database: Database,
  { log, metrics }: WireOptions,
): OpenedQueue {
  const outbox = createOutbox({ database, log });
  const [url = '', ...more] = urls;
  const where = more.length === 0 ? { url } : { cluster: urls };
  const store = createRedisQueueStore({ ...where, durability, outbox, log });
  const queue = createQueue({ store, log, metrics });
  const relay = createRelay({ database, store, log, metrics });
  const startOutbox = async (): Promise<void> => {
    // a Redis that is away or refused leaves no outbox behind, which would say that the queue is there
    await store.durability();
    await outbox.start();
    await tellOfMessagesLeftBehind(database, log);
  };
  const survives = async (): Promise<string> => (await store.durability()).survives;
  return {
    queue,
    before: [{ start: startOutbox, stop: async () => {} }],
    beside: [relay],
    survives,
  };
}

function timelinesOnRedis(urls: readonly string[], log: Log): TimelineLists {
  const [url = '', ...more] = urls;
  return createRedisTimelines(more.length === 0 ? { url, log } : { cluster: urls, log });
}

/** Opens everything that `config` names, with its schemas up to date; the workers are not started yet. */
export async function wire(config: StoreConfig, options: WireOptions): Promise<Parts> {
  const { log, metrics } = options;
  const { database, publishAddress } = await openDatabase(config, log);
  const timelines = config.feedTimelines && timelinesOnRedis(config.feedTimelines, log);
  try {
    if (!config.redis) await refuseQueueElsewhere(database);
    const opened = config.redis
      ? queueOnRedis(config.redis, database, { log, metrics })
      : queueOnDatabase(database, { log, metrics });
    const { queue } = opened;
    const store = createPostgresFeedStore({ database, timelines });
    const feedConfiguration = { database, store, queue, log, metrics };
    const feed = createFeed(feedConfiguration);
    const { notify, notifyPublicUrl, notifyWorkers } = wireNotify({
      database,
      queue,
      store: createPostgresNotifyStore({ database }),
      configuration: options.notify,
      log,
      metrics,
    });
    const parts = composeComponents([...opened.before, queue, feed, notify]);
    const workers = composeComponents([
      ...opened.beside,
      createFeedWorker(feedConfiguration),
      ...notifyWorkers,
    ]);
    await parts.start();
    const { survives } = await database.durability();
    const queueSurvives = await opened.survives();
    return {
      database,
      queue,
      feed,
      notify,
      notifyPublicUrl,
      durability:
        queueSurvives === undefined ? survives : `database: ${survives}; queue on Redis: ${queueSurvives}`,
      publishAddress,
      workers,
      async stop({ deadlineMs = stopDeadlineMs } = {}) {
        try {
          await workers.stop({ deadlineMs });
          await parts.stop({ deadlineMs });
        } finally {
          await timelines?.stop();
          await database.close();
        }
      },
    };
  } catch (error) {
    await timelines?.stop();
    await database.close();
    throw error;
  }
}
