/** Cases F01-F09: "there is something in the list" is never "the list is complete". */
import { describe, expect, test } from 'vitest';
import type { Queryable } from '../../../src/database/index.js';
import { feedQueues } from '../../../src/feed/index.js';
import { type FeedWorld, idsOf, walkNewer, walkOlder } from '../../../src/testing/feed-world.js';
import { databases, useWorlds } from './worlds.js';

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

async function publish(
  { feed, clock }: FeedWorld,
  author: string,
  count: number,
  gapMs = 1,
): Promise<string[]> {
  const ids: string[] = [];
  for (let number = 0; number < count; number += 1) {
    clock.advance(gapMs);
    ids.unshift((await feed.publish({ author, text: `${author} ${number}` })).post.id);
  }
  return ids;
}

async function homeIds({ feed }: FeedWorld, reader: string, limit = 100): Promise<string[]> {
  return idsOf(await walkOlder(feed, reader, limit));
}

const newestFirst = (ids: readonly string[]) => ids.toSorted().toReversed();

/** `count` followers of `author`, so that it is pulled. */
async function popular(world: FeedWorld, author: string, count = 20): Promise<void> {
  await world.feed.importFollows(
    Array.from({ length: count }, (_, number) => [`fan ${number}`, author] as const),
  );
}

