/** Cases F38-F46 as far as they are about what is touched and not how fast: every step is bounded. */
import { describe, expect, test } from 'vitest';
import { feedQueues } from '../../../src/feed/index.js';
import { type FeedWorld, idsOf, walkOlder } from '../../../src/testing/feed-world.js';
import { databases, useWorlds } from './worlds.js';

const dayMs = 86_400_000;
const numbered = (prefix: string, count: number) =>
  Array.from({ length: count }, (_, number) => `${prefix}${number}`);

async function census({ database, schema, timelines }: FeedWorld): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  const tables = [
    'accounts',
    'follows',
    'follow_requests',
    'blocks',
    'mutes',
    'posts',
    'fan_outs',
    'fan_out_batches',
    'follower_deltas',
    'rankings',
  ];
  for (const table of tables) {
    const { rows } = await database.query<{ count: string }>(
      `select count(*) as count from "${schema}".${table}`,
    );
    counts[table] = Number(rows[0]?.count);
  }
  return { ...counts, timeline: await timelines.size() };
}

const makeLive = ({ timelines, clock }: FeedWorld, like: string) => timelines.makeLive(like, clock.now());

describe.each(databases)('load on $name', (on) => {
  const open = useWorlds(on);

  test('F38 a big author makes a message for each batch and not for each follower, and small ones pass by', async () => {
    const world = await open({ batchSize: 100, threshold: { pullFrom: 100_000, pushBelow: 90_000 } });
    await world.accounts('small', 'fan');
    await world.feed.follow({ follower: 'fan', followee: 'small' });
    await world.open('fan');
    await world.feed.importFollows(numbered('f', 2_000).map((fan) => [fan, 'big'] as const));
    await makeLive(world, 'f%');
    const big = await world.feed.publish({ author: 'big', text: 'x' });
    for (const splitter of await world.take(feedQueues.big)) await world.work(splitter);
    const { post } = await world.feed.publish({ author: 'small', text: 'x' });
    await world.drain(feedQueues.small);
    expect(idsOf([await world.feed.home({ reader: 'fan' })])).toEqual([post.id]);
    const batches = await world.take(feedQueues.big);
    // The splitter has written the first.
    expect(batches.length).toBe(19);
    expect(await world.feed.fanOutProgress(big.post.id)).toMatchObject({
      batches: 20,
      batchesDone: 1,
      done: false,
    });
    for (const batch of batches.toReversed()) {
      await world.work(batch);
      await world.work(batch);
    }
    expect(await world.feed.fanOutProgress(big.post.id)).toMatchObject({ done: true });
    const readers = (await world.timelines.entries())
      .filter((entry) => entry.post === big.post.id)
      .map(({ reader }) => reader);
    expect([readers.length, new Set(readers).size]).toEqual([2_000, 2_000]);
  });

  test('a second run of the splitter finds the ranges of the first, also for followers that came since', async () => {
    const world = await open({ batchSize: 10, threshold: { pullFrom: 1_000, pushBelow: 900 } });
    await world.feed.importFollows(numbered('f', 30).map((fan) => [fan, 'big'] as const));
    await makeLive(world, 'f%');
    const { post } = await world.feed.publish({ author: 'big', text: 'x' });
    const [splitter] = await world.take(feedQueues.big);
    if (splitter) await world.work(splitter);
    await world.feed.importFollows(numbered('late', 15).map((fan) => [fan, 'big'] as const));
    if (splitter) await world.work(splitter);
    expect(await world.feed.fanOutProgress(post.id)).toMatchObject({ batches: 3, batchesDone: 1 });
    expect((await world.take(feedQueues.big)).length).toBe(2);
  });

  test('a batch of a post that has been deleted writes nothing', async () => {
    const world = await open();
    await world.accounts('r', 'a');
    await world.feed.follow({ follower: 'r', followee: 'a' });
    await world.open('r');
    const { post } = await world.feed.publish({ author: 'a', text: 'x' });
    await world.feed.deletePost({ id: post.id });
    await world.drain();
    expect((await census(world))['timeline']).toBe(1);
    expect((await census(world))['fan_outs']).toBe(0);
  });

  test('F43 many follows at once make one rebuild, and the home is complete at once', async () => {
    const world = await open();
    const authors = numbered('a', 60);
    await world.accounts('r', ...authors);
    await world.open('r');
    const ids: string[] = [];
    for (const author of authors) {
      world.clock.advance(1);
      ids.unshift((await world.feed.publish({ author, text: 'x' })).post.id);
    }
    await world.drain();
    const outcomes = await world.feed.followMany([
      ...authors.map((followee) => ({ follower: 'r', followee })),
      { follower: 'r', followee: 'r' },
      { follower: 'r', followee: 'nobody' },
    ]);
    expect(outcomes.slice(-2)).toMatchObject([
      { kind: 'refused', code: 'follow-self' },
      { kind: 'refused', code: 'account-unknown' },
    ]);
    expect(idsOf(await walkOlder(world.feed, 'r', 20))).toEqual(ids);
    expect((await world.take(feedQueues.repair)).length).toBe(1);
  });

  test('F44 a reader of very many is pulled and complete, and gets a timeline again well below the bound', async () => {
    const world = await open({ followeesMax: 350 });
    const authors = numbered('a', 400);
    await world.feed.importFollows(authors.map((author) => ['r', author] as const));
    const ids: string[] = [];
    for (let round = 0; round < 2; round += 1) {
      for (const author of authors.slice(0, 60)) {
        world.clock.advance(1);
        ids.unshift((await world.feed.publish({ author, text: 'x' })).post.id);
      }
    }
    await world.drain();
    await world.open('r');
    const pages = await walkOlder(world.feed, 'r', 20);
    expect(idsOf(pages)).toEqual(ids);
    expect(pages[0]?.sources).toMatchObject({ timeline: 'none', rounds: 1 });
    expect((await world.feed.rebuild('r')).kind).toBe('pulled');
    await expect.poll(async () => (await census(world))['timeline']).toBe(0);
    for (const followee of authors.slice(279)) await world.feed.unfollow({ follower: 'r', followee });
    await world.open('r');
    expect(await world.feed.home({ reader: 'r' })).toMatchObject({ sources: { timeline: 'live' } });
    expect(idsOf(await walkOlder(world.feed, 'r', 20))).toEqual(ids);
  });

  test('a follow beyond the bound of followees takes the timeline away without a gap', async () => {
    const world = await open({ followeesMax: 3 });
    const authors = numbered('a', 4);
    await world.accounts('r', ...authors);
    const ids: string[] = [];
    for (const author of authors) {
      world.clock.advance(1);
      ids.unshift((await world.feed.publish({ author, text: 'x' })).post.id);
    }
    await world.drain();
    await world.open('r');
    for (const followee of authors) await world.feed.follow({ follower: 'r', followee });
    expect(idsOf([await world.feed.home({ reader: 'r' })])).toEqual(ids);
    expect((await world.feed.home({ reader: 'r' })).sources.timeline).toBe('none');
    await world.drain();
    await expect.poll(async () => (await census(world))['timeline']).toBe(0);
  });

  test('F45 inactive readers have no entries: none by themselves, and none after a vacuum where there were some', async () => {
    const world = await open();
    const inactive = numbered('inactive', 60);
    const authors = numbered('a', 3);
    await world.feed.importFollows(
      inactive.flatMap((reader) => authors.slice(0, 2).map((author) => [reader, author] as const)),
    );
    await makeLive(world, 'inactive1%');
    await world.accounts('a2');
    const post = async (author: string) => world.feed.publish({ author, text: 'x' });
    for (const author of authors) await post(author);
    await world.drain();
    expect((await census(world))['timeline']).toBeGreaterThan(0);
    world.clock.advance(31 * dayMs);
    const [first] = await world.feed.accountPosts({ account: 'a0' }).then(({ posts }) => posts);
    for (const author of authors) await post(author);
    await world.feed.publish({ author: 'a1', repostOf: first?.id });
    for (const reader of inactive.slice(0, 20)) await world.feed.follow({ follower: reader, followee: 'a2' });
    await world.drain();
    await world.feed.vacuum();
    await expect.poll(async () => (await census(world))['timeline']).toBe(0);
    for (const author of authors) await post(author);
    await world.drain();
    await expect.poll(async () => (await census(world))['timeline']).toBe(0);
  });

  test('F46 after everything is undone, drained and vacuumed the rows are those of before', async () => {
    const world = await open({ deletedKeptMs: 0 });
    const people = numbered('p', 6);
    await world.accounts(...people);
    for (const reader of people) await world.open(reader);
    const before = await census(world);
    const posts: string[] = [];
    for (const follower of people) {
      for (const followee of people)
        if (follower !== followee) await world.feed.follow({ follower, followee });
    }
    for (let round = 0; round < 30; round += 1) {
      world.clock.advance(1);
      const author = people[round % 6] ?? '';
      const repostOf = round % 5 === 4 ? posts.findLast((_, index) => index % 5 === 0) : undefined;
      const body = repostOf ? { repostOf } : { text: 'x', key: `${round}` };
      posts.push((await world.feed.publish({ author, ...body })).post.id);
      if (round % 4 === 0) await world.drain();
    }
    await world.feed.block({ blocker: 'p0', blocked: 'p1' });
    await world.feed.mute({ muter: 'p2', muted: 'p3' });
    await world.drain();
    for (const id of posts) await world.feed.deletePost({ id });
    await world.feed.unblock({ blocker: 'p0', blocked: 'p1' });
    await world.feed.unmute({ muter: 'p2', muted: 'p3' });
    for (const follower of people) {
      for (const followee of people)
        if (follower !== followee) await world.feed.unfollow({ follower, followee });
    }
    await world.drain();
    world.clock.advance(1);
    await world.worker.keepHouse();
    await world.feed.vacuum();
    expect(await census(world)).toEqual(before);
  });

  test('a timeline is trimmed to its bound when it is over by the slack, and the walk goes on below', async () => {
    const world = await open({ timeline: { entriesMax: 10, slack: 4 } });
    await world.accounts('r', 'a');
    await world.feed.follow({ follower: 'r', followee: 'a' });
    await world.open('r');
    const ids: string[] = [];
    const add = async (count: number) => {
      for (let number = 0; number < count; number += 1) {
        world.clock.advance(1);
        ids.unshift((await world.feed.publish({ author: 'a', text: 'x' })).post.id);
      }
      await world.drain();
      await world.worker.keepHouse();
    };
    const marker = 1;
    await add(14);
    expect((await census(world))['timeline']).toBe(14 + marker);
    await add(1);
    expect((await census(world))['timeline']).toBe(10 + marker);
    expect((await world.feed.home({ reader: 'r' })).sources.floor).toBe(ids[10]);
    expect(idsOf(await walkOlder(world.feed, 'r', 4))).toEqual(ids);
  });

  test('modes switch with a gap between, and a switch to and fro loses and doubles nothing', async () => {
    const world = await open();
    await world.accounts('r', 'a', ...numbered('f', 25));
    await world.feed.follow({ follower: 'r', followee: 'a' });
    await world.open('r');
    const ids: string[] = [];
    const modes: string[] = [];
    const post = async () => {
      world.clock.advance(1);
      const { post } = await world.feed.publish({ author: 'a', text: 'x' });
      ids.unshift(post.id);
      modes.push(post.mode);
      await world.drain();
    };
    const change = async (what: 'follow' | 'unfollow', from: number, to: number) => {
      for (let fan = from; fan < to; fan += 1) await world.feed[what]({ follower: `f${fan}`, followee: 'a' });
      await world.worker.keepHouse();
      await post();
      expect(idsOf(await walkOlder(world.feed, 'r', 3))).toEqual(ids);
    };
    await change('follow', 0, 18); // 19 followers
    await change('follow', 18, 19); // 20: pull
    await change('unfollow', 15, 19); // 16: still
    await change('unfollow', 14, 15); // 15: push
    await change('follow', 14, 18); // 19: still
    await change('follow', 18, 22); // 23: pull
    await change('unfollow', 10, 22); // 11: push
    expect(modes).toEqual(['push', 'pull', 'pull', 'push', 'push', 'pull', 'push']);
    await world.feed.rebuild('r');
    expect(idsOf(await walkOlder(world.feed, 'r', 3))).toEqual(ids);
  });

  test('where many authors are pulled, those that a reader follows are merged and no others', async () => {
    const world = await open();
    const authors = numbered('a', 70);
    await world.accounts('r', ...authors);
    await world.database.query(
      `insert into "${world.schema}".authors (account, mode, pushed_since)
       select number, 'pull', 9223372036854775807 from "${world.schema}".accounts where id like 'a%'`,
    );
    for (const followee of authors.slice(0, 5)) await world.feed.follow({ follower: 'r', followee });
    await world.open('r');
    const ids: string[] = [];
    for (const author of authors.slice(0, 8)) {
      world.clock.advance(1);
      const { post } = await world.feed.publish({ author, text: 'x' });
      expect(post.mode).toBe('pull');
      if (ids.length < 5) ids.unshift(post.id);
    }
    const home = await world.feed.home({ reader: 'r' });
    expect([idsOf([home]), home.sources.pulledAuthors]).toEqual([ids, 5]);
  });

  test('the followed are told: a live stream hints at new posts, and not at a post that is hidden', async () => {
    const world = await open();
    await world.accounts('r', 'a', 'b');
    await world.feed.follow({ follower: 'r', followee: 'a' });
    await world.feed.follow({ follower: 'r', followee: 'b' });
    await world.feed.mute({ muter: 'r', muted: 'b' });
    await world.open('r');
    const ended = new AbortController();
    const hints: (string | undefined)[] = [];
    const stream = (async () => {
      for await (const hint of world.feed.live({ reader: 'r', signal: ended.signal }))
        hints.push(hint.newest);
    })();
    try {
      world.clock.advance(1);
      await world.feed.publish({ author: 'b', text: 'muted' });
      await world.drain();
      world.clock.advance(1);
      const { post } = await world.feed.publish({ author: 'a', text: 'x' });
      await world.drain();
      await expect.poll(() => hints, { timeout: 30_000 }).toEqual([post.id]);
    } finally {
      ended.abort();
      await stream;
    }
  });
});
