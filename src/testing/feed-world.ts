/**
 * A feed to test with: its parts on one database with a clock that a test moves, and the feed's messages worked on when
 * and in the order that the test says.
 */
import { type Database } from '../database/index.js';
import type { Clock } from '../clock.js';
import { createContext, type FeedConfiguration } from '../feed/configuration.js';
import type { FeedContext } from '../feed/context.js';
import {
  createFeed,
  createFeedWorker,
  type Feed,
  feedQueues,
  type FeedOptionsInput,
  type FeedWorker,
  type Home,
} from '../feed/index.js';
import { createPostgresFeedStore } from '../feed/postgres/index.js';
import { feedHandler } from '../feed/worker.js';
import { tableTimelines, type TestTimelines } from './feed-timelines.js';
import { prepareSchema } from './prepare-schema.js';
import { createQueue, type LeasedMessage, type Queue, type QueueStore } from '../queue/index.js';

/** A clock that stands still until a test moves it; every store is told its time. */
export class FeedClock implements Clock {
  #nowMs: number;

  constructor(nowMs = 1_750_000_000_000) {
    this.#nowMs = nowMs;
  }

  now = () => this.#nowMs;
  monotonicMs = () => performance.now();
  storeNow = () => this.#nowMs;

  advance(ms: number): void {
    this.#nowMs += ms;
  }
}

export interface FeedWorld {
  readonly timelines: TestTimelines;
  readonly database: Database;
  readonly schema: string;
  readonly feed: Feed;
  readonly worker: FeedWorker;
  readonly queue: Queue;
  readonly context: FeedContext;
  readonly clock: FeedClock;
  readonly configuration: FeedConfiguration;
  /** Makes accounts of these ids. */
  accounts(...ids: readonly string[]): Promise<void>;
  /** Takes messages of these queues (default: all) and leaves them leased. */
  take(...queues: readonly string[]): Promise<LeasedMessage[]>;
  /** Does the work of a message, again if asked again, and completes it. */
  work(message: LeasedMessage): Promise<void>;
  /** Works until these queues (default: all) are empty; answers how many messages that were. */
  drain(...queues: readonly string[]): Promise<number>;
  /** Reads a home once and builds the timeline that this asks for. */
  open(reader: string): Promise<void>;
  close(): Promise<void>;
}

let worlds = 0;

export async function openFeedWorld({
  database,
  queueStore,
  options,
  clock = new FeedClock(),
  openTimelines = tableTimelines,
}: {
  database: Database;
  openTimelines?: ((database: Database, schema: string) => TestTimelines) | undefined;
  queueStore: (schema: string) => QueueStore;
  options?: FeedOptionsInput;
  clock?: FeedClock;
}): Promise<FeedWorld> {
  worlds += 1;
  const schema = `feed_${process.pid}_${worlds}`;
  const queueSchema = `queue_${process.pid}_${worlds}`;
  await prepareSchema(database, 'queue', queueSchema);
  await prepareSchema(database, 'feed', schema);
  const queue = createQueue({ store: queueStore(queueSchema), clock });
  await queue.start();
  const timelines = openTimelines(database, schema);
  const configuration: FeedConfiguration = {
    database,
    queue,
    clock,
    store: createPostgresFeedStore({ database, schema, timelines: timelines.lists }),
    options: { threshold: { pullFrom: 20, pushBelow: 16 }, ...options },
  };
  const feed = createFeed(configuration);
  await feed.start();
  const worker = createFeedWorker(configuration);
  const { context, settled } = createContext(configuration);
  const handle = feedHandler(context);
  const all = Object.values(feedQueues);

  const world: FeedWorld = {
    timelines,
    database,
    schema,
    feed,
    worker,
    queue,
    context,
    clock,
    configuration,

    async accounts(...ids) {
      for (const id of ids) await feed.putAccount({ id });
    },

    async take(...queues) {
      const taken: LeasedMessage[] = [];
      for (const name of queues.length > 0 ? queues : all) {
        for (;;) {
          const messages = await queue.dequeue(name, { count: 100, leaseMs: 86_400_000 });
          taken.push(...messages);
          if (messages.length === 0) break;
        }
      }
      return taken;
    },

    async work(message) {
      await handle(message.payload);
      await queue.complete(message.queue, [{ id: message.id, leaseToken: message.leaseToken }]);
    },

    async drain(...queues) {
      let worked = 0;
      for (;;) {
        await settled();
        const messages = await world.take(...queues);
        if (messages.length === 0) return worked;
        for (const message of messages) await world.work(message);
        worked += messages.length;
      }
    },

    async open(reader) {
      const known = await context.store.resolve(database, [reader]);
      const account = known.get(reader);
      if (!account) throw new Error(`no account ${reader}`);
      await handle({ kind: 'rebuild', reader: account.number });
    },

    async close() {
      await feed.stop();
      await settled();
      await queue.stop();
      await configuration.store.stop();
      timelines.close();
    },
  };
  return world;
}

/** Pages of a walk to the end towards older. */
export async function walkOlder(feed: Feed, reader: string, limit: number, from?: string): Promise<Home[]> {
  const pages: Home[] = [];
  let after = from;
  for (;;) {
    const page = await feed.home({ reader, limit, after });
    pages.push(page);
    if (page.next === undefined) return pages;
    after = page.next;
  }
}

/** Pages of a walk towards newer until a page is empty, that one left out; each page newest first. */
export async function walkNewer(feed: Feed, reader: string, limit: number, from: string): Promise<Home[]> {
  const pages: Home[] = [];
  let before = from;
  for (;;) {
    const page = await feed.home({ reader, limit, before });
    if (page.items.length === 0) return pages;
    pages.push(page);
    before = page.previous ?? before;
  }
}

export function idsOf(pages: readonly Home[]): string[] {
  return pages.flatMap((page) => page.items.map((item) => item.id));
}
