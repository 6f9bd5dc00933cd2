/** Cases F10-F21: a cursor is a position, valid for ever; a post stands where its id says. */
import { describe, expect, test } from 'vitest';
import { feedQueues } from '../../../src/feed/index.js';
import { FeedClock, type FeedWorld, idsOf, walkNewer, walkOlder } from '../../../src/testing/feed-world.js';
import { databases, useWorlds } from './worlds.js';

/** Posts by insert, because thousands through publish would take the test's time. Newest first. */
async function manyPosts(
  { database, schema, clock }: FeedWorld,
  author: string,
  count: number,
): Promise<string[]> {
  const { rows } = await database.query<{ id: string }>(
    `insert into "${schema}".posts (id, author, body, visibility, mode, created_at)
     select (($2::bigint + n) << 20) + 7, a.number, 'many', 'public', 'push', $2::bigint + n
     from generate_series(1, $3::integer) n join "${schema}".accounts a on a.id = $1
     returning id`,
    [author, clock.now(), count],
  );
  clock.advance(count + 1);
  return rows
    .map(({ id }) => id)
    .toSorted()
    .toReversed();
}

async function readerOf(world: FeedWorld, ...authors: readonly string[]): Promise<void> {
  await world.accounts('r', ...authors);
  for (const author of authors) await world.feed.follow({ follower: 'r', followee: author });
}

