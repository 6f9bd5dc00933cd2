/**
 * A reader's list of the merged authors it follows spares its reads something and never hides a post: not in any order of
 * follow, switch, numbering and listing, with two sessions and one of them held at the bad moment.
 */
import { describe, expect, test, vi } from 'vitest';
import type { Transaction } from '../../src/database/index.js';
import { numberMerged } from '../../src/feed/housekeeping.js';
import { type FeedWorld, idsOf, walkOlder } from '../../src/testing/feed-world.js';
import { databases, useWorlds } from './feed/worlds.js';

async function publish({ feed, clock }: FeedWorld, author: string): Promise<string> {
  clock.advance(1);
  return (await feed.publish({ author, text: author })).post.id;
}

const fansOf = (author: string) =>
  Array.from({ length: 20 }, (_, number) => [`fan ${number}`, author] as const);

/** Twenty followers, so that the author is pulled; not yet numbered. */
const makePulled = async ({ feed }: FeedWorld, ...authors: readonly string[]) =>
  void (await feed.importFollows(authors.flatMap(fansOf)));

async function numberOf({ context }: FeedWorld, id: string): Promise<string> {
  return (await context.store.resolve(context.database, [id])).get(id)?.number ?? '';
}

/** The list of a reader as it stands: names, or undefined when there is none. */
async function listOf({ database, schema }: FeedWorld, reader: string): Promise<string[] | undefined> {
  const { rows } = await database.query<{ names: string[] }>(
    `select array(select a.id from unnest(m.authors) u join "${schema}".accounts a on a.number = u order by 1) as names
     from "${schema}".merged_followees m join "${schema}".accounts r on r.number = m.reader where r.id = $1`,
    [reader],
  );
  return rows[0]?.names;
}

/** A read writes its list beside its answer. */
const untilListed = async (world: FeedWorld, reader: string, names: readonly string[]) =>
  vi.waitFor(async () => expect(await listOf(world, reader)).toEqual(names), { timeout: 60_000 });

const list = async ({ context }: FeedWorld, reader: string) =>
  context.database.transaction((on) => context.store.listMergedFollowees(on, { reader }));

/** Runs `write` in a session of its own and keeps its transaction open until the answer is called. */
async function held({ context }: FeedWorld, write: (on: Transaction) => Promise<unknown>) {
  let commit = () => {};
  let reached = () => {};
  const wait = new Promise<void>((resolve) => (commit = resolve));
  const written = new Promise<void>((resolve) => (reached = resolve));
  const ended = context.database.transaction(async (on) => {
    await write(on);
    reached();
    await wait;
  });
  await Promise.race([written, ended]);
  return async () => {
    commit();
    await ended;
  };
}

const home = async ({ feed }: FeedWorld, reader: string) => idsOf([await feed.home({ reader })]);

describe.each(databases)('the list of merged followees on $name', (on) => {
  const open = useWorlds(on);

  /** `r` follows a pushed author and a pulled one, others follow a second pulled one; everybody is numbered and `r` listed. */
  async function listed(): Promise<FeedWorld> {
    const world = await open();
    await world.accounts('r', 'c', 'p', 'q', 'n', ...fansOf('').map(([fan]) => fan));
    await makePulled(world, 'p', 'q');
    for (const followee of ['c', 'p']) await world.feed.follow({ follower: 'r', followee });
    await world.open('r');
    await world.worker.keepHouse();
    await world.feed.home({ reader: 'r' });
    await untilListed(world, 'r', ['p']);
    return world;
  }

  test('names the merged followees after a read, and goes with the timeline', async () => {
    const world = await listed();
    const ids = [await publish(world, 'p'), await publish(world, 'c'), await publish(world, 'q')];
    await world.drain();
    const page = await world.feed.home({ reader: 'r' });
    expect(idsOf([page])).toEqual([ids[1], ids[0]]);
    expect(page.sources.pulledAuthors).toBe(1);
    world.clock.advance(31 * 86_400_000);
    await world.feed.vacuum();
    expect(await listOf(world, 'r')).toBeUndefined();
  });

  test('goes with a build, and from an unseen reader whose timeline was lost', async () => {
    const world = await listed();
    await world.feed.rebuild('r');
    expect(await listOf(world, 'r')).toBeUndefined();
    await world.feed.home({ reader: 'r' });
    await untilListed(world, 'r', ['p']);
    await world.timelines.loseAll();
    await world.feed.vacuum();
    expect(await listOf(world, 'r')).toEqual(['p']);
    world.clock.advance(31 * 86_400_000);
    await world.feed.vacuum();
    expect(await listOf(world, 'r')).toBeUndefined();
  });

  test('follow, import, unfollow and a switch of mode hold from the next read, numbered or not', async () => {
    const world = await listed();
    const [p, q, n] = [await publish(world, 'p'), await publish(world, 'q'), await publish(world, 'n')];
    await world.feed.follow({ follower: 'r', followee: 'q' });
    expect(await listOf(world, 'r')).toBeUndefined();
    expect(await home(world, 'r')).toEqual([q, p]);
    await untilListed(world, 'r', ['p', 'q']);
    await world.drain();
    await world.feed.unfollow({ follower: 'r', followee: 'p' });
    expect(await home(world, 'r')).toEqual([q]);
    expect((await world.feed.home({ reader: 'r' })).sources.pulledAuthors).toBe(1);

    await world.feed.follow({ follower: 'r', followee: 'n' });
    await world.drain();
    await makePulled(world, 'n');
    const [n2, q2] = [await publish(world, 'n'), await publish(world, 'q')];
    expect(await listOf(world, 'r'), 'a switch leaves the lists of followers alone').toEqual(['p', 'q']);
    expect(await home(world, 'r')).toEqual([q2, n2, n, q]);
    await world.worker.keepHouse();
    expect(await home(world, 'r')).toEqual([q2, n2, n, q]);

    await world.feed.importFollows([['r', 'p']]);
    await world.open('r');
    expect(await home(world, 'r')).toEqual([q2, n2, n, q, p]);
    await world.drain();
    await world.feed.block({ blocker: 'n', blocked: 'r' });
    expect(await home(world, 'r')).toEqual([q2, q, p]);
    expect((await world.feed.verify('r')).missing).toEqual([]);
  });

  test('a reader who is merged for others keeps its own posts', async () => {
    const world = await listed();
    await makePulled(world, 'r');
    const id = await publish(world, 'r');
    expect(await home(world, 'r')).toEqual([id]);
    await world.worker.keepHouse();
    expect(await home(world, 'r')).toEqual([id]);
    await list(world, await numberOf(world, 'r'));
    expect(await listOf(world, 'r')).toEqual(['p', 'r']);
    expect(await home(world, 'r')).toEqual([id]);
    expect((await world.feed.home({ reader: 'r' })).sources.pulledAuthors).toBe(2);
  });

  test('too many names for a list, or too many numbered since, are looked up as without one', async () => {
    const world = await listed();
    const many = Array.from({ length: 110 }, (_, number) => `m${number}`);
    await world.accounts(...many);
    await makePulled(world, ...many);
    expect(await home(world, 'r')).toEqual([]);
    const expected: string[] = [];
    for (const author of ['p', 'm3', 'm7']) expected.unshift(await publish(world, author));
    expect(await home(world, 'r')).toEqual(expected.slice(2));
    await world.feed.importFollows(many.map((author) => ['r', author] as const));
    await world.open('r');
    await world.worker.keepHouse();
    await world.feed.home({ reader: 'r' });
    // A row without names.
    await untilListed(world, 'r', []);
    expect(idsOf(await walkOlder(world.feed, 'r', 1))).toEqual(expected);
    expect((await world.feed.home({ reader: 'r' })).sources.pulledAuthors).toBe(111);
  });
});

