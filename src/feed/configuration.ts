/** What a feed and its worker are made of; both take the same configuration. */
import { type Clock, systemClock } from '../clock.js';
import type { Database, Transaction } from '../database/index.js';
import { type Log, silentLog } from '../log.js';
import { type MetricsBackend, noMetrics } from '../metrics.js';
import type { NewMessage, Queue } from '../queue/index.js';
import { createDatabaseSignals, type Signals } from '../signals.js';
import type { FeedContext } from './context.js';
import { LiveHints } from './live.js';
import { feedMetrics } from './metrics.js';
import { type FeedOptionsInput, parseFeedOptions } from './options.js';
import type { FeedStore } from './store.js';
import type { WorkMessage } from './work.js';

export interface FeedConfiguration {
  readonly database: Database;
  /** For instance `createPostgresFeedStore({ database })` of headgate/feed/postgres. */
  readonly store: FeedStore;
  /** Carries the feed's work; its enqueue must take transactions of `database`. */
  readonly queue: Queue;
  readonly options?: FeedOptionsInput | undefined;
  /** Default: says nothing. */
  readonly log?: Log | undefined;
  /** Default: counts nothing. */
  readonly metrics?: MetricsBackend | undefined;
  readonly clock?: Clock | undefined;
  /** How processes tell each other about new posts. Default: LISTEN/NOTIFY of `database`. */
  readonly signals?: Signals | undefined;
}

export function createContext(configuration: FeedConfiguration): {
  context: FeedContext;
  /** Ends when nothing runs in the background. */
  settled: () => Promise<void>;
} {
  const { database, store, queue, log = silentLog, metrics = noMetrics, clock = systemClock } = configuration;
  const running = new Set<Promise<void>>();
  const context: FeedContext = {
    database,
    store,
    queue,
    options: parseFeedOptions(configuration.options),
    log,
    metrics: metrics(feedMetrics),
    clock,
    hints: new LiveHints({ signals: configuration.signals ?? createDatabaseSignals(database), log }),
    now: () => clock.storeNow(),
    enqueue: (work, transaction) => enqueue(queue, work, transaction),
    background(what, work) {
      const promise = work()
        .catch((error: unknown) => log.warn({ what, error }, 'something beside an answer of the feed failed'))
        .finally(() => running.delete(promise));
      running.add(promise);
    },
  };
  const settled = async () => {
    while (running.size > 0) await Promise.all(running);
  };
  return { context, settled };
}

async function enqueue(queue: Queue, work: readonly WorkMessage[], transaction?: Transaction): Promise<void> {
  const byQueue = new Map<string, NewMessage[]>();
  for (const { queue: name, message } of work) {
    const messages = byQueue.get(name);
    if (messages) messages.push(message);
    else byQueue.set(name, [message]);
  }
  for (const [name, messages] of byQueue) {
    const outcomes = await queue.enqueue(name, messages, transaction ? { transaction } : {});
    for (const outcome of outcomes) {
      if (outcome.kind === 'refused') throw outcome.error;
    }
  }
}
