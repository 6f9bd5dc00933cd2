/**
 * The only place that joins a part to a concrete store: opens the database that the configuration names, brings its
 * schemas up to date, and puts queue and feed on it. Guarantees that what was opened is closed when a later step fails.
 */
import { openPglite, openPostgres, type Database } from '../database/index.js';
import { createFeed, createFeedWorker, type Feed } from '../feed/index.js';
import { createPostgresFeedStore } from '../feed/postgres/index.js';
import { composeComponents, type Component } from '../lifecycle.js';
import type { Log } from '../log.js';
import type { MetricsBackend } from '../metrics.js';
import { createQueue, type Queue } from '../queue/index.js';
import { createPostgresQueueStore } from '../queue/postgres/index.js';
import type { StoreConfig } from './config.js';
import { stopDeadlineMs } from './shutdown.js';

export interface Parts {
  readonly database: Database;
  readonly queue: Queue;
  readonly feed: Feed;
  /** One sentence for /health. */
  readonly durability: string;
  /** Tells those who ask for the data folder where the server listens. */
  publishAddress(address: string): void;
  /** Everything that works in the background. */
  readonly workers: Component;
  /** Stops what runs and closes the database. May be called twice. */
  stop(options?: { deadlineMs?: number }): Promise<void>;
}

export interface WireOptions {
  readonly log: Log;
  readonly metrics: MetricsBackend;
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

/** Opens everything that `config` names, with its schemas up to date; the workers are not started yet. */
export async function wire(config: StoreConfig, { log, metrics }: WireOptions): Promise<Parts> {
  const { database, publishAddress } = await openDatabase(config, log);
  try {
    const queue = createQueue({ store: createPostgresQueueStore({ database, log }), log, metrics });
    const feedConfiguration = { database, store: createPostgresFeedStore({ database }), queue, log, metrics };
    const feed = createFeed(feedConfiguration);
    const parts = composeComponents([queue, feed]);
    const workers = composeComponents([createFeedWorker(feedConfiguration)]);
    await parts.start();
    const { survives } = await database.durability();
    return {
      database,
      queue,
      feed,
      durability: survives,
      publishAddress,
      workers,
      async stop({ deadlineMs = stopDeadlineMs } = {}) {
        try {
          await workers.stop({ deadlineMs });
          await parts.stop({ deadlineMs });
        } finally {
          await database.close();
        }
      },
    };
  } catch (error) {
    await database.close();
    throw error;
  }
}
