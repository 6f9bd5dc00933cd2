/**
 * A home is read from a window of a list in Redis and then from the database: what moves from one to the other in between is
 * missed by neither.
 */
import { describe, expect, test } from 'vitest';
import { type FeedWorld, idsOf, walkOlder } from '../../src/testing/feed-world.js';
import { findRedisServer } from '../../src/testing/redis-server.js';
import { databases, useWorlds } from './feed/worlds.js';

const inRedis = databases.filter(({ timelines }) => timelines === 'redis');

/** Lets `work` happen once, right after the next window has been read. */
function afterNextWindow({ timelines: { lists } }: FeedWorld, work: () => Promise<unknown>): void {
  if (!lists) throw new Error('the timelines are not in lists');
  const read = lists.read.bind(lists);
  lists.read = async (input) => {
    lists.read = read;
    const window = await read(input);
    await work();
    return window;
  };
}

describe.skipIf(!findRedisServer())('needs redis-server on the PATH', () => {
  describe.each(inRedis)('between the window and the database on $name', (on) => {
    const open = useWorlds(on);

    async function prepared(): Promise<FeedWorld> {
      const world = await open();
      await world.accounts('r', 'a', 'b');
      await world.feed.follow({ follower: 'r', followee: 'a' });
      await world.open('r');
      await world.feed.publish({ author: 'a', text: 'old' });
      await world.drain();
      world.clock.advance(1_000);
      return world;
    }

    test('the reader’s own post stays, whose fan-out ends', async () => {
      const world = await prepared();
      const { post } = await world.feed.publish({ author: 'r', text: 'own' });
      afterNextWindow(world, () => world.drain());
      const page = await world.feed.home({ reader: 'r' });
      expect(page.items[0]?.id).toBe(post.id);
      const before = page.items[1]?.id;
      expect(idsOf([await world.feed.home({ reader: 'r' })])).toEqual([post.id, before]);
    });

    test('the reader’s own post stays on a page towards newer', async () => {
      const world = await prepared();
      const { previous } = await world.feed.home({ reader: 'r' });
      const { post } = await world.feed.publish({ author: 'r', text: 'own' });
      afterNextWindow(world, () => world.drain());
      expect(idsOf([await world.feed.home({ reader: 'r', before: previous })])).toEqual([post.id]);
    });

    test('the posts of a new followee stay, whose backfill ends', async () => {
      const world = await prepared();
      for (let number = 0; number < 3; number += 1) await world.feed.publish({ author: 'b', text: 'b' });
      await world.drain();
      await world.feed.follow({ follower: 'r', followee: 'b' });
      const expected = idsOf(await walkOlder(world.feed, 'r', 20));
      expect(expected).toHaveLength(4);
      afterNextWindow(world, () => world.drain());
      expect(idsOf([await world.feed.home({ reader: 'r' })])).toEqual(expected);
      const page = await world.feed.home({ reader: 'r' });
      expect(idsOf([page])).toEqual(expected);
      expect(page.sources).toMatchObject({ timeline: 'live', pulledAuthors: 0 });
    });

    test('a list that is being built is not taken for one that is', async () => {
      const world = await prepared();
      const expected = idsOf([await world.feed.home({ reader: 'r' })]);
      const { store, database } = world.context;
      const reader = (await store.resolve(database, ['r'])).get('r')?.number ?? '';
      const token = await database.transaction((on) =>
        store.beginBuild(on, { reader, now: world.clock.now() }),
      );
      const input = { reader, token, entriesMax: 800, activeMs: 86_400_000, now: world.clock.now() };
      await world.timelines.lists?.begin({ reader, token, keptMs: 86_400_000 });
      afterNextWindow(world, () => store.finishBuild(database, input));
      expect(idsOf([await world.feed.home({ reader: 'r' })])).toEqual(expected);
      expect((await world.feed.home({ reader: 'r' })).sources.timeline).toBe('live');
    });
  });
});
