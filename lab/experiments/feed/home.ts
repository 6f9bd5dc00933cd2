/**
 * What a page of home costs: readers of 500 followees, none of them pulled and 10 to 500, against the bare query that
 * joins a timeline with its posts, same columns, same driver. The sides take turns.
 */
import type { Database } from '../../../src/database/index.js';
import type { Experiment, ExperimentContext, Figure, Report } from '../../experiment.js';
import { median, percentile } from '../../statistics.js';
import {
  addAccounts,
  addFollows,
  addPosts,
  type Group,
  type LabFeed,
  makePulled,
  member,
  schema,
  settleTables,
  timeOf,
  withLabFeed,
} from './world.js';

const followees = 500;
const limit = 20;
const bounds: readonly (readonly [k: number, most: number])[] = [
  [0, 1.35],
  [10, 2],
  [50, 2],
  [100, 4],
  [500, 4],
];

/** Every column of a home, those that only home can know as constants. */
const bareQuery = `
  select p.id as "position", 2 as source, p.id as post, a.id as author, p.key, p.body, p.data, p.visibility,
    p.repost_of, p.created_at, p.edited_at, p.mode, true as fan_out_done, a.id as through, null::text as reposted_by,
    null::bigint as reposted_id, null::bigint as reposted_at
  from ${schema}.timeline t join ${schema}.posts p on p.id = t.post join ${schema}.accounts a on a.number = p.author
  where t.reader = $1 and t.post > 0 order by t.post desc limit $2`;

interface Side {
  readonly k: number;
  readonly readers: Group;
  readonly bare: number[];
  readonly home: number[];
}

/** Readers who follow `k` pulled authors and 500 - k pushed ones. */
async function prepare(lab: LabFeed, k: number, readersCount: number): Promise<Side> {
  const { database, feed } = lab;
  const readers = await addAccounts(database, `reader${k}`, readersCount);
  const pushed = await addAccounts(database, `pushed${k}`, followees - k || 1);
  await addFollows(database, readers, pushed);
  await addPosts(database, pushed, { perAuthor: 4 });
  if (k > 0) {
    const pulled = await addAccounts(database, `pulled${k}`, k);
    await makePulled(database, pulled);
    await addFollows(database, readers, pulled);
    await addPosts(database, pulled, { perAuthor: 4, mode: 'pull' });
  }
  for (let index = 0; index < readers.count; index += 1) await feed.rebuild(member(readers, index));
  return { k, readers, bare: [], home: [] };
}

async function bareMs(database: Database, { readers }: Side, turn: number): Promise<number> {
  const reader = readers.first + (turn % readers.count);
  return timeOf(() => database.query(bareQuery, [reader, limit]));
}

async function run({ quick, tell }: ExperimentContext): Promise<Report> {
  return withLabFeed({ poolMax: 1 }, async (lab) => {
    const { database, feed } = lab;
    const sides: Side[] = [];
    for (const [k] of bounds) {
      tell(`preparing: ${k} pull authors among ${followees}`);
      sides.push(await prepare(lab, k, quick ? 10 : 50));
    }
    await settleTables(database);
    const turns = quick ? 400 : 2_000;
    for (let turn = -40; turn < turns; turn += 1) {
      for (const side of sides) {
        const bare = await bareMs(database, sides[0]!, Math.abs(turn));
        const reader = member(side.readers, Math.abs(turn) % side.readers.count);
        const home = await timeOf(() => feed.home({ reader, limit }));
        if (turn < 0) continue;
        side.bare.push(bare);
        side.home.push(home);
      }
    }
    return report(sides, lab.durability);
  });
}

function report(sides: readonly Side[], durability: string): Report {
  const figures: Record<string, Figure> = {};
  const rows: Figure[][] = [];
  const misses: string[] = [];
  for (const { k, bare, home } of sides) {
    const most = bounds.find(([known]) => known === k)?.[1] ?? 0;
    const ratio = median(home) / median(bare);
    rows.push([k, median(bare), median(home), percentile(home, 0.99), ratio, most]);
    figures[`k ${k}: x bare`] = ratio;
    figures[`k ${k}: home p50 ms`] = median(home);
    if (ratio > most) misses.push(`k = ${k} takes ${ratio.toFixed(2)} x, to reach ${most} x`);
  }
  return {
    tables: [
      { columns: ['pull authors', 'bare p50 ms', 'home p50 ms', 'home p99 ms', 'x bare', 'at most'], rows },
    ],
    figures,
    reference: {
      'one merged branch': '1.35 x (Apple M4, PostgreSQL 16)',
      'to reach': '1.35 x without pull authors, 2 x at 50, 4 x at 500',
    },
    durability,
    holds: misses.length === 0,
    verdict: misses.length === 0 ? 'every home stays within its ratio' : misses.join('; '),
  };
}

export const home: Experiment = {
  name: 'home',
  shows: 'read cost with 0 to 500 pull authors among 500 followees, against the bare query',
  run,
};
