/**
 * Entries of a fan-out are committed without waiting for the disk. A server that is killed may lose them after their message is
 * completed: then their marks are lost with them, home stays complete, and the work is done again.
 */
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { type Database, openPostgres } from '../../src/database/index.js';
import { fanOut, fanOutBatch } from '../../src/feed/fan-out.js';
import { createPostgresQueueStore } from '../../src/queue/postgres/index.js';
import { type FeedWorld, idsOf, openFeedWorld } from '../../src/testing/feed-world.js';
import { type PostgresServer, startPostgresServer } from '../../src/testing/postgres-server.js';
import { testServers } from '../database/test-databases.js';

const readers = Array.from({ length: 12 }, (_, number) => `r${number}`);

test.skipIf(testServers().length === 0).each([
  ['one batch', 100],
  ['several batches', 5],
])(
  'entries that a killed server has lost are written again: %s (needs a PostgreSQL server)',
  async (_, batchSize) => {
    const world = await openWorld(batchSize);
    await world.accounts('a', ...readers);
    for (const follower of readers) await world.feed.follow({ follower, followee: 'a' });
    for (const reader of readers) await world.open(reader);
    await world.drain();
    const { post } = await world.feed.publish({ author: 'a', text: 'x' });
    // As with a queue that is somewhere else: its messages are completed for good, the work is the last that was committed.
    if (batchSize < readers.length) await complete(world, { work: true });
    await complete(world, { work: false });
    const open = await world.context.store.fanOut(database, post.id);
    for (const batch of open?.batches ?? []) await fanOutBatch(world.context, { post: post.id, batch });
    if (open?.batches === undefined) await fanOut(world.context, post.id);
    expect((await world.feed.fanOutProgress(post.id))?.done).toBe(true);

    await server.kill();
    await server.restart();
    const progress = () => world.feed.fanOutProgress(post.id);
    const afterwards = await vi.waitFor(progress, { timeout: 30_000, interval: 100 });
    expect(afterwards?.done, 'the server has lost the last moments').toBe(false);
    world.clock.advance(10_000);
    const homes = async () => {
      for (const reader of readers) expect(idsOf([await world.feed.home({ reader })])).toEqual([post.id]);
    };
    await homes();
    await world.worker.keepHouse();
    await world.drain();
    expect((await progress())?.done).toBe(true);
    await homes();
    for (const reader of readers) {
      expect(await world.feed.verify(reader)).toMatchObject({ timeline: 'live', checked: 1, missing: [] });
    }
  },
);

let server: PostgresServer;
let database: Database;
const worlds: FeedWorld[] = [];

beforeAll(async () => {
  // Nothing that commits without waiting reaches the disk before the kill.
  server = await startPostgresServer({ fsync: true, settings: { wal_writer_delay: '10s' } });
  database = await openPostgres({ connectionString: await server.createDatabase() });
}, 60_000);
afterAll(async () => {
  for (const world of worlds) await world.close();
  await database.close();
  await server.stop();
});

async function openWorld(batchSize: number): Promise<FeedWorld> {
  const world = await openFeedWorld({
    database,
    queueStore: (schema) => createPostgresQueueStore({ database, schema }),
    options: { batchSize },
  });
  worlds.push(world);
  return world;
}

/** Completes what waits, with its work or without. */
async function complete(world: FeedWorld, { work }: { work: boolean }): Promise<void> {
  for (const message of await world.take()) {
    if (work) await world.work(message);
    else await world.queue.complete(message.queue, [{ id: message.id, leaseToken: message.leaseToken }]);
  }
}
