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
});
