/** Cases F22-F27: each post once, a repost and its original counted as one; a ranked session repeats nothing. */
import { describe, expect, test } from 'vitest';
import { feedQueues, seededRandom } from '../../../src/feed/index.js';
import { type FeedWorld, idsOf, walkOlder } from '../../../src/testing/feed-world.js';
import { databases, useWorlds } from './worlds.js';

async function world3(open: () => Promise<FeedWorld>): Promise<FeedWorld> {
  const world = await open();
  await world.accounts('r', 'a', 'b', 'x');
  await world.feed.follow({ follower: 'r', followee: 'a' });
  await world.feed.follow({ follower: 'r', followee: 'b' });
  await world.open('r');
  return world;
}

async function post(world: FeedWorld, author: string, repostOf?: string): Promise<string> {
  world.clock.advance(1);
  return (await world.feed.publish(repostOf ? { author, repostOf } : { author, text: 'x' })).post.id;
}

describe.each(databases)('reposts on $name', (on) => {
  const open = useWorlds(on);

  test('F22 a post that two followees repost at the same moment is shown once, with a reposter named', async () => {
    const world = await world3(open);
    for (let round = 0; round < 20; round += 1) {
      const original = await post(world, 'x');
      const first = await post(world, 'a', original);
      await post(world, 'b', original);
      const messages = await world.take(feedQueues.small);
      await Promise.all(messages.map((message) => world.work(message)));
      const { items } = await world.feed.home({ reader: 'r', limit: 100 });
      const shown = items.filter((item) => item.id === original);
      expect(shown.map(({ repostedBy, author }) => [author, repostedBy?.author, repostedBy?.id])).toEqual([
        ['x', 'a', first],
      ]);
    }
  });

  test.each([
    ['pushed', 0],
    ['pulled', 20],
  ])(
    'F23 a repost by a %s author that arrives before its original leaves one post in one place',
    async (_, fans) => {
      const world = await world3(open);
      await world.feed.importFollows(Array.from({ length: fans }, (_, fan) => [`f${fan}`, 'a'] as const));
      const older = await post(world, 'b');
      const original = await post(world, 'b');
      const between = await post(world, 'b');
      await post(world, 'a', original);
      const messages = await world.take(feedQueues.small);
      for (const message of messages.toReversed()) await world.work(message);
      expect(idsOf(await walkOlder(world.feed, 'r', 1))).toEqual([between, original, older]);
      const item = (await world.feed.home({ reader: 'r' })).items[1];
      expect([item?.why.through, item?.repostedBy?.author]).toEqual(['b', 'a']);
    },
  );

  test('F24 a deleted original takes its reposts along, a deleted repost leaves it to the others', async () => {
    const world = await world3(open);
    await world.accounts('c');
    await world.feed.follow({ follower: 'r', followee: 'c' });
    const [x, y] = [await post(world, 'x'), await post(world, 'x')];
    const reposts = [await post(world, 'a', x), await post(world, 'b', x), await post(world, 'c', x)];
    await post(world, 'a', y);
    await world.drain();
    await world.feed.deletePost({ id: reposts[0] ?? '' });
    const left = (await world.feed.home({ reader: 'r' })).items.find((item) => item.id === x);
    expect(left?.repostedBy?.author).toBe('b');
    await world.feed.deletePost({ id: x });
    expect(idsOf(await walkOlder(world.feed, 'r', 1))).toEqual([y]);
  });

  test('a repost by the hundredfold reposted costs the reader no more than followees', async () => {
    const world = await world3(open);
    const original = await post(world, 'x');
    const strangers = Array.from({ length: 120 }, (_, number) => `stranger ${number}`);
    await world.accounts(...strangers);
    for (const stranger of strangers) await post(world, stranger, original);
    const mine = await post(world, 'a', original);
    await world.drain();
    const [item] = (await world.feed.home({ reader: 'r' })).items;
    expect([item?.id, item?.repostedBy?.id]).toEqual([original, mine]);
  });

  test('an account reposts a post once', async () => {
    const world = await world3(open);
    const original = await post(world, 'x');
    const first = await world.feed.publish({ author: 'a', repostOf: original });
    const again = await world.feed.publish({ author: 'a', repostOf: original });
    expect(again).toMatchObject({ created: false, post: { id: first.post.id } });
    const ofRepost = await world.feed.publish({ author: 'b', repostOf: first.post.id });
    expect(ofRepost.post.repostOf).toBe(original);
  });

  test('F25 a ranked session shows each of 100 once, whatever the hook would say next', async () => {
    const random = seededRandom(7);
    const world = await open({
      rank: ({ candidates }) => candidates.map(({ id }) => id).sort(() => random() - 0.5),
    });
    await world.accounts('r', 'a');
    await world.feed.follow({ follower: 'r', followee: 'a' });
    await world.open('r');
    const ids: string[] = [];
    for (let number = 0; number < 100; number += 1) ids.push(await post(world, 'a'));
    await world.drain();
    const shown: string[] = [];
    let after: string | undefined;
    for (let page = 0; page < 10; page += 1) {
      const home = await world.feed.home({ reader: 'r', limit: 10, ranked: true, after });
      expect(home.items.length).toBe(10);
      shown.push(...home.items.map((item) => item.id));
      after = home.next;
    }
    expect(after).toBeUndefined();
    expect(shown.toSorted()).toEqual(ids.toSorted());
    expect(shown).not.toEqual(ids.toReversed());
    const other = await world.feed.home({ reader: 'r', limit: 100, ranked: true });
    expect(idsOf([other])).not.toEqual(shown);
  });

  test('a ranking that is no longer kept is said to be expired', async () => {
    const world = await open({ rank: ({ candidates }) => candidates.map(({ id }) => id) });
    await world.accounts('r');
    for (let number = 0; number < 3; number += 1) await post(world, 'r');
    const { next } = await world.feed.home({ reader: 'r', limit: 1, ranked: true });
    world.clock.advance(600_001);
    await expect(world.feed.home({ reader: 'r', ranked: true, after: next })).rejects.toMatchObject({
      code: 'cursor-expired',
      status: 410,
    });
  });

  test('F26 backfills and deliveries at the same time lose nothing', async () => {
    const world = await open();
    await world.accounts('r', 'a', 'b', 'c');
    await world.feed.follow({ follower: 'r', followee: 'c' });
    await world.open('r');
    const ids: string[] = [];
    for (let number = 0; number < 20; number += 1) ids.push(await post(world, 'a'), await post(world, 'b'));
    await world.drain();
    for (let number = 0; number < 5; number += 1) ids.push(await post(world, 'c'));
    await Promise.all([
      world.feed.follow({ follower: 'r', followee: 'a' }),
      world.feed.follow({ follower: 'r', followee: 'b' }),
      world.drain(feedQueues.small),
    ]);
    const messages = await world.take();
    await Promise.all(messages.map((message) => world.work(message)));
    await world.drain();
    expect(idsOf(await walkOlder(world.feed, 'r', 20))).toEqual(ids.toReversed());
    expect((await world.feed.verify('r')).missing).toEqual([]);
  });

  test('F27 a cursor of another list, or with one character changed, is refused by name', async () => {
    const world = await open({ rank: ({ candidates }) => candidates.map(({ id }) => id) });
    await world.accounts('r');
    for (let number = 0; number < 3; number += 1) await post(world, 'r');
    const plain = (await world.feed.home({ reader: 'r', limit: 1 })).next ?? '';
    const ranked = (await world.feed.home({ reader: 'r', limit: 1, ranked: true })).next ?? '';
    const refused = { code: 'cursor-invalid', field: 'after' };
    await expect(world.feed.home({ reader: 'r', after: ranked })).rejects.toMatchObject(refused);
    await expect(world.feed.home({ reader: 'r', ranked: true, after: plain })).rejects.toMatchObject(refused);
    for (let at = 0; at < plain.length; at += 1) {
      const changed = plain.slice(0, at) + (plain[at] === 'A' ? 'B' : 'A') + plain.slice(at + 1);
      await expect(world.feed.home({ reader: 'r', after: changed })).rejects.toMatchObject(refused);
    }
    await expect(world.feed.home({ reader: 'r', before: '' })).rejects.toMatchObject({ field: 'before' });
  });
});
