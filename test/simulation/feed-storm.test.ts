/**
 * Many clients and two workers at once on a real server: follows, unfollows, posts, deletes, rebuilds and housekeeping
 * overlap; when all has run, every home equals the oracle of what the truth has become, and verify finds no gap.
 */
import { describe, expect, test } from 'vitest';
import { createFeedWorker, seededRandom } from '../../src/feed/index.js';
import { FeedOracle } from '../../src/testing/feed-oracle.js';
import { type FeedWorld, idsOf, walkOlder } from '../../src/testing/feed-world.js';
import { databases, useWorlds } from '../conformance/feed/worlds.js';

const isLong = process.env['HEADGATE_LONG'] === '1';
const people = Array.from({ length: 14 }, (_, number) => `p${number}`);

/** The oracle of the rows of truth: with overlapping calls only the store knows which came last. */
async function oracleOf({ database, schema }: FeedWorld): Promise<FeedOracle> {
  const oracle = new FeedOracle();
  const rows = async (text: string) => (await database.query<Record<string, string | null>>(text)).rows;
  for (const row of await rows(`select p.id, a.id as author, p.visibility, p.repost_of, p.deleted_at
      from "${schema}".posts p join "${schema}".accounts a on a.number = p.author order by p.id`)) {
    const visibility = row['visibility'] === 'followers' ? 'followers' : 'public';
    const id = row['id'] ?? '';
    oracle.publish({ id, author: row['author'] ?? '', visibility, repostOf: row['repost_of'] ?? undefined });
    if (row['deleted_at'] !== null) oracle.delete(id);
  }
  for (const row of await rows(`select a.id as follower, b.id as followee, f.kept_until from "${schema}".follows f
      join "${schema}".accounts a on a.number = f.follower join "${schema}".accounts b on b.number = f.followee`)) {
    const [follower, followee] = [row['follower'] ?? '', row['followee'] ?? ''];
    oracle.follow(follower, followee);
    const keptUntil = row['kept_until'];
    if (typeof keptUntil === 'string') oracle.unfollow(follower, followee, BigInt(keptUntil));
  }
  return oracle;
}

async function client(world: FeedWorld, seed: number, until: () => boolean): Promise<void> {
  const { feed } = world;
  const random = seededRandom(seed);
  const pick = <T>(from: readonly T[]) => from[Math.floor(random() * from.length)] as T;
  const posts: string[] = [];
  while (!until()) {
    const [one, other] = [pick(people), pick(random() < 0.5 ? people.slice(0, 3) : people)];
    const dice = random();
    if (dice < 0.3) posts.push((await feed.publish({ author: other, text: 'x' })).post.id);
    else if (dice < 0.55 && one !== other) await feed.follow({ follower: one, followee: other });
    else if (dice < 0.75)
      await feed.unfollow({ follower: one, followee: other, keepHistory: random() < 0.2 });
    else if (dice < 0.8 && posts.length > 0) await feed.deletePost({ id: pick(posts) });
    else if (dice < 0.83) await feed.rebuild(one);
    else if (dice < 0.86 && one !== other) await feed.importFollows([[one, other]]);
    else if (dice < 0.88) await feed.vacuum();
    else await feed.home({ reader: one });
  }
}

describe.each(databases)('a storm on $name', (on) => {
  const open = useWorlds(on);

  test(
    'homes equal the oracle when it has passed',
    async () => {
      const world = await open({
        threshold: { pullFrom: 8, pushBelow: 6 },
        timeline: { entriesMax: 30, slack: 5 },
        batchSize: 3,
        backfillAtOnce: 2,
        followeesMax: 11,
      });
      await world.accounts(...people);
      const workers = [0, 1].map(() =>
        createFeedWorker(world.configuration, { slots: 4, housekeepingMs: 50 }),
      );
      for (const worker of workers) await worker.start();
      // The clock of the stores moves on, or every post would be of one millisecond.
      const ticking = setInterval(() => world.clock.advance(5), 5);
      const endsAt = performance.now() + (isLong ? 60_000 : 4_000);
      const seeds = Array.from({ length: on.hasSessions ? 6 : 3 }, (_, index) => index + 1);
      await Promise.all(seeds.map((seed) => client(world, seed, () => performance.now() > endsAt)));
      const waiting = async () => {
        // What is to be tried again later is due soon: nobody has to sit out its delay.
        world.clock.advance(1_000);
        let live = 0;
        for (const queue of await world.queue.queues()) {
          const { invisible, pending, running } = await world.queue.depth(queue);
          live += invisible + pending + running;
        }
        return live;
      };
      await expect.poll(waiting, { timeout: isLong ? 300_000 : 40_000, interval: 200 }).toBe(0);
      clearInterval(ticking);
      for (const worker of workers) await worker.stop();
      await world.worker.keepHouse();
      const oracle = await oracleOf(world);
      expect(oracle.posts.size).toBeGreaterThan(0);
      for (const reader of people) {
        const note = `home of ${reader}`;
        expect(idsOf(await walkOlder(world.feed, reader, 20)), note).toEqual(oracle.home(reader));
        expect((await world.feed.verify(reader)).missing, note).toEqual([]);
        const followers = people.filter((other) => oracle.follows(other, reader)).length;
        expect((await world.feed.getAccount(reader))?.followers, note).toBe(followers);
      }
    },
    isLong ? 600_000 : 120_000,
  );
});