describe.each(databases)('paging on $name', (on) => {
  const open = useWorlds(on);

  test('F10 from a cursor older than the timeline, newer gives what is directly adjacent, across the seam', async () => {
    const world = await open();
    await readerOf(world, 'a');
    const ids = await manyPosts(world, 'a', 1_000);
    await world.open('r');
    const pages = await walkOlder(world.feed, 'r', 73);
    expect(pages[0]?.sources).toMatchObject({ timeline: 'live', floor: ids[800] });
    // 13 pages of 73 are 949 posts: the next one begins with no. 950.
    const from = pages[13]?.previous ?? '';
    expect(pages[13]?.items[0]?.id).toBe(ids[949]);
    const newer = await walkNewer(world.feed, 'r', 20, from);
    expect(newer[0]?.items.map((item) => item.id)).toEqual(ids.slice(929, 949));
    expect(idsOf(newer.toReversed())).toEqual(ids.slice(0, 949));
  });

  test('F11 75 posts are pages of 20, 20, 20 and 15, and the way back gives the same in the same order', async () => {
    const world = await open();
    await readerOf(world, 'a');
    const ids = await manyPosts(world, 'a', 75);
    await world.open('r');
    const pages = await walkOlder(world.feed, 'r', 20);
    expect(pages.map((page) => page.items.length)).toEqual([20, 20, 20, 15]);
    const back = await walkNewer(world.feed, 'r', 20, pages.at(-1)?.previous ?? '');
    expect(back.map((page) => page.items.map((item) => item.id))).toEqual([
      ids.slice(40, 60),
      ids.slice(20, 40),
      ids.slice(0, 20),
    ]);
  });

  test('F12 with four in ten hidden every page but the last is full', async () => {
    const world = await open();
    await readerOf(world, 'a', 'b', 'c', 'd');
    const ids: string[] = [];
    const hidden = new Set<string>();
    for (let round = 0; round < 10; round += 1) {
      for (const author of ['a', 'b', 'c', 'd']) {
        const made = await manyPosts(world, author, 5);
        ids.unshift(...made);
        if (author === 'a' || author === 'b') for (const id of made.slice(0, 2)) hidden.add(id);
        if (author === 'c') for (const id of made) hidden.add(id);
      }
    }
    await world.open('r');
    for (const id of hidden) await world.feed.deletePost({ id });
    await world.feed.mute({ muter: 'r', muted: 'c' });
    const shown = ids.filter((id) => !hidden.has(id));
    for (const limit of [1, 7, 20, 100]) {
      const pages = await walkOlder(world.feed, 'r', limit);
      expect(idsOf(pages)).toEqual(shown);
      for (const page of pages.slice(0, -1)) expect(page.items.length).toBe(limit);
    }
  });

  test('F13 a page with hidden ones among the newest is full, and `next` is absent exactly at the end', async () => {
    const world = await open();
    await readerOf(world, 'a');
    const ids = await manyPosts(world, 'a', 50);
    await world.open('r');
    for (const id of [ids[3], ids[21]]) await world.feed.deletePost({ id: id ?? '' });
    const pages = await walkOlder(world.feed, 'r', 30);
    expect(pages.map((page) => page.items.length)).toEqual([30, 18]);
    for (const id of ids.slice(32)) await world.feed.deletePost({ id });
    const exact = await world.feed.home({ reader: 'r', limit: 30 });
    expect([exact.items.length, exact.next]).toEqual([30, undefined]);
  });

  test('F14 a cursor goes on at the same post after days, new posts, a restart and a rebuild', async () => {
    const world = await open();
    await readerOf(world, 'a');
    const ids = await manyPosts(world, 'a', 60);
    await world.open('r');
    const [, second] = await walkOlder(world.feed, 'r', 20);
    world.clock.advance(2 * 86_400_000);
    await manyPosts(world, 'a', 100);
    await world.feed.stop();
    await world.feed.start();
    await world.feed.rebuild('r');
    const third = await world.feed.home({ reader: 'r', limit: 20, after: second?.next });
    expect(third.items.map((item) => item.id)).toEqual(ids.slice(40));
  });

  test('F15 2,000 posts of 10 followees are walked once each across the seam', async () => {
    const world = await open();
    const authors = Array.from({ length: 10 }, (_, number) => `a${number}`);
    await readerOf(world, ...authors);
    const ids: string[] = [];
    for (let round = 0; round < 20; round += 1) {
      for (const author of authors) ids.unshift(...(await manyPosts(world, author, 10)));
    }
    await world.open('r');
    for (const limit of [20, 100]) expect(idsOf(await walkOlder(world.feed, 'r', limit))).toEqual(ids);
  });

  test('F16 posts that arrive between pages repeat nothing, and `previous` gives exactly them', async () => {
    const world = await open();
    await readerOf(world, 'a');
    await world.open('r');
    const arrive = async (count: number) => {
      const ids: string[] = [];
      for (let number = 0; number < count; number += 1) {
        world.clock.advance(1);
        ids.unshift((await world.feed.publish({ author: 'a', text: 'new' })).post.id);
      }
      await world.drain();
      return ids;
    };
    const old = await arrive(60);
    const first = await world.feed.home({ reader: 'r', limit: 20 });
    const ten = await arrive(10);
    const second = await world.feed.home({ reader: 'r', limit: 20, after: first.next });
    const more = await arrive(10);
    const third = await world.feed.home({ reader: 'r', limit: 20, after: second.next });
    expect(idsOf([first, second, third])).toEqual(old);
    const news = await world.feed.home({ reader: 'r', limit: 100, before: first.previous });
    expect(idsOf([news])).toEqual([...more, ...ten]);
  });

  test('F17 fan-outs that run in the wrong order leave the posts in the right one', async () => {
    const world = await open();
    await readerOf(world, 'a');
    await world.open('r');
    const first = await world.feed.publish({ author: 'a', text: '1' });
    world.clock.advance(1);
    const second = await world.feed.publish({ author: 'a', text: '2' });
    const [one, two] = await world.take(feedQueues.small);
    if (two) await world.work(two);
    world.clock.advance(3_600_000);
    if (one) await world.work(one);
    expect(idsOf(await walkOlder(world.feed, 'r', 20))).toEqual([second.post.id, first.post.id]);
  });

  test('F18 100 posts of one millisecond by pushed and pulled authors are walked in order of their ids', async () => {
    const world = await open();
    const authors = Array.from({ length: 10 }, (_, number) => `a${number}`);
    await readerOf(world, ...authors);
    const fans = authors
      .slice(5)
      .flatMap((author) => Array.from({ length: 20 }, (_, fan) => [`f${fan}`, author] as const));
    await world.feed.importFollows(fans);
    await world.open('r');
    const ids: string[] = [];
    for (let number = 0; number < 100; number += 1) {
      const { post } = await world.feed.publish({ author: authors[number % 10] ?? '', text: `${number}` });
      expect(post.mode).toBe(number % 10 < 5 ? 'push' : 'pull');
      ids.push(post.id);
    }
    await world.drain();
    const expected = ids.toSorted().toReversed();
    const pages = await walkOlder(world.feed, 'r', 7);
    expect(idsOf(pages)).toEqual(expected);
    const back = await walkNewer(world.feed, 'r', 7, pages.at(-1)?.previous ?? '');
    expect(idsOf(back.toReversed())).toEqual(expected.slice(0, 100 - (pages.at(-1)?.items.length ?? 0)));
  });

  test('F19 a post delivered three hours late stands at its own place', async () => {
    const world = await open({ lagMaxMs: 86_400_000 });
    await readerOf(world, 'a', 'b');
    await world.open('r');
    const late = await world.feed.publish({ author: 'a', text: 'late' });
    const [message] = await world.take(feedQueues.small);
    const newer: string[] = [];
    for (let number = 0; number < 60; number += 1) {
      world.clock.advance(1);
      newer.unshift((await world.feed.publish({ author: 'b', text: `${number}` })).post.id);
    }
    await world.drain();
    const [first] = await walkOlder(world.feed, 'r', 50);
    world.clock.advance(3 * 3_600_000);
    if (message) await world.work(message);
    const second = await world.feed.home({ reader: 'r', limit: 50, after: first?.next });
    expect(second.items.map((item) => item.id)).toEqual([...newer.slice(50), late.post.id]);
    const passed = await world.feed.home({ reader: 'r', before: first?.previous });
    expect(passed.items).toEqual([]);
  });

  test('F20 a post from the future, or of a server whose clock is ahead, gets the store’s time', async () => {
    const world = await open();
    await world.accounts('r');
    const now = world.clock.now();
    const future = await world.feed.publish({
      author: 'r',
      text: 'future',
      createdAt: now + 10 * 365 * 86_400_000,
    });
    expect(future.post.createdAt).toBe(now);
    expect(BigInt(future.post.id) >> 20n).toBe(BigInt(now));
    world.clock.advance(1_000);
    const next = await world.feed.publish({ author: 'r', text: 'next' });
    expect(idsOf([await world.feed.home({ reader: 'r' })])).toEqual([next.post.id, future.post.id]);
  });

  test('F20 an import of the past stands in the past, and one before ids began keeps its own time', async () => {
    const world = await open();
    await world.accounts('r');
    const present = await world.feed.publish({ author: 'r', text: 'now' });
    const past = await world.feed.publish({ author: 'r', text: '2010', createdAt: Date.UTC(2010, 0, 1) });
    const ancient = await world.feed.publish({ author: 'r', text: '1970', createdAt: 0 });
    expect([past.post.createdAt, ancient.post.createdAt]).toEqual([Date.UTC(2010, 0, 1), 0]);
    expect(ancient.post.id).toMatch(/^10\d{17}$/);
    const ids = [present, past, ancient].map(({ post }) => post.id);
    expect(idsOf([await world.feed.home({ reader: 'r' })])).toEqual(ids);
  });

  test('F21 posts of one millisecond all get ids of 19 digits that differ and sort alike', async () => {
    const world = await open({}, new FeedClock());
    await world.accounts('a', 'b');
    const ids = await Promise.all(
      Array.from({ length: 300 }, async (_, number) => {
        const { post } = await world.feed.publish({
          author: number % 2 ? 'a' : 'b',
          text: 'x',
          createdAt: 1_700_000_000_000,
        });
        return post.id;
      }),
    );
    expect(new Set(ids).size).toBe(300);
    for (const id of ids) expect(id).toMatch(/^\d{19}$/);
    expect(ids.toSorted()).toEqual(ids.toSorted((a, b) => (BigInt(a) < BigInt(b) ? -1 : 1)));
    // An id that is taken is answered with the next one.
    await world.database.query(`select setval('"${world.schema}".post_sequence', 0, false)`);
    const again = await world.feed.publish({ author: 'a', text: 'y', createdAt: 1_700_000_000_000 });
    expect(ids).not.toContain(again.post.id);
  });
});
