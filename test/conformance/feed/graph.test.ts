/** Cases F50-F54 and what else the graph promises: ids are opaque, a relation exists once or not at all. */
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { feedQueues, parseEdgeList } from '../../../src/feed/index.js';
import { type FeedWorld, idsOf, walkOlder } from '../../../src/testing/feed-world.js';
import { databases, useWorlds } from './worlds.js';

async function* chunked(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

const followers = async ({ feed }: FeedWorld, id: string) => (await feed.getAccount(id))?.followers;

describe.each(databases)('graph on $name', (on) => {
  const open = useWorlds(on);

  test('F50 following oneself is refused with a code, and own posts are shown once', async () => {
    const { feed, accounts } = await open();
    await accounts('r');
    await expect(feed.follow({ follower: 'r', followee: 'r' })).rejects.toMatchObject({
      code: 'follow-self',
    });
    await feed.publish({ author: 'r', text: 'x' });
    expect((await feed.home({ reader: 'r' })).items.length).toBe(1);
  });

  test('F51 the same follow by 20 clients at once is one edge, one count and one backfill', async () => {
    const world = await open();
    const { feed, accounts } = world;
    await accounts('r', 'a');
    await world.open('r');
    const pair = { follower: 'r', followee: 'a' };
    const outcomes = await Promise.all(Array.from({ length: 20 }, () => feed.follow(pair)));
    expect(outcomes.filter((outcome) => outcome.kind === 'following' && outcome.created).length).toBe(1);
    expect([await followers(world, 'a'), (await feed.followers({ account: 'a' })).accounts.length]).toEqual([
      1, 1,
    ]);
    expect((await world.take(feedQueues.repair)).length).toBe(1);
    const ends = await Promise.all(Array.from({ length: 20 }, () => feed.unfollow(pair)));
    expect(ends.filter(({ existed }) => existed).length).toBe(1);
    expect([await followers(world, 'a'), await feed.isFollowing(pair)]).toEqual([0, false]);
    await world.worker.keepHouse();
    expect(await followers(world, 'a')).toBe(0);
  });

  test('F52 ids are opaque strings of up to 128 characters', async () => {
    const world = await open();
    const long = 'é'.repeat(126) + '😀😀';
    const ids = [
      '5',
      '05',
      '5L',
      '9007199254740993',
      '9007199254740992',
      long,
      'a b/c%20?#',
      '\n\t',
      "'; drop --",
    ];
    await world.accounts(...ids, 'r');
    for (const id of ids) await world.feed.follow({ follower: 'r', followee: id });
    for (const id of ids) {
      world.clock.advance(1);
      await world.feed.publish({ author: id, text: id });
    }
    const home = await world.feed.home({ reader: 'r' });
    expect(home.items.map(({ author, text }) => [author, text])).toEqual(
      ids.toReversed().map((id) => [id, id]),
    );
    await world.feed.block({ blocker: 'r', blocked: '5' });
    expect((await world.feed.home({ reader: 'r' })).items.map((item) => item.author)).not.toContain('5');
    expect((await world.feed.followees({ account: 'r' })).accounts.map(({ id }) => id)).toEqual(ids.slice(1));
    const json = JSON.parse(JSON.stringify(home.items[0])) as { id: string };
    expect(json.id).toBe(home.items[0]?.id);
  });

  test.each([
    ['129 characters', 'x'.repeat(129)],
    ['nothing', ''],
    ['NUL', 'a\0b'],
    ['a lone surrogate', 'a\uD800'],
    ['a number', 5],
  ])('F52 an id of %s is refused by name', async (_, id) => {
    const { feed } = await open();
    await expect(feed.putAccount({ id: id as string })).rejects.toMatchObject({
      code: 'invalid-input',
      field: 'id',
    });
    await expect(feed.home({ reader: id as string })).rejects.toMatchObject({ field: 'reader' });
  });

  test('F53 before its fan-out a post is in its author’s home and page and in nobody else’s', async () => {
    const world = await open();
    await world.accounts('r', 's');
    await world.feed.follow({ follower: 's', followee: 'r' });
    await world.open('r');
    await world.open('s');
    const { post } = await world.feed.publish({ author: 'r', text: 'x' });
    const page = async (viewer?: string) =>
      (await world.feed.accountPosts({ account: 'r', viewer })).posts.length;
    expect(idsOf([await world.feed.home({ reader: 'r' })])).toEqual([post.id]);
    expect(idsOf([await world.feed.home({ reader: 's' })])).toEqual([]);
    expect([await page('r'), await page('s'), await page()]).toEqual([1, 0, 0]);
    await world.drain();
    expect(idsOf([await world.feed.home({ reader: 's' })])).toEqual([post.id]);
    expect([await page('r'), await page('s'), await page()]).toEqual([1, 1, 1]);
  });

  test('F53 a post whose fan-out is overdue is shown without it', async () => {
    const world = await open();
    await world.accounts('r', 's');
    await world.feed.follow({ follower: 's', followee: 'r' });
    await world.open('s');
    const { post } = await world.feed.publish({ author: 'r', text: 'x' });
    world.clock.advance(5_001);
    const home = await world.feed.home({ reader: 's' });
    expect(home.items.map((item) => [item.id, item.why.source])).toEqual([[post.id, 'overdue']]);
    expect((await world.feed.accountPosts({ account: 'r', viewer: 's' })).posts.length).toBe(1);
    expect(await world.feed.fanOutProgress(post.id)).toMatchObject({
      done: false,
      lane: 'small',
      ageSeconds: 5.001,
    });
  });

  test('F54 under a backlog the own post is first at once, and once on the walk', async () => {
    const world = await open();
    await world.accounts('r', 'a');
    await world.feed.follow({ follower: 'r', followee: 'a' });
    await world.open('r');
    for (let number = 0; number < 100; number += 1)
      await world.feed.publish({ author: 'a', text: 'backlog' });
    const own: string[] = [];
    for (let round = 0; round < 30; round += 1) {
      world.clock.advance(1);
      own.unshift((await world.feed.publish({ author: 'r', text: `${round}` })).post.id);
      expect((await world.feed.home({ reader: 'r', limit: 1 })).items[0]?.id).toBe(own[0]);
    }
    const shown = idsOf(await walkOlder(world.feed, 'r', 20));
    expect(shown.filter((id) => own.includes(id))).toEqual(own);
  });

  test('an account that approves its followers is followed after its approval only', async () => {
    const world = await open();
    const { feed } = world;
    await world.accounts('r', 's');
    await feed.putAccount({ id: 'a', approvesFollowers: true });
    const pair = { follower: 'r', followee: 'a' };
    expect(await feed.follow(pair)).toEqual({ kind: 'requested', created: true });
    expect(await feed.follow(pair)).toEqual({ kind: 'requested', created: false });
    await feed.follow({ follower: 's', followee: 'a' });
    const { post } = await feed.publish({ author: 'a', text: 'x' });
    await world.drain();
    expect((await feed.home({ reader: 'r' })).items).toEqual([]);
    expect((await feed.followRequests({ account: 'a' })).accounts.map(({ id }) => id)).toEqual(['r', 's']);
    expect(await feed.approveFollow(pair)).toEqual({ kind: 'following' });
    expect(await feed.approveFollow(pair)).toEqual({ kind: 'following' });
    expect(await feed.rejectFollow({ follower: 's', followee: 'a' })).toEqual({ kind: 'rejected' });
    expect(idsOf([await feed.home({ reader: 'r' })])).toEqual([post.id]);
    expect(await feed.followState({ follower: 's', followee: 'a' })).toEqual({ kind: 'none' });
    expect(await followers(world, 'a')).toBe(1);
  });

  test('lists are paged by cursors that outlive what comes and goes', async () => {
    const { feed, accounts } = await open();
    const fans = Array.from({ length: 25 }, (_, number) => `f${number}`);
    await accounts('a', ...fans);
    await feed.importFollows(fans.map((fan) => [fan, 'a'] as const));
    const first = await feed.followers({ account: 'a', limit: 10 });
    await feed.unfollow({ follower: 'f3', followee: 'a' });
    const second = await feed.followers({ account: 'a', limit: 10, after: first.next });
    const third = await feed.followers({ account: 'a', limit: 10, after: second.next });
    const listed = [first, second, third].flatMap((page) => page.accounts.map(({ id }) => id));
    expect(listed).toEqual(fans);
    expect(third.next).toBeUndefined();
    await expect(feed.followers({ account: 'a', after: 'x' })).rejects.toMatchObject({
      code: 'cursor-invalid',
    });
    const madeUp = Buffer.from('[1,"\\u0000"]').toString('base64url');
    await expect(feed.mostFollowed({ after: madeUp })).rejects.toMatchObject({ field: 'after' });
  });

  test('an unknown account is named', async () => {
    const { feed, accounts } = await open();
    await accounts('r');
    const unknown = { code: 'account-unknown', status: 404 };
    await expect(feed.follow({ follower: 'r', followee: 'nobody' })).rejects.toMatchObject({
      ...unknown,
      field: 'followee',
    });
    await expect(feed.publish({ author: 'nobody', text: 'x' })).rejects.toMatchObject({
      ...unknown,
      field: 'author',
    });
    await expect(feed.home({ reader: 'nobody' })).rejects.toMatchObject({ ...unknown, field: 'reader' });
  });

  test('an erased account is gone from the next read on, and later all of its rows', async () => {
    const world = await open({ stepRowsMax: 3 });
    const { feed } = world;
    await world.accounts('r', 'a', 'b', 'c');
    for (const [follower, followee] of [
      ['r', 'a'],
      ['a', 'r'],
      ['a', 'b'],
      ['b', 'a'],
      ['r', 'b'],
    ] as const) {
      await feed.follow({ follower, followee });
    }
    await feed.mute({ muter: 'c', muted: 'a' });
    await feed.block({ blocker: 'a', blocked: 'c' });
    for (const reader of ['r', 'a', 'b']) await world.open(reader);
    for (let number = 0; number < 10; number += 1) await feed.publish({ author: 'a', text: 'x' });
    const stays = await feed.publish({ author: 'b', text: 'y' });
    await world.drain();
    expect(await feed.eraseAccount('a')).toEqual({ kind: 'erased' });
    expect(idsOf([await feed.home({ reader: 'r' })])).toEqual([stays.post.id]);
    await expect(feed.home({ reader: 'a' })).rejects.toMatchObject({ code: 'account-unknown' });
    await expect(feed.putAccount({ id: 'a' })).rejects.toMatchObject({ code: 'account-erased' });
    await world.drain();
    await feed.vacuum();
    expect(await world.timelines.size()).toBe(4);
    for (const table of ['follows', 'posts', 'blocks', 'mutes', 'readers', 'accounts']) {
      const { rows } = await world.database.query<{ row: string }>(
        `select to_json(t)::text as row from "${world.schema}".${table} t`,
      );
      expect(rows.length, table).toBe(
        { follows: 1, posts: 1, blocks: 0, mutes: 0, readers: 3, accounts: 3 }[table],
      );
    }
    expect(await followers(world, 'b')).toBe(1);
    expect((await feed.putAccount({ id: 'a' })).created).toBe(true);
    expect((await feed.home({ reader: 'a' })).items).toEqual([]);
  });

  test('what was on its way, asked for or kept of an erased account goes with it', async () => {
    const world = await open({ batchSize: 1 });
    const { feed } = world;
    await world.accounts('r', 's', 'k', 'q');
    await feed.putAccount({ id: 'a', approvesFollowers: true });
    await feed.importFollows(['r', 's', 'k'].map((reader) => [reader, 'a'] as const));
    for (const reader of ['r', 's', 'k']) await world.open(reader);
    await feed.follow({ follower: 'q', followee: 'a' });
    await feed.unfollow({ follower: 'k', followee: 'a', keepHistory: true });
    await world.drain();
    await feed.publish({ author: 'a', text: 'x' });
    for (const split of await world.take()) await world.work(split);
    const batches = await world.take('feed-big');
    expect(batches.length).toBeGreaterThan(0);
    await feed.eraseAccount('a');
    await world.drain();
    for (const batch of batches) await world.work(batch);
    await world.worker.keepHouse();
    for (const table of ['follows', 'follow_requests', 'posts', 'fan_outs', 'fan_out_batches', 'authors']) {
      const { rows } = await world.database.query(`select 1 from "${world.schema}".${table}`);
      expect(rows.length, table).toBe(0);
    }
  });

  test('a follow answers a request of before, by whatever way it comes', async () => {
    const { feed, accounts } = await open();
    await accounts('r', 's');
    await feed.putAccount({ id: 'a', approvesFollowers: true });
    for (const follower of ['r', 's']) await feed.follow({ follower, followee: 'a' });
    await feed.putAccount({ id: 'a', approvesFollowers: false });
    expect(await feed.follow({ follower: 'r', followee: 'a' })).toEqual({ kind: 'following', created: true });
    await feed.importFollows([['s', 'a']]);
    expect((await feed.followRequests({ account: 'a' })).accounts).toEqual([]);
    expect(await feed.rejectFollow({ follower: 'r', followee: 'a' })).toEqual({ kind: 'unknown' });
    expect(await feed.isFollowing({ follower: 'r', followee: 'a' })).toBe(true);
  });

  test('an import makes accounts, skips and counts self-follows, and creates nothing again', async () => {
    const world = await open();
    const text = '# a comment\r\n1\t2\r\n1 1\r\n2\t1\r\n\r\n1\t2\r\n3\t😀\r\n';
    for (const bytes of [Buffer.from(text), gzipSync(text)]) {
      for (const size of [1, 7, 1_000]) {
        const progress = await world.feed.importFollows(parseEdgeList(chunked(bytes, size)));
        const first = bytes.length === Buffer.from(text).length && size === 1;
        expect(progress).toEqual({
          read: 5,
          created: first ? 3 : 0,
          known: first ? 1 : 4,
          selfFollows: 1,
          blocked: 0,
          accountsCreated: first ? 4 : 0,
        });
      }
    }
    expect((await world.feed.followees({ account: '3' })).accounts.map(({ id }) => id)).toEqual(['😀']);
    expect(await followers(world, '2')).toBe(1);
  });

  test('posts are imported with their times and accounts, refused ones counted, and none twice', async () => {
    const world = await open();
    const at = world.clock.now();
    const posts = Array.from({ length: 120 }, (_, number) => ({
      author: `author ${number % 3}`,
      key: `k${number}`,
      text: `${number}`,
      createdAt: at - 1_000 + number,
    }));
    const stranger = { author: 'r', repostOf: '1000000000000000000' };
    const first = await world.feed.importPosts([...posts, stranger]);
    expect(first).toEqual({ read: 121, created: 120, known: 0, refused: 1 });
    expect(await world.feed.importPosts(posts)).toEqual({ read: 120, created: 0, known: 120, refused: 0 });
    await world.feed.importFollows([['r', 'author 1']]);
    const home = await world.feed.home({ reader: 'r', limit: 100 });
    expect(home.items.map(({ text }) => Number(text))).toEqual(
      Array.from({ length: 40 }, (_, index) => 118 - 3 * index),
    );
    await expect(world.feed.importPosts([{ author: 'r', text: 'no key' }])).rejects.toMatchObject({
      field: 'key of post 1',
    });
  });

  test('an import refuses a line that is no pair, by its number', async () => {
    const { feed } = await open();
    const lines = parseEdgeList(chunked(Buffer.from('1\t2\n3\n'), 100));
    await expect(feed.importFollows(lines)).rejects.toMatchObject({ code: 'invalid-input', field: 'line 2' });
  });

  test('an import that adds a followee to a reader with a timeline shows that followee at once', async () => {
    const world = await open();
    await world.accounts('r', 'a', 'b');
    await world.open('r');
    const { post } = await world.feed.publish({ author: 'a', text: 'x' });
    await world.drain();
    await world.feed.block({ blocker: 'b', blocked: 'r' });
    const progress = await world.feed.importFollows([
      ['r', 'a'],
      ['r', 'b'],
    ]);
    expect(progress).toMatchObject({ created: 1, blocked: 1, known: 0 });
    expect(idsOf([await world.feed.home({ reader: 'r' })])).toEqual([post.id]);
    await world.drain();
    expect(await world.feed.home({ reader: 'r' })).toMatchObject({ sources: { timeline: 'live' } });
    expect(idsOf([await world.feed.home({ reader: 'r' })])).toEqual([post.id]);
  });
});
