/** A fan-out writes each entry once, whoever has been there before it. */
import { describe, expect, test } from 'vitest';
import { idsOf, walkOlder } from '../../src/testing/feed-world.js';
import { databases, useWorlds } from './feed/worlds.js';

describe.each(databases)('entries of a fan-out on $name', (on) => {
  const open = useWorlds(on);

  test.each([
    ['one batch', 100],
    ['several batches', 3],
  ])(
    'followers whose timelines have the post already keep the others from nothing (%s)',
    async (_, batchSize) => {
      const world = await open({ batchSize });
      const readers = Array.from({ length: 10 }, (_, number) => `r${number}`);
      await world.accounts('a', ...readers);
      for (const follower of readers) await world.feed.follow({ follower, followee: 'a' });
      for (const reader of [...readers, 'a']) await world.open(reader);
      const { post } = await world.feed.publish({ author: 'a', text: 'x' });
      // Built between the publish and its fan-out: these have the entry.
      for (const reader of ['r1', 'r5', 'r9']) await world.feed.rebuild(reader);
      await world.drain();
      expect((await world.feed.fanOutProgress(post.id))?.done).toBe(true);
      for (const reader of [...readers, 'a']) {
        const report = await world.feed.verify(reader);
        expect(report).toMatchObject({ timeline: 'live', missing: [], superfluous: [] });
        expect(idsOf(await walkOlder(world.feed, reader, 20))).toEqual([post.id]);
      }
      expect((await world.feed.stats()).timelineEntries).toBe(readers.length + 1);
    },
  );

  test('batches of what was published first go first, in whatever order the posts were split', async () => {
    const world = await open({ batchSize: 3 });
    const readers = Array.from({ length: 10 }, (_, number) => `r${number}`);
    await world.accounts('a', 'b', ...readers);
    await world.feed.importFollows(readers.flatMap((reader) => ['a', 'b'].map((author) => [reader, author])));
    await world.drain();
    const posts: string[] = [];
    for (const author of ['a', 'b', 'a']) {
      posts.push((await world.feed.publish({ author, text: 'x' })).post.id);
      world.clock.advance(1);
    }
    // The newest is split first, the oldest last; each writes its own first batch.
    for (const message of (await world.take()).toReversed()) await world.work(message);
    const batches = await world.take('feed-big');
    const postOf = ({ payload }: (typeof batches)[number]) => (payload as { post: string }).post;
    expect(batches.map(postOf)).toEqual(posts.flatMap((post) => [post, post, post]));
    for (const batch of batches) await world.work(batch);
    expect(idsOf([await world.feed.home({ reader: 'r9' })])).toEqual(posts.toReversed());
  });
});
