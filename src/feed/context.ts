/** What every piece of the feed works with. */
import type { Clock } from '../clock.js';
import type { Database, Transaction } from '../database/index.js';
import type { Log } from '../log.js';
import type { Metrics } from '../metrics.js';
import type { Queue } from '../queue/index.js';
import type { LiveHints } from './live.js';
import type { FeedMetricName } from './metrics.js';
import type { FeedOptions } from './options.js';
import type { FeedStore, Now } from './store.js';
import type { WorkMessage } from './work.js';

export interface FeedContext {
  readonly database: Database;
  readonly store: FeedStore;
  readonly queue: Queue;
  readonly options: FeedOptions;
  readonly log: Log;
  readonly metrics: Metrics<FeedMetricName>;
  readonly clock: Clock;
  readonly hints: LiveHints;
  /** The time for the store; filled by tests only. */
  now(): Now;
  /** Enqueues work, inside `transaction` when given. */
  enqueue(work: readonly WorkMessage[], transaction?: Transaction): Promise<void>;
  /** Lets something run beside the answer; stop() waits for it, a failure goes to the log. */
  background(what: string, work: () => Promise<void>): void;
}

/** How long a timeline counts as live for a read: a day less than for a fan-out, so that no entry is missing in between. */
export function activeReadMs({ activeMs }: FeedOptions): number {
  return activeMs - 86_400_000;
}