describe.each(databases)('holes on $name', (on) => {
  const open = useWorlds(on);

  test('F01 posts of canceled fan-outs are in the home at once and after a rebuild', async () => {
    const world = await open();
    await world.accounts('r', 'a');
    await world.feed.follow({ follower: 'r', followee: 'a' });
    await world.open('r');
    const first = await publish(world, 'a', 5);
    await world.drain();
    const lost = await publish(world, 'a', 5);
    await world.queue.cancel(
      feedQueues.small,
      lost.map((id) => `fan-out:${id}`),
    );
    const last = await publish(world, 'a', 5);
    await world.drain();
    await expect.poll(() => homeIds(world, 'r')).toEqual([...last, ...lost, ...first]);
    await world.feed.rebuild('r');
    expect(await homeIds(world, 'r')).toEqual([...last, ...lost, ...first]);
  });

  test('F01 a canceled fan-out that no event told of is found by the sweep', async () => {
    const world = await open();
    await world.accounts('r', 'a');
    await world.feed.follow({ follower: 'r', followee: 'a' });
    await world.open('r');
    await world.feed.stop();
    const lost = await publish(world, 'a', 1);
    await world.queue.cancel(feedQueues.small, [`fan-out:${lost[0]}`]);
    world.clock.advance(6_000);
    await world.worker.keepHouse();
    const { sources, items } = await world.feed.home({ reader: 'r' });
    expect([sources.pulledAuthors, items.map((item) => item.id)]).toEqual([1, lost]);
  });

  test('F02 a follow shows the author’s posts before and after its backfill, whoever posts in between', async () => {
    const world = await open();
    await world.accounts('r', 'a', 'b');
    await world.feed.follow({ follower: 'r', followee: 'b' });
    await world.open('r');
    const old = await publish(world, 'a', 10);
    await world.drain();
    await world.feed.follow({ follower: 'r', followee: 'a' });
    const recent = await publish(world, 'b', 1);
    await world.drain(feedQueues.small);
    expect(await homeIds(world, 'r')).toEqual([...recent, ...old]);
    expect(await world.drain(feedQueues.repair)).toBe(1);
    expect(await homeIds(world, 'r')).toEqual([...recent, ...old]);
    expect((await world.feed.verify('r')).missing).toEqual([]);
  });

  test('F02 a history kept before its backfill has run is whole', async () => {
    const world = await open({ backfillAtOnce: 3 });
    await world.accounts('r', 'a');
    await world.open('r');
    const old = await publish(world, 'a', 10);
    await world.drain();
    await world.feed.follow({ follower: 'r', followee: 'a' });
    await world.feed.unfollow({ follower: 'r', followee: 'a', keepHistory: true });
    world.clock.advance(10);
    await publish(world, 'a', 2);
    expect(await homeIds(world, 'r')).toEqual(old);
    await world.drain();
    expect(await homeIds(world, 'r')).toEqual(old);
  });

  test('a history kept while a fan-out is still to come is whole', async () => {
    const world = await open();
    await world.accounts('r', 'a');
    await world.feed.follow({ follower: 'r', followee: 'a' });
    await world.open('r');
    const ids = await publish(world, 'a', 3);
    await world.feed.unfollow({ follower: 'r', followee: 'a', keepHistory: true });
    world.clock.advance(10);
    await publish(world, 'a', 1);
    await world.drain();
    expect(await homeIds(world, 'r')).toEqual(ids);
    world.clock.advance(10_000);
    await world.queue.store.housekeep({ now: world.clock.now() });
    await world.drain();
    const home = await world.feed.home({ reader: 'r' });
    expect([home.items.map((item) => item.id), home.sources.pulledAuthors]).toEqual([ids, 0]);
  });

  test.each([
    ['one batch', 100],
    ['several batches', 1],
  ])('a post dated back into a kept history is in it: %s', async (_, batchSize) => {
    const world = await open({ batchSize });
    const others = ['b1', 'b2', 'b3'];
    await world.accounts('a', 'r', ...others);
    for (const follower of ['r', ...others]) await world.feed.follow({ follower, followee: 'a' });
    await world.open('r');
    const [newer = '', older = ''] = await publish(world, 'a', 2);
    await world.drain();
    world.clock.advance(60_000);
    await world.feed.unfollow({ follower: 'r', followee: 'a', keepHistory: true });
    const createdAt = Number(BigInt(older) >> 20n);
    world.clock.advance(60_000);
    await world.queue.store.housekeep({ now: world.clock.now() });
    // The backfill of the kept history has run.
    await world.drain();
    const dated = await world.feed.publish({ author: 'a', text: 'of then', createdAt });
    await world.feed.publish({ author: 'a', text: 'of then', createdAt, visibility: 'followers' });
    await publish(world, 'a', 1);
    await world.drain();
    expect(await homeIds(world, 'r')).toEqual([newer, ...[dated.post.id, older].toSorted().toReversed()]);
    expect((await world.feed.home({ reader: 'r' })).sources).toMatchObject({
      timeline: 'live',
      pulledAuthors: 0,
    });
    expect(await world.feed.verify('r')).toMatchObject({ missing: [], superfluous: [] });
  });

  test('F03 posts of a pulled author older than the timeline wait for those of pushed ones', async () => {
    const world = await open({ timeline: { entriesMax: 48, slack: 0 } });
    await world.accounts('r', 'a', 'p');
    await popular(world, 'p');
    await world.feed.follow({ follower: 'r', followee: 'a' });
    await world.feed.follow({ follower: 'r', followee: 'p' });
    const ids: string[] = [];
    for (let hour = 0; hour < 240; hour += 1) {
      ids.unshift(...(await publish(world, 'a', 1, hourMs / 2)));
      ids.unshift(...(await publish(world, 'p', 1, hourMs / 2)));
      if (hour === 120) await world.open('r');
      if (hour % 40 === 0) await world.drain();
    }
    await world.drain();
    await world.feed.rebuild('r');
    const pages = await walkOlder(world.feed, 'r', 20);
    expect(pages[0]?.sources).toMatchObject({ timeline: 'live', pulledAuthors: 1 });
    expect(pages[0]?.sources.floor).not.toBe('0');
    for (const [index, page] of pages.entries()) {
      expect(page.items.map((item) => item.id)).toEqual(ids.slice(index * 20, index * 20 + 20));
    }
    expect(idsOf(pages)).toEqual(ids);
  });

  test('F04 verify names entries that were taken out by hand, and a rebuild puts them back', async () => {
    const world = await open();
    await world.accounts('r', 'a');
    await world.feed.follow({ follower: 'r', followee: 'a' });
    await world.open('r');
    const ids = await publish(world, 'a', 100);
    await world.drain();
    const taken = ids.slice(40, 45);
    await world.timelines.loseEntries(taken);
    expect(await world.feed.verify('r')).toMatchObject({ missing: taken, superfluous: [], timeline: 'live' });
    expect(await world.feed.verify('r')).toMatchObject({ missing: taken });
    await world.feed.rebuild('r');
    expect(await homeIds(world, 'r')).toEqual(ids);
    expect(await world.feed.verify('r')).toMatchObject({ missing: [], superfluous: [] });
  });

  test('F05 a page is full although the newest 300 entries are muted', async () => {
    const world = await open();
    await world.accounts('r', 'b', 'c');
    await world.feed.follow({ follower: 'r', followee: 'b' });
    await world.feed.follow({ follower: 'r', followee: 'c' });
    await world.open('r');
    const shown = await publish(world, 'b', 30);
    await publish(world, 'c', 300);
    await world.drain();
    await world.feed.mute({ muter: 'r', muted: 'c' });
    const pages = await walkOlder(world.feed, 'r', 20);
    expect(pages.map((page) => page.items.length)).toEqual([20, 10]);
    expect(idsOf(pages)).toEqual(shown);
  });

  test('F05 while much is hidden, posts of a pulled author wait for those of pushed ones', async () => {
    const world = await open();
    await world.accounts('r', 'b', 'c', 'p');
    await popular(world, 'p');
    for (const followee of ['b', 'c', 'p']) await world.feed.follow({ follower: 'r', followee });
    await world.open('r');
    const shown: string[] = [];
    for (let number = 0; number < 15; number += 1) {
      shown.unshift(...(await publish(world, 'b', 1)));
      shown.unshift(...(await publish(world, 'p', 1)));
    }
    await publish(world, 'c', 60);
    await world.drain();
    await world.feed.mute({ muter: 'r', muted: 'c' });
    expect(idsOf(await walkOlder(world.feed, 'r', 5))).toEqual(shown);
  });

  test('F06 posts whose rows are gone are left out and pages stay full', async () => {
    const world = await open();
    await world.accounts('r', 'a');
    await world.feed.follow({ follower: 'r', followee: 'a' });
    await world.open('r');
    const ids = await publish(world, 'a', 40);
    await world.drain();
    const gone = [ids[2], ids[6], ids[19]];
    await world.database.query(`delete from "${world.schema}".posts where id = any($1::bigint[])`, [gone]);
    const pages = await walkOlder(world.feed, 'r', 20);
    expect(pages.map((page) => page.items.length)).toEqual([20, 17]);
    expect(idsOf(pages)).toEqual(ids.filter((id) => !gone.includes(id)));
  });

  test('F08 a reader who was away is served by one pull query, and the timeline is built once', async () => {
    const world = await open();
    await world.accounts('r', 'a', 'b');
    await world.feed.follow({ follower: 'r', followee: 'a' });
    await world.feed.follow({ follower: 'r', followee: 'b' });
    await world.open('r');
    world.clock.advance(31 * dayMs);
    const ids = newestFirst([...(await publish(world, 'a', 150)), ...(await publish(world, 'b', 150))]);
    const first = await world.feed.home({ reader: 'r', limit: 100 });
    expect(first.items.map((item) => item.id)).toEqual(ids.slice(0, 100));
    expect(first.sources).toMatchObject({ timeline: 'none', rounds: 1 });
    for (let open = 0; open < 3; open += 1) await world.feed.home({ reader: 'r' });
    const repairs = async () => (await world.queue.depth(feedQueues.repair)).pending;
    await expect.poll(repairs).toBe(1);
    // Posts that arrive while the build runs: after its first transaction, before its second.
    const reader = (await world.context.store.resolve(world.database, ['r'])).get('r')?.number ?? '';
    const { store } = world.context;
    const token = await world.database.transaction(async (transaction) => {
      await store.lockReaders(transaction, [reader]);
      return store.beginBuild(transaction, { reader, now: world.clock.now() });
    });
    const during = await publish(world, 'a', 3);
    await world.drain(feedQueues.small);
    const finish = (on: Queryable) =>
      store.finishBuild(on, { reader, token, entriesMax: 800, activeMs: 30 * dayMs, now: world.clock.now() });
    if (store.apart) await finish(world.database);
    else {
      await world.database.transaction(async (transaction) => {
        await store.lockReaders(transaction, [reader]);
        await finish(transaction);
      });
    }
    expect(await homeIds(world, 'r')).toEqual([...during, ...ids]);
    expect((await world.feed.home({ reader: 'r' })).sources.timeline).toBe('live');
    expect((await world.feed.verify('r')).missing).toEqual([]);
  });

  test('a backlog of more overdue fan-outs than a read looks at in one go hides and repeats nothing', async () => {
    const world = await open({ timeline: { entriesMax: 100, slack: 0 } });
    await world.accounts('r', 'a', 'z');
    await world.feed.follow({ follower: 'r', followee: 'a' });
    const old = await publish(world, 'a', 5);
    await world.drain();
    await world.open('r');
    // Two in three are of a stranger; none has reached anybody.
    const { rows } = await world.database.query<{ id: string; mine: boolean }>(
      `with made as (
         insert into "${world.schema}".posts (id, author, body, visibility, mode, created_at)
         select ($1::bigint + n) << 20, a.number, 'late', 'public', 'push', $1::bigint + n
         from generate_series(1, 3500) n
         join "${world.schema}".accounts a on a.id = case when n % 3 = 0 then 'a' else 'z' end
         returning id, author),
       late as (
         insert into "${world.schema}".fan_outs (post, author, lane, published_at)
         select id, author, 'small', $1::bigint from made)
       select m.id, a.id = 'a' as mine from made m join "${world.schema}".accounts a on a.number = m.author`,
      [world.clock.now()],
    );
    world.clock.advance(60_000);
    const late = newestFirst(rows.filter(({ mine }) => mine).map(({ id }) => id));
    const expected = [...late, ...old];
    const pages = await walkOlder(world.feed, 'r', 100);
    expect(idsOf(pages)).toEqual(expected);
    for (const page of pages.slice(0, -1)) expect(page.items.length).toBe(100);
    const back = await walkNewer(world.feed, 'r', 100, pages.at(-1)?.previous ?? '');
    const rest = expected.slice(0, expected.length - (pages.at(-1)?.items.length ?? 0));
    expect(idsOf(back.toReversed())).toEqual(rest);
  });

  test('F09 timelines that are lost while posts go on are never missed', async () => {
    const world = await open();
    const readers = Array.from({ length: 10 }, (_, number) => `r${number}`);
    await world.accounts(...readers, 'a');
    for (const reader of readers) {
      await world.feed.follow({ follower: reader, followee: 'a' });
      await world.open(reader);
    }
    const before = await publish(world, 'a', 30);
    await world.drain();
    const waiting = await publish(world, 'a', 2);
    await world.timelines.loseAll();
    await world.drain(feedQueues.small);
    const after = await publish(world, 'a', 2);
    const all = [...after, ...waiting, ...before];
    for (const reader of readers) expect(await homeIds(world, reader)).toEqual(all);
    await world.drain();
    for (const reader of readers) {
      expect(await homeIds(world, reader)).toEqual(all);
      expect((await world.feed.home({ reader })).sources.timeline).toBe('live');
    }
  });
});
