/**
 * The only place that joins a part to a concrete store: opens the database that the configuration names, brings its
 * schemas up to date, and puts queue and feed on it. Guarantees that what was opened is closed when a later step fails.
 */
import { openPglite, openPostgres, type Database } from '../database/index.js';
import { createFeed, type Feed } from '../feed/index.js';
import { createPostgresFeedStore } from '../feed/postgres/index.js';
import { composeComponents, type Component } from '../lifecycle.js';
import type { Log } from '../log.js';
import type { MetricsBackend } from '../metrics.js';
import { createQueue, type Queue } from '../queue/index.js';
import { createPostgresQueueStore } from '../queue/postgres/index.js';
import type { StoreConfig } from './config.js';

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

async function openDatabase(
  config: StoreConfig,
  log: Log,
): Promise<{ database: Database; publishAddress: (address: string) => void }> {
  if (config.databaseUrl !== undefined) {
    return {
      database: await openPostgres({ connectionString: config.databaseUrl, log }),
      publishAddress: () => {},
    };
  }
  const database = await openPglite({ folder: config.dataFolder, log });
  return { database, publishAddress: (address) => database.folderLock?.setAddress(address) };
}
