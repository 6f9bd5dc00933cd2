/** Cases F28-F37: block, delete, unfollow and visibility hold on the next read and on every way a post can come. */
import { describe, expect, test } from 'vitest';
import { feedQueues } from '../../../src/feed/index.js';
import { type FeedWorld, idsOf, walkOlder } from '../../../src/testing/feed-world.js';
import { databases, useWorlds } from './worlds.js';

async function following(world: FeedWorld, ...authors: readonly string[]): Promise<void> {
  await world.accounts('r', ...authors);
  for (const author of authors) await world.feed.follow({ follower: 'r', followee: author });
  await world.open('r');
}

async function post(
  world: FeedWorld,
  author: string,
  more: { repostOf?: string; visibility?: 'followers' } = {},
) {
  world.clock.advance(1);
  const body = more.repostOf ? {} : { text: 'x' };
  return (await world.feed.publish({ author, ...body, ...more })).post.id;
}

async function posts(world: FeedWorld, author: string, count: number): Promise<string[]> {
  const ids: string[] = [];
  for (let number = 0; number < count; number += 1) ids.unshift(await post(world, author));
  return ids;
}

const home = async (world: FeedWorld, limit = 100) => idsOf(await walkOlder(world.feed, 'r', limit));

const entries = async (world: FeedWorld) => (await world.timelines.entries()).length;

