/** Vacuum without an operator: the worker's housekeeping takes out what nobody needs, in bounded steps. */
import { describe, expect, test } from 'vitest';
import type { FeedWorld } from '../../src/testing/feed-world.js';
import { databases, useWorlds } from './feed/worlds.js';

const dayMs = 86_400_000;

async function entriesOf({ feed }: FeedWorld): Promise<number> {
  return (await feed.stats()).timelineEntries;
}

describe.each(databases)('scheduled vacuum on $name', (on) => {
  const open = useWorlds(on);

  test('timelines of readers unseen for long go by themselves, and the others stay whole', async () => {
    const world = await open({ activeMs: 2 * dayMs });
    const gone = Array.from({ length: 25 }, (_, number) => `gone ${number}`);
    await world.accounts('here', 'a', ...gone);
    for (const follower of [...gone, 'here']) await world.feed.follow({ follower, followee: 'a' });
    for (const reader of gone) await world.open(reader);
    await world.feed.publish({ author: 'a', text: 'one' });
    await world.drain();
    world.clock.advance(3 * dayMs);
    await world.open('here');
    expect(await entriesOf(world)).toBe(gone.length + 1);
    // A few steps a round: what is left over waits for the next one.
    await expect
      .poll(
        async () => {
          await world.worker.keepHouse();
          return entriesOf(world);
        },
        { timeout: 30_000 },
      )
      .toBe(1);
    const { items, sources } = await world.feed.home({ reader: 'here' });
    expect(items.map(({ text }) => text)).toEqual(['one']);
    expect(sources.timeline).toBe('live');
  });

  test('entries of deleted posts, and the posts themselves after their time, go by themselves', async () => {
    const world = await open();
    await world.accounts('r', 'a');
    await world.feed.follow({ follower: 'r', followee: 'a' });
    await world.open('r');
    const { post } = await world.feed.publish({ author: 'a', text: 'a slip', key: 'k' });
    await world.feed.publish({ author: 'a', text: 'kept' });
    await world.drain();
    await world.feed.deletePost({ id: post.id });
    expect(await entriesOf(world)).toBe(2);
    const settled = async () => {
      await world.worker.keepHouse();
      return entriesOf(world);
    };
    await expect.poll(settled, { timeout: 30_000 }).toBe(1);
    const rows = async () => {
      await world.worker.keepHouse();
      return (await world.database.query(`select 1 from "${world.schema}".posts where id = $1`, [post.id]))
        .rowCount;
    };
    expect(await rows()).toBe(1);
    world.clock.advance(8 * dayMs);
    await expect.poll(rows, { timeout: 30_000 }).toBe(0);
  });
});