describe.each(databases.filter(({ hasSessions }) => hasSessions))(
  'two sessions and the list of merged followees on $name',
  (on) => {
    const open = useWorlds(on);

    async function prepared(): Promise<FeedWorld> {
      const world = await open();
      await world.accounts('r', 'p', 'q', ...fansOf('').map(([fan]) => fan));
      await makePulled(world, 'q');
      await world.open('r');
      await world.worker.keepHouse();
      await list(world, await numberOf(world, 'r'));
      return world;
    }

    test('a follow that has not seen the switch of its author is not lost to a list that has', async () => {
      const world = await prepared();
      const { store } = world.context;
      const [r, p] = [await numberOf(world, 'r'), await numberOf(world, 'p')];
      const commit = await held(world, async (on) => {
        await store.lockReaders(on, [r]);
        await store.insertFollow(on, { follower: r, followee: p, pending: false, now: undefined });
      });
      await makePulled(world, 'p');
      const id = await publish(world, 'p');
      await numberMerged(world.context);
      // Somebody holds the reader: no list is written over the follow's head.
      await list(world, r);
      await commit();
      expect(await home(world, 'r')).toEqual([id]);
      await list(world, r);
      expect(await listOf(world, 'r')).toEqual(['p']);
      expect(await home(world, 'r')).toEqual([id]);
    });

    test('a follow that comes while a list is written takes the list away', async () => {
      const world = await prepared();
      const r = await numberOf(world, 'r');
      const commit = await held(world, (on) => world.context.store.listMergedFollowees(on, { reader: r }));
      const followed = world.feed.follow({ follower: 'r', followee: 'q' });
      const id = await publish(world, 'q');
      await commit();
      await followed;
      expect(await listOf(world, 'r')).toBeUndefined();
      expect(await home(world, 'r')).toEqual([id]);
    });

    test('a list written while authors are being numbered is not good for them', async () => {
      const world = await prepared();
      const r = await numberOf(world, 'r');
      await world.feed.follow({ follower: 'r', followee: 'p' });
      await world.drain();
      await makePulled(world, 'p');
      const id = await publish(world, 'p');
      let numbered = 0;
      const commit = await held(world, async (on) => {
        numbered = await world.context.store.numberMerged(on, { rowsMax: 100 });
      });
      expect(numbered).toBe(1);
      expect(await numberMerged(world.context), 'who comes second leaves it to the first').toBe(true);
      await list(world, r);
      expect(await listOf(world, 'r')).toEqual([]);
      expect(await home(world, 'r')).toEqual([id]);
      await commit();
      expect(await home(world, 'r')).toEqual([id]);
      await list(world, r);
      expect(await listOf(world, 'r')).toEqual(['p']);
      expect(await home(world, 'r')).toEqual([id]);
    });

    test('an author whose row a publish holds is numbered by a later round', async () => {
      const world = await prepared();
      const r = await numberOf(world, 'r');
      await world.feed.follow({ follower: 'r', followee: 'p' });
      await world.drain();
      await makePulled(world, 'p');
      const commit = await held(world, (on) => world.context.store.holdAuthor(on, 'p'));
      await numberMerged(world.context);
      await list(world, r);
      expect(await listOf(world, 'r')).toEqual([]);
      const id = await publish(world, 'p');
      expect(await home(world, 'r')).toEqual([id]);
      await commit();
      await numberMerged(world.context);
      expect(await home(world, 'r')).toEqual([id]);
    });
  },
);
