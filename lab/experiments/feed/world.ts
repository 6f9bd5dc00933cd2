/**
 * A feed on a throwaway PostgreSQL server with fsync on, and bulk statements that fill it with a world: accounts are
 * numbered one after the other, so that a range of numbers names a group.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { type Database, openPostgres } from '../../../src/database/index.js';
import {
  createFeed,
  createFeedWorker,
  type Feed,
  type FeedConfiguration,
  type FeedOptionsInput,
  feedQueues,
  type FeedWorkerOptions,
  type TimelineLists,
} from '../../../src/feed/index.js';
import { createContext } from '../../../src/feed/configuration.js';
import type { FeedContext } from '../../../src/feed/context.js';
import { createPostgresFeedStore } from '../../../src/feed/postgres/index.js';
import { feedHandler } from '../../../src/feed/worker.js';
import type { MetricsBackend } from '../../../src/metrics.js';
import { createQueue, type Queue } from '../../../src/queue/index.js';
import { createPostgresQueueStore } from '../../../src/queue/postgres/index.js';
import { createWorker } from '../../../src/queue/worker/index.js';
import { type PostgresServer, startPostgresServer } from '../../../src/testing/index.js';

/** Accounts `${prefix}-1` to `${prefix}-${count}`; number `first` + i belongs to `${prefix}-${i + 1}`. */
export interface Group {
  readonly prefix: string;
  readonly first: number;
  readonly count: number;
}

/** Where the bulk statements write. */
export interface World {
  readonly database: Database;
  readonly schema: string;
}

export interface LabFeed extends World {
  readonly feed: Feed;
  readonly queue: Queue;
  readonly configuration: FeedConfiguration;
  readonly context: FeedContext;
}

export interface Lab {
  readonly database: Database;
  readonly server: PostgresServer;
  readonly durability: string;
  /** A feed with schemas of its own, closed at the end of the experiment. */
  open(name: string, options?: FeedOptionsInput, parts?: LabParts): Promise<LabFeed>;
}

export interface LabParts {
  readonly metrics?: MetricsBackend;
  /** Puts something between the feed and its queue. */
  readonly wrapQueue?: (queue: Queue) => Queue;
  /** Keeps the timelines; the experiment stops it. Default: the table. */
  readonly timelines?: TimelineLists;
}

export async function withLab<T>(
  {
    settings = {},
    poolMax = 10,
  }: { readonly settings?: Readonly<Record<string, string>>; readonly poolMax?: number },
  work: (lab: Lab) => Promise<T>,
): Promise<T> {
  // As an installation of this size would be set, so that no checkpoint falls into a measurement.
  const sized = { shared_buffers: '512MB', max_wal_size: '8GB', checkpoint_timeout: '30min', ...settings };
  const server = await startPostgresServer({ fsync: true, settings: sized });
  const opened: LabFeed[] = [];
  try {
    const database = await openPostgres({
      connectionString: await server.createDatabase(),
      poolMax,
      acquireTimeoutMs: 120_000,
      queryTimeoutMs: 600_000,
    });
    const { fsync, synchronousCommit } = await database.durability();
    const durability = `PostgreSQL ${server.majorVersion}, fsync ${fsync ? 'on' : 'off'}, synchronous_commit ${synchronousCommit}`;
    try {
      return await work({
        database,
        server,
        durability,
        async open(name, options = {}, parts = {}) {
          const lab = await openFeed(database, name, options, parts);
          opened.push(lab);
          return lab;
        },
      });
    } finally {
      for (const { feed, queue } of opened) {
        await feed.stop();
        await queue.stop();
      }
      await database.close();
    }
  } finally {
    await server.stop();
  }
}

async function openFeed(
  database: Database,
  name: string,
  options: FeedOptionsInput,
  { metrics, wrapQueue = (queue) => queue, timelines }: LabParts,
): Promise<LabFeed> {
  const queue = wrapQueue(
    createQueue({ store: createPostgresQueueStore({ database, schema: `${name}_queue` }) }),
  );
  const store = createPostgresFeedStore({ database, schema: name, timelines });
  const configuration = { database, queue, store, options, metrics };
  const feed = createFeed(configuration);
  await queue.start();
  await feed.start();
  const { context } = createContext(configuration);
  return { feed, queue, database, schema: name, configuration, context };
}

/** Runs a feed worker with its housekeeping for the length of `work`. */
export async function withWorker<T>(
  { configuration }: LabFeed,
  options: FeedWorkerOptions,
  work: () => Promise<T>,
): Promise<T> {
  const worker = createFeedWorker(configuration, options);
  await worker.start();
  try {
    return await work();
  } finally {
    await worker.stop();
  }
}

/** Runs bare slots, fewer than a feed worker may have, without housekeeping and without floors. */
export async function withSlots<T>(
  { queue, context }: LabFeed,
  slots: number,
  work: () => Promise<T>,
): Promise<T> {
  const handle = feedHandler(context);
  const worker = createWorker({
    queue,
    queues: Object.values(feedQueues),
    slots,
    handler: async ({ payload }) => handle(payload),
  });
  await worker.start();
  try {
    return await work();
  } finally {
    await worker.stop();
  }
}

