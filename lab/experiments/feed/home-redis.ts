/**
 * What a page of home costs with the timeline in Redis: readers of 500 followees, none of them pulled, against LRANGE and a bare
 * select of the posts by their ids, same columns, same driver. The sides take turns.
 */
import { createRedisTimelines } from '../../../src/feed/redis/index.js';
import { startRedisServer } from '../../../src/testing/redis-server.js';
import type { Experiment, ExperimentContext, Report } from '../../experiment.js';
import { median, percentile } from '../../statistics.js';
import { addAccounts, addFollows, addPosts, member, settleTables, timeOf, withLab } from './world.js';

const followees = 500;
const limit = 20;
const most = 1.35;

/** Every column of a home, those that only home can know as constants. */
const bareQuery = (schema: string) => `
  select p.id as "position", 2 as source, p.id as post, a.id as author, p.key, p.body, p.data, p.visibility,
    p.repost_of, p.created_at, p.edited_at, p.mode, true as fan_out_done, a.id as through, null::text as reposted_by,
    null::bigint as reposted_id, null::bigint as reposted_at
  from ${schema}.posts p join ${schema}.accounts a on a.number = p.author
  where p.id = any($1::bigint[]) order by p.id desc`;

async function run({ quick, tell }: ExperimentContext): Promise<Report> {
  const server = await startRedisServer();
  const redis = server.connect();
  const lists = createRedisTimelines({ url: server.url });
  try {
    return await withLab({ poolMax: 1 }, async (opened) => {
      const lab = await opened.open('home_redis', {}, { timelines: lists });
      tell('preparing: a world in which nobody is pulled');
      const readers = await addAccounts(lab, 'reader', quick ? 10 : 50);
      const authors = await addAccounts(lab, 'author', followees);
      await addFollows(lab, readers, authors);
      await addPosts(lab, authors, { perAuthor: 4 });
      for (let index = 0; index < readers.count; index += 1) await lab.feed.rebuild(member(readers, index));
      await settleTables(lab);
      const { database, schema, feed } = lab;
      const times = { bare: [] as number[], home: [] as number[] };
      const turns = quick ? 1_000 : 5_000;
      let served = 0;
      for (let turn = -100; turn < turns; turn += 1) {
        const at = Math.abs(turn) % readers.count;
        const bare = await timeOf(async () => {
          const ids = await redis.lrange(`headgate-feed:{0}:${readers.first + at}`, 0, limit - 1);
          await database.query(bareQuery(schema), [ids]);
        });
        const home = await timeOf(async () => {
          const { items, sources } = await feed.home({ reader: member(readers, at), limit });
          if (sources.timeline === 'live' && items.length === limit) served += 1;
        });
        if (turn < 0) continue;
        times.bare.push(bare);
        times.home.push(home);
      }
      if (served < turns) throw new Error('home-redis: not every home came from a list');
      return report(times, opened.durability);
    });
  } finally {
    await lists.stop();
    redis.disconnect();
    await server.stop();
  }
}

function report(times: { bare: readonly number[]; home: readonly number[] }, durability: string): Report {
  const [bare, home] = [median(times.bare), median(times.home)];
  const ratio = home / bare;
  return {
    tables: [
      {
        columns: ['side', 'p50 ms', 'p99 ms', 'x bare'],
        rows: [
          ['LRANGE and a select by ids', bare, percentile(times.bare, 0.99), 1],
          ['home', home, percentile(times.home, 0.99), ratio],
        ],
      },
    ],
    figures: { 'x bare': ratio, 'home p50 ms': home },
    reference: { 'to reach': `${most} x` },
    durability: `posts: ${durability}; timelines: Redis without persistence`,
    holds: ratio <= most,
    verdict: `a home takes ${ratio.toFixed(2)} x of LRANGE and a bare select by ids (to reach ${most} x)`,
  };
}

export const homeRedis: Experiment = {
  name: 'home-redis',
  shows: 'read cost with timelines in Redis and 500 followees, against LRANGE and a bare select by ids',
  run,
};
