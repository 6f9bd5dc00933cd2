/**
 * The Redis of the timelines is killed, flushed, or comes back younger than it was: homes equal the oracle at every moment,
 * served from the posts where the lists cannot be believed, and what was lost is pushed again.
 */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { Database } from '../../src/database/index.js';
import { createFeed, createFeedWorker, feedQueues } from '../../src/feed/index.js';
import { createPostgresFeedStore } from '../../src/feed/postgres/index.js';
import { createRedisTimelines } from '../../src/feed/redis/index.js';
import { createPostgresQueueStore } from '../../src/queue/postgres/index.js';
import { redisTimelines } from '../../src/testing/feed-timelines.js';
import { type FeedWorld, idsOf, openFeedWorld, walkOlder } from '../../src/testing/feed-world.js';
import { findRedisServer, type RedisServer } from '../../src/testing/redis-server.js';
import { testDatabases, testServers } from '../database/test-databases.js';
import { useOpened } from './redis/opened.js';

const readers = Array.from({ length: 6 }, (_, number) => `r${number}`);
const [on] = [...testServers(), ...testDatabases()];

describe.skipIf(!findRedisServer())('a feed with timelines in Redis (needs redis-server on the PATH)', () => {
  let database: Database;
  // Before the line that closes the worlds: what stands first is ended last.
  const { startServer, connect } = useOpened();
  const worlds: FeedWorld[] = [];
  beforeAll(async () => {
    database = await on!.open();
  });
  afterEach(async () => {
    for (const world of worlds.splice(0)) await world.close();
  });
  afterAll(() => database.close());

  /** Readers with a timeline each who follow one author. */
  async function open(redis: RedisServer): Promise<FeedWorld> {
    const world = await openFeedWorld({
      database,
      queueStore: (schema) => createPostgresQueueStore({ database, schema }),
      openTimelines: (database, schema) => redisTimelines(database, schema, redis),
      options: { threshold: { pullFrom: 1_000, pushBelow: 900 } },
    });
    worlds.push(world);
    await world.accounts(...readers, 'a');
    for (const reader of readers) {
      await world.feed.follow({ follower: reader, followee: 'a' });
      await world.open(reader);
    }
    // Long ago: nothing of this can be lost any more.
    world.clock.advance(120_000);
    await world.worker.keepHouse();
    return world;
  }

  async function publish({ feed, clock }: FeedWorld, count: number, into: string[]): Promise<void> {
    for (let number = 0; number < count; number += 1) {
      clock.advance(1);
      into.unshift((await feed.publish({ author: 'a', text: `${number}` })).post.id);
    }
  }

  async function expectHomes(
    { feed }: FeedWorld,
    ids: readonly string[],
    timeline?: 'live' | 'none',
  ): Promise<void> {
    for (const reader of readers) {
      const pages = await walkOlder(feed, reader, 20);
      expect(idsOf(pages), reader).toEqual(ids);
      if (timeline) expect(pages[0]?.sources.timeline, reader).toBe(timeline);
      expect(pages[0]?.complete).toBe(true);
    }
  }

  const waiting = async ({ queue }: FeedWorld, ...queues: readonly string[]) => {
    let count = 0;
    for (const name of queues) {
      // Those that were refused while Redis was away wait for their next attempt.
      const { invisible, pending, running } = await queue.depth(name);
      count += invisible + pending + running;
    }
    return count;
  };

  /** Until the connection has noticed, commands may still wait for the old one. */
  const isBack = (world: FeedWorld) =>
    expect.poll(() => world.timelines.lists!.servers().catch(() => [])).not.toEqual([]);

  test.each([
    ['without persistence', 'none'],
    ['with an append-only file', 'everysec'],
  ] as const)(
    'killed %s in the middle of load, homes stay right and are pushed to again',
    async (_, fsync) => {
      const redis = await startServer({ fsync });
      const world = await open(redis);
      const worker = createFeedWorker(world.configuration, { slots: 4, housekeepingMs: 50, leaseMs: 2_000 });
      await worker.start();
      const ids: string[] = [];
      // The stores' clock: retries wait by it.
      const ticking = setInterval(() => world.clock.advance(50), 5);
      try {
        const load = async (count: number) => {
          for (let number = 0; number < count; number += 1) {
            await publish(world, 1, ids);
            await world.feed.home({ reader: readers[number % readers.length]! });
          }
        };
        await load(20);
        const loading = load(40);
        await redis.kill();
        await loading;
        // Nobody pushes anything now; the posts are read from the posts.
        await expectHomes(world, ids, 'none');
        await load(10);
        await redis.restart();
        await load(10);
        await expect
          .poll(
            async () => {
              const homes = await Promise.all(readers.map((reader) => world.feed.home({ reader })));
              return homes.map(({ sources }) => sources.timeline);
            },
            { timeout: 40_000 },
          )
          .toEqual(readers.map(() => 'live'));
        await expect
          .poll(() => waiting(world, feedQueues.small, feedQueues.repair), { timeout: 40_000 })
          .toBe(0);
      } finally {
        clearInterval(ticking);
        await worker.stop();
      }
      await world.drain();
      await expectHomes(world, ids, 'live');
      for (const reader of readers) expect((await world.feed.verify(reader)).missing).toEqual([]);
    },
  );

  test('flushed in the middle of load, every home is right on the very next read', async () => {
    const redis = await startServer();
    const world = await open(redis);
    const client = connect(redis);
    const ids: string[] = [];
    await publish(world, 30, ids);
    await world.drain();
    await publish(world, 2, ids);
    await client.flushall();
    await world.drain(feedQueues.small);
    await publish(world, 2, ids);
    await expectHomes(world, ids, 'none');
    await world.drain();
    await expectHomes(world, ids, 'live');
  });

  /** Saves, lets more be pushed, and brings the server back as it was when it saved. */
  async function comeBackYounger(
    redis: RedisServer,
    world: FeedWorld,
    more: () => Promise<void>,
  ): Promise<void> {
    const client = connect(redis);
    await client.save();
    const before = (await world.timelines.entries()).length;
    await more();
    expect((await world.timelines.entries()).length).toBeGreaterThan(before);
    await redis.kill();
    await redis.restart();
    await isBack(world);
    expect((await world.timelines.entries()).length).toBe(before);
  }

  test('come back younger, nothing it says counts until its loss has been written again', async () => {
    const redis = await startServer();
    const world = await open(redis);
    const ids: string[] = [];
    await publish(world, 30, ids);
    await world.drain();
    await comeBackYounger(redis, world, async () => {
      await publish(world, 10, ids);
      await world.drain();
      // One timeline was also filled by a backfill.
      await world.accounts('b');
      world.clock.advance(1);
      ids.unshift((await world.feed.publish({ author: 'b', text: 'b' })).post.id);
      await world.drain();
      for (const reader of readers.slice(0, 1)) await world.feed.follow({ follower: reader, followee: 'b' });
      await world.drain();
    });
    const [first, ...others] = [ids, ...readers.slice(1).map(() => ids.slice(1))];
    const expectAll = async (timelines: readonly string[]) => {
      for (const [index, reader] of readers.entries()) {
        const pages = await walkOlder(world.feed, reader, 20);
        expect(idsOf(pages), reader).toEqual(index === 0 ? first : others[index - 1]);
        expect(pages[0]?.sources.timeline, reader).toBe(timelines[index]);
      }
    };
    await expectAll(readers.map(() => 'none'));
    await world.worker.keepHouse();
    // Believed again: posts of the loss are merged as overdue; the timeline filled by a backfill is built anew.
    await expectAll(['none', 'live', 'live', 'live', 'live', 'live']);
    const rebuilt = (await world.timelines.entries()).length;
    await world.drain();
    await expectAll(readers.map(() => 'live'));
    expect((await world.timelines.entries()).length).toBeGreaterThan(rebuilt);
    for (const reader of readers) expect((await world.feed.verify(reader)).missing).toEqual([]);
  });

  test('come back younger than the journal reaches, all timelines are built anew', async () => {
    const redis = await startServer();
    const world = await open(redis);
    const ids: string[] = [];
    await publish(world, 5, ids);
    await world.drain();
    await world.worker.keepHouse();
    await comeBackYounger(redis, world, async () => {
      await publish(world, 5, ids);
      await world.drain();
      for (let minute = 0; minute < 3; minute += 1) {
        world.clock.advance(60_000);
        await world.worker.keepHouse();
      }
      await publish(world, 1, ids);
      await world.drain();
    });
    await world.worker.keepHouse();
    await expectHomes(world, ids, 'none');
    await world.drain();
    await expectHomes(world, ids, 'live');
  });

  test('a list of an earlier build does not count', async () => {
    const world = await open(await startServer());
    const ids: string[] = [];
    await publish(world, 3, ids);
    await world.drain();
    const { lists } = world.timelines;
    // The earliest that could count.
    const { rows } = await world.database.query<{ token: string }>(
      `select tokens_from as token from "${world.schema}".timeline_servers`,
    );
    for (const { number } of (await world.context.store.resolve(world.database, readers)).values()) {
      await lists!.drop([number]);
      await lists!.begin({ reader: number, token: rows[0]!.token, keptMs: 60_000 });
    }
    await expectHomes(world, ids, 'none');
    await world.drain();
    await expectHomes(world, ids, 'live');
  });

  test('a batch whose server has gone meanwhile is not marked as done, and is written again', async () => {
    const redis = await startServer();
    const world = await open(redis);
    const ids: string[] = [];
    const client = connect(redis);
    await client.save();
    await publish(world, 1, ids);
    const [message] = await world.take(feedQueues.small);
    const { lists } = world.timelines;
    const push = lists!.push.bind(lists);
    lists!.push = async (input) => {
      const pushed = await push(input);
      await redis.kill();
      await redis.restart();
      await isBack(world);
      await world.worker.keepHouse();
      return pushed;
    };
    await expect(world.work(message!)).rejects.toMatchObject({ code: 'timelines-in-doubt' });
    lists!.push = push;
    expect(await world.timelines.entries()).toEqual([]);
    expect(await world.feed.fanOutProgress(ids[0]!)).toMatchObject({ done: false });
    await world.work(message!);
    expect((await world.timelines.entries()).length).toBe(readers.length);
    await world.drain();
    await expectHomes(world, ids, 'live');
  });

  test('a server that has become another one with no connection broken is noticed by who only reads', async () => {
    const redis = await startServer({ settings: { 'enable-debug-command': 'local' } });
    const world = await open(redis);
    const ids: string[] = [];
    await publish(world, 3, ids);
    await world.drain();
    const client = connect(redis);
    await client.call('DEBUG', 'CHANGE-REPL-ID');
    // Somebody else has looked at it: this process may not go on with what it knew.
    await world.database.query(`update "${world.schema}".timeline_servers set id = 'the next one'`);
    await expectHomes(world, ids, 'none');
    const other = connect(redis);
    const info = await other.info('server', 'replication');
    const id = `${/^run_id:(\w+)/m.exec(info)?.[1]}:${/^master_replid:(\w+)/m.exec(info)?.[1]}`;
    await world.database.query(`update "${world.schema}".timeline_servers set id = $1`, [id]);
    await expect.poll(async () => (await world.feed.home({ reader: 'r0' })).sources.timeline).toBe('live');
    await expectHomes(world, ids, 'live');
  });

  test('F49 two processes with two Redis: the second is refused at start, and homes stay right', async () => {
    const world = await open(await startServer());
    const other = await startServer();
    const worker = createFeedWorker(world.configuration, { housekeepingMs: 100 });
    await worker.start();
    const elsewhere = {
      ...world.configuration,
      store: createPostgresFeedStore({
        database,
        schema: world.schema,
        timelines: createRedisTimelines({ url: other.url }),
      }),
    };
    const feed = createFeed(elsewhere);
    try {
      await expect(feed.start()).rejects.toMatchObject({ code: 'timelines-elsewhere' });
      const ids: string[] = [];
      await publish(world, 3, ids);
      await expect.poll(() => waiting(world, feedQueues.small)).toBe(0);
      const home = await feed.home({ reader: 'r0' });
      expect([home.items.map(({ id }) => id), home.sources.timeline]).toEqual([ids, 'none']);
      await expect.poll(async () => (await world.feed.home({ reader: 'r0' })).sources.timeline).toBe('live');
    } finally {
      await worker.stop();
      await feed.stop();
      await elsewhere.store.stop();
    }
  });

  test('a Redis that is away at start keeps nobody from reading and publishing', async () => {
    const redis = await startServer();
    await redis.kill();
    const world = await openFeedWorld({
      database,
      queueStore: (schema) => createPostgresQueueStore({ database, schema }),
      openTimelines: (database, schema) => redisTimelines(database, schema, redis),
    });
    worlds.push(world);
    await world.accounts('r', 'a');
    await world.feed.follow({ follower: 'r', followee: 'a' });
    const ids: string[] = [];
    await publish(world, 2, ids);
    const home = await world.feed.home({ reader: 'r' });
    expect([home.items.map(({ id }) => id), home.sources.timeline]).toEqual([ids, 'none']);
    await redis.restart();
    await isBack(world);
    await world.worker.keepHouse();
    await world.drain();
    expect((await world.feed.home({ reader: 'r' })).sources.timeline).toBe('live');
  });
});
