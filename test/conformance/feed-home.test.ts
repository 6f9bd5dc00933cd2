/** The page of a home that takes the short way, and where it may not: what is merged stands beside what is pushed. */
import { describe, expect, test } from 'vitest';
import { type FeedWorld, idsOf, walkNewer, walkOlder } from '../../src/testing/feed-world.js';
import { databases, useWorlds } from './feed/worlds.js';

async function publish({ feed, clock }: FeedWorld, author: string, count: number): Promise<string[]> {
  const ids: string[] = [];
  for (let number = 0; number < count; number += 1) {
    clock.advance(1);
    ids.unshift((await feed.publish({ author, text: `${author} ${number}` })).post.id);
  }
  return ids;
}

/** Twenty followers each, so that they are pulled. */
async function makePulled(world: FeedWorld, ...authors: readonly string[]): Promise<void> {
  await world.feed.importFollows(
    authors.flatMap((author) =>
      Array.from({ length: 20 }, (_, number) => [`fan ${number}`, author] as const),
    ),
  );
}

describe.each(databases)('the short way of a home on $name', (on) => {
  const open = useWorlds(on);

  test('a pulled author whose backfill has not run leaves out nobody else’s post', async () => {
    const world = await open();
    await world.accounts('r', 'c', 'p', 'q');
    await makePulled(world, 'p', 'q');
    for (const followee of ['c', 'q']) await world.feed.follow({ follower: 'r', followee });
    await world.open('r');
    const older = await publish(world, 'c', 12);
    const one = await publish(world, 'q', 1);
    const newest = await publish(world, 'p', 12);
    await world.drain();
    // Merged twice over: as a pulled author and as a new followee.
    await world.feed.follow({ follower: 'r', followee: 'p' });
    const expected = [...newest, ...one, ...older];
    expect(idsOf(await walkOlder(world.feed, 'r', 20))).toEqual(expected);
    await world.drain();
    expect(idsOf(await walkOlder(world.feed, 'r', 20))).toEqual(expected);
  });

  test('many pulled authors are merged exactly, whatever the size of the page', async () => {
    const world = await open();
    const authors = Array.from({ length: 30 }, (_, number) => `p${number}`);
    await world.accounts('r', 'c', ...authors);
    await makePulled(world, ...authors);
    await world.feed.importFollows([...authors, 'c'].map((author) => ['r', author] as const));
    await world.open('r');
    const ids: string[] = [];
    for (let round = 0; round < 4; round += 1) {
      // Some write much and some little, in turns with a pushed one.
      for (const [index, author] of authors.entries()) {
        if (index % 5 === 0 || round === 0) ids.unshift(...(await publish(world, author, 1)));
        if (index % 3 === 0) ids.unshift(...(await publish(world, 'c', 1)));
        if (index === 7) ids.unshift(...(await publish(world, author, 9)));
      }
    }
    await world.drain();
    for (const limit of [1, 7, 20]) {
      const pages = await walkOlder(world.feed, 'r', limit);
      expect(idsOf(pages), `limit ${limit}`).toEqual(ids);
      const last = pages.at(-1);
      const back = await walkNewer(world.feed, 'r', limit, last?.previous ?? '');
      expect(idsOf(back.toReversed()), `limit ${limit} back`).toEqual(
        ids.slice(0, ids.length - (last?.items.length ?? 0)),
      );
    }
  });

  test('own posts and late ones are merged into a page that the timeline alone would fill', async () => {
    const world = await open();
    await world.accounts('r', 'a', 'b');
    for (const followee of ['a', 'b']) await world.feed.follow({ follower: 'r', followee });
    await world.open('r');
    const pushed = await publish(world, 'a', 40);
    await world.drain();
    const [late] = await publish(world, 'b', 1);
    const [own] = await publish(world, 'r', 1);
    const first = async () => idsOf([await world.feed.home({ reader: 'r', limit: 3 })]);
    expect(await first()).toEqual([own, ...pushed.slice(0, 2)]);
    world.clock.advance(10_000);
    expect(await first()).toEqual([own, late, pushed[0]]);
    const page = await world.feed.home({ reader: 'r', limit: 3 });
    expect(page.items.map(({ why }) => why.source)).toEqual(['own', 'overdue', 'pushed']);
    await world.drain();
    expect(await first()).toEqual([own, late, pushed[0]]);
    expect(idsOf(await walkOlder(world.feed, 'r', 7))).toEqual([own, late, ...pushed]);
  });

  test('hidden posts at the seam of a page are replaced by what stands behind them', async () => {
    const world = await open();
    await world.accounts('r', 'a', 'b');
    for (const followee of ['a', 'b']) await world.feed.follow({ follower: 'r', followee });
    await world.open('r');
    const kept = await publish(world, 'a', 30);
    const hidden = await publish(world, 'b', 30);
    await world.drain();
    for (const id of hidden.slice(0, 10)) await world.feed.deletePost({ id });
    await world.feed.mute({ muter: 'r', muted: 'b' });
    expect(idsOf(await walkOlder(world.feed, 'r', 20))).toEqual(kept);
    await world.feed.unmute({ muter: 'r', muted: 'b' });
    expect(idsOf(await walkOlder(world.feed, 'r', 20))).toEqual([...hidden.slice(10), ...kept]);
  });
  test('a reader who mutes more accounts than a page keeps in mind sees none of them', async () => {
    const world = await open();
    const many = Array.from({ length: 101 }, (_, number) => `m${number}`);
    await world.accounts('r', ...many, 'a', 'b', 'z');
    for (const followee of ['a', 'b']) await world.feed.follow({ follower: 'r', followee });
    await world.open('r');
    const [ofZ] = await publish(world, 'z', 1);
    await world.feed.publish({ author: 'b', repostOf: ofZ });
    const shown = async () => idsOf(await walkOlder(world.feed, 'r', 2));
    const [seen, muted] = [await publish(world, 'a', 3), await publish(world, 'b', 3)];
    await world.drain();
    expect(await shown()).toEqual([...muted, ...seen, ofZ]);
    await world.feed.mute({ muter: 'r', muted: 'z' });
    for (const other of many) await world.feed.mute({ muter: 'r', muted: other });
    expect(await shown()).toEqual([...muted, ...seen]);
    await world.feed.mute({ muter: 'r', muted: 'b' });
    expect(await shown()).toEqual(seen);
    await world.feed.unmute({ muter: 'r', muted: 'z' });
    expect(await shown(), 'muted is who reposted it').toEqual(seen);
    await world.feed.unmute({ muter: 'r', muted: 'b' });
    expect(await shown()).toEqual([...muted, ...seen, ofZ]);
  });
});