export async function addAccounts(
  { database, schema }: World,
  prefix: string,
  count: number,
): Promise<Group> {
  const { rows } = await database.query<{ first: string }>(
    `with made as (
       insert into ${schema}.accounts (id, created_at) select $1 || '-' || n, 0 from generate_series(1, $2::integer) n
       returning number),
     readers as (insert into ${schema}.readers (account) select number from made)
     select min(number) as first from made`,
    [prefix, count],
  );
  return { prefix, first: Number(rows[0]?.first), count };
}

/** The id of the account at `index` (from 0) of a group. */
export function member({ prefix }: Group, index: number): string {
  return `${prefix}-${index + 1}`;
}

/** Everybody of one group follows everybody of another; counted, and modes as the counts say. */
export async function addFollows(world: World, followers: Group, followees: Group): Promise<void> {
  const { database, schema } = world;
  await database.query(
    `insert into ${schema}.follows (follower, followee, created_at)
     select r, e, 0 from generate_series($1::bigint, $1::bigint + $2::bigint - 1) r
     cross join generate_series($3::bigint, $3::bigint + $4::bigint - 1) e where r <> e`,
    [followers.first, followers.count, followees.first, followees.count],
  );
  await countFollowers(world, followees, followers.count);
}

/** Raises the follower counts of a group by `by` each. */
export async function countFollowers({ database, schema }: World, group: Group, by: number): Promise<void> {
  await database.query(
    `insert into ${schema}.authors as w (account, followers)
     select n, $3::bigint from generate_series($1::bigint, $1::bigint + $2::bigint - 1) n
     on conflict (account) do update set followers = w.followers + excluded.followers`,
    [group.first, group.count, by],
  );
}

/** Makes the authors of a group pulled ones, as a follower count above the threshold would. */
export async function makePulled({ database, schema }: World, group: Group): Promise<void> {
  await database.query(
    `insert into ${schema}.authors as w (account, followers, mode, pushed_since)
     select n, 10000, 'pull', 9223372036854775807 from generate_series($1::bigint, $1::bigint + $2::bigint - 1) n
     on conflict (account) do update
       set mode = 'pull', pushed_since = 9223372036854775807, followers = w.followers + 10000`,
    [group.first, group.count],
  );
}

/**
 * `perAuthor` posts by each of a group, all authors in turn, spread over `days` before now, with a body of `bytes`.
 * Nothing is left to be fanned out.
 */
export async function addPosts(
  { database, schema }: World,
  group: Group,
  { perAuthor, days = 10, bytes = 1_000, mode = 'push' }: PostShape,
): Promise<void> {
  const total = perAuthor * group.count;
  await database.query(
    `insert into ${schema}.posts (id, author, body, visibility, mode, created_at)
     select (at << 20) | (nextval('${schema}.post_sequence')), author, rpad('post of ' || author || ' ', $5::integer, 'text '),
       'public', $6, at
     from (
       select $1::bigint + (n % $2::bigint) as author,
         floor(extract(epoch from now()) * 1000)::bigint - 60000 - (($4::bigint * 86400000) * n / $3::bigint) as at
       from generate_series(0, $3::bigint - 1) n) made`,
    [group.first, group.count, total, days, bytes, mode],
  );
}

export interface PostShape {
  readonly perAuthor: number;
  readonly days?: number;
  readonly bytes?: number;
  readonly mode?: 'push' | 'pull';
}

/** Live and empty timelines that take every new entry. */
export async function openTimelines({ database, schema }: World, readers: Group): Promise<void> {
  const range = [readers.first, readers.count];
  await database.query(
    `update ${schema}.readers set state = 'live', token = account, floor = 0, seen_at = floor(extract(epoch from now()) * 1000)
     where account >= $1 and account < $1::bigint + $2::bigint`,
    range,
  );
  await database.query(
    `insert into ${schema}.timeline (reader, post) select n, -n
     from generate_series($1::bigint, $1::bigint + $2::bigint - 1) n on conflict do nothing`,
    range,
  );
}

/** Statistics and visibility maps as autovacuum would leave them. */
export async function settleTables({ database, schema }: World): Promise<void> {
  for (const table of ['accounts', 'readers', 'authors', 'follows', 'posts', 'timeline', 'fan_outs']) {
    await database.query(`vacuum analyze ${schema}.${table}`);
  }
}

/** Asks until it is so; throws after `withinMs`. */
export async function until(what: string, withinMs: number, isSo: () => Promise<boolean>): Promise<void> {
  const endsAt = performance.now() + withinMs;
  while (!(await isSo())) {
    if (performance.now() > endsAt) throw new Error(`${what}: not within ${withinMs} ms`);
    await delay(5);
  }
}

/** Waits until every fan-out has ended; answers how long that took in milliseconds. */
export async function drained(world: World, withinMs = 300_000): Promise<number> {
  return timeOf(() =>
    until('fan-outs drained', withinMs, async () => (await unfinishedFanOuts(world)) === 0),
  );
}

export async function unfinishedFanOuts({ database, schema }: World): Promise<number> {
  const { rows } = await database.query<{ count: string }>(`select count(*) from ${schema}.fan_outs`);
  return Number(rows[0]?.count);
}

export async function timeOf(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await work();
  return performance.now() - startedAt;
}