describe.each(databases)('visibility on $name', (on) => {
  const open = useWorlds(on);

  test('F28 a block in the middle of a fan-out holds although the reader’s batch comes after it', async () => {
    const world = await open({ batchSize: 5, threshold: { pullFrom: 1_000, pushBelow: 900 } });
    await world.accounts('c');
    await world.feed.importFollows(Array.from({ length: 20 }, (_, fan) => [`f${fan}`, 'c'] as const));
    await following(world, 'c');
    const id = await post(world, 'c');
    for (const splitter of await world.take(feedQueues.big)) await world.work(splitter);
    const batches = await world.take(feedQueues.big);
    // The splitter has written the first of five.
    expect(batches.length).toBe(4);
    for (const batch of batches.slice(0, 2)) await world.work(batch);
    await world.feed.block({ blocker: 'r', blocked: 'c' });
    expect(await home(world)).toEqual([]);
    for (const batch of batches.slice(2)) await world.work(batch);
    await world.drain();
    expect(await home(world)).toEqual([]);
    await world.feed.unblock({ blocker: 'r', blocked: 'c' });
    await world.feed.follow({ follower: 'r', followee: 'c' });
    expect(await home(world)).toEqual([id]);
  });

  test.each([
    ['pushed', 0],
    ['pulled', 20],
  ])('F29 after a block by a %s author neither posts nor reposts of them are shown', async (_, fans) => {
    const world = await open();
    await following(world, 'c', 'a');
    await world.feed.importFollows(Array.from({ length: fans }, (_, fan) => [`f${fan}`, 'c'] as const));
    const original = await post(world, 'c');
    const other = await post(world, 'a');
    await post(world, 'a', { repostOf: original });
    await world.drain();
    expect(await home(world)).toEqual([other, original]);
    await world.feed.block({ blocker: 'c', blocked: 'r' });
    expect(await home(world)).toEqual([other]);
    expect(await world.feed.getPost({ id: original, viewer: 'r' })).toBeUndefined();
    expect((await world.feed.accountPosts({ account: 'c', viewer: 'r' })).posts).toEqual([]);
  });

  test('F30 a block holds on old cursors, stored rankings, live hints and rebuilds', async () => {
    const world = await open({ rank: ({ candidates }) => candidates.map(({ id }) => id) });
    await following(world, 'c', 'a');
    await posts(world, 'c', 10);
    const kept = await posts(world, 'a', 3);
    await posts(world, 'c', 10);
    await world.drain();
    const [page] = await walkOlder(world.feed, 'r', 5);
    const ranked = await world.feed.home({ reader: 'r', limit: 5, ranked: true });
    await world.feed.block({ blocker: 'r', blocked: 'c' });
    expect(await home(world)).toEqual(kept);
    expect(idsOf(await walkOlder(world.feed, 'r', 5, page?.next))).toEqual(kept);
    const rest = await world.feed.home({ reader: 'r', limit: 100, ranked: true, after: ranked.next });
    expect(idsOf([rest])).toEqual(kept);
    await world.feed.rebuild('r');
    expect(await home(world)).toEqual(kept);
  });

  test('F31 a followers-only post cannot be reposted by others, and reaches who follows its author', async () => {
    const world = await open();
    await following(world, 'a', 'z');
    await world.accounts('s');
    await world.feed.follow({ follower: 's', followee: 'a' });
    await world.open('s');
    const secret = await post(world, 'z', { visibility: 'followers' });
    await expect(world.feed.publish({ author: 'a', repostOf: secret })).rejects.toMatchObject({
      code: 'repost-refused',
    });
    const own = await world.feed.publish({ author: 'z', repostOf: secret });
    expect(own.created).toBe(true);
    await world.drain();
    expect(await home(world)).toEqual([secret]);
    expect((await world.feed.home({ reader: 's' })).items).toEqual([]);
    expect(await world.feed.getPost({ id: secret, viewer: 's' })).toBeUndefined();
    expect(await world.feed.getPost({ id: secret })).toBeUndefined();
    expect((await world.feed.getPost({ id: secret, viewer: 'r' }))?.id).toBe(secret);
  });

  test('F32 followers-only posts are gone from the first read after an unfollow, kept history included', async () => {
    const world = await open();
    await following(world, 'a');
    const open10 = await posts(world, 'a', 10);
    for (let number = 0; number < 10; number += 1) await post(world, 'a', { visibility: 'followers' });
    await world.drain();
    expect((await home(world)).length).toBe(20);
    await world.feed.unfollow({ follower: 'r', followee: 'a', keepHistory: true });
    expect(await home(world)).toEqual(open10);
    await world.feed.unfollow({ follower: 'r', followee: 'a' });
    expect(await home(world)).toEqual([]);
  });

  test('F33 an unfollow hides at once with full pages, and later leaves no entry', async () => {
    const world = await open();
    await following(world, 'a', 'b');
    const ids: string[] = [];
    for (let number = 0; number < 70; number += 1) {
      const id = await post(world, number % 7 < 3 ? 'a' : 'b');
      if (number % 7 >= 3) ids.unshift(id);
    }
    await world.drain();
    await world.feed.unfollow({ follower: 'r', followee: 'a' });
    const pages = await walkOlder(world.feed, 'r', 20);
    expect(pages.map((page) => page.items.length)).toEqual([20, 20]);
    expect(idsOf(pages)).toEqual(ids);
    await world.drain();
    expect(await entries(world)).toBe(40);
  });

  test('F34 what others reposted, own posts and own reposts stay when an author is unfollowed', async () => {
    const world = await open();
    await following(world, 'a', 'b');
    const [x, y, z] = [await post(world, 'a'), await post(world, 'a'), await post(world, 'a')];
    await post(world, 'b', { repostOf: x });
    const own = await post(world, 'r');
    await post(world, 'r', { repostOf: y });
    await world.drain();
    await world.feed.unfollow({ follower: 'r', followee: 'a' });
    expect(await home(world)).toEqual([y, own, x]);
    await world.drain();
    await world.feed.vacuum();
    expect(await home(world)).toEqual([y, own, x]);
    expect(await home(world)).not.toContain(z);
  });

  test('F35 after unfollow and follow the whole past is there, the newest 20 at once', async () => {
    const world = await open();
    await following(world, 'a');
    const ids = await posts(world, 'a', 60);
    await world.drain();
    await world.feed.unfollow({ follower: 'r', followee: 'a' });
    await world.drain();
    expect(await entries(world)).toBe(0);
    await world.feed.follow({ follower: 'r', followee: 'a' });
    // Outside the database the author is merged until the backfill has run.
    expect(await entries(world)).toBe(on.timelines === 'table' ? 20 : 0);
    expect(await home(world)).toEqual(ids);
    await world.drain();
    expect(await entries(world)).toBe(60);
    expect(await home(world)).toEqual(ids);
  });

  test('F36, F55 the messages of follow, unfollow and follow run in every order, each twice, to the same home', async () => {
    for (const order of ['012', '021', '102', '120', '201', '210']) {
      const world = await open();
      await following(world, 'b');
      await world.accounts('a');
      const ids = await posts(world, 'a', 30);
      await world.drain();
      await world.feed.follow({ follower: 'r', followee: 'a' });
      await world.feed.unfollow({ follower: 'r', followee: 'a' });
      await world.feed.follow({ follower: 'r', followee: 'a' });
      const messages = [...(await world.take(feedQueues.repair)), ...(await world.take(feedQueues.cleanUp))];
      expect(messages.length).toBe(3);
      for (const place of order) {
        const message = messages[Number(place)];
        if (!message) continue;
        await world.work(message);
        await world.work(message);
        expect(await home(world)).toEqual(ids);
      }
      expect((await world.feed.verify('r')).missing).toEqual([]);
      await world.close();
    }
  });

  test('F36 clean-up and backfill at the same time leave the timeline whole', async () => {
    const world = await open();
    await following(world, 'a');
    const ids = await posts(world, 'a', 40);
    await world.drain();
    for (let round = 0; round < 10; round += 1) {
      await world.feed.unfollow({ follower: 'r', followee: 'a' });
      await world.feed.follow({ follower: 'r', followee: 'a' });
      await Promise.all((await world.take()).map((message) => world.work(message)));
      expect(await home(world)).toEqual(ids);
      expect((await world.feed.verify('r')).missing).toEqual([]);
    }
  });

  test('F37 a delete is seen by nobody from the next read on and writes one row', async () => {
    const world = await open();
    await following(world, 'a');
    const [first, second] = [await post(world, 'a'), await post(world, 'a')];
    await world.drain();
    const before = await entries(world);
    await world.feed.deletePost({ id: second });
    expect(await home(world)).toEqual([first]);
    expect(await entries(world)).toBe(before);
    expect(await world.take()).toEqual([]);
    expect(await world.feed.deletePost({ id: second })).toEqual({ kind: 'deleted', existed: false });
    await world.feed.vacuum();
    expect(await entries(world)).toBe(before - 1);
  });
});
