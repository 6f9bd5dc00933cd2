/**
 * What a page of home costs: readers of 500 followees, none of them pulled and 10 to 500, against the bare query that
 * joins a timeline with its posts, same columns, same driver. The sides take turns.
 */
import { numberMerged } from '../../../src/feed/housekeeping.js';
import type { Experiment, ExperimentContext, Figure, Report } from '../../experiment.js';
import { median, percentile } from '../../statistics.js';
import {
  addAccounts,
  addFollows,
  addPosts,
  type Group,
  type Lab,
  type LabFeed,
  makePulled,
  member,
  settleTables,
  timeOf,
  withLab,
} from './world.js';

const followees = 500;
const limit = 20;
/** Pulled authors whom the readers of the mixed world do not follow, and who must be told from those they do. */
const strangers = 1_000;

function mostOf(k: number): number {
  if (k === 0) return 1.35;
  return k <= 50 ? 2 : 4;
}

/** Every column of a home, those that only home can know as constants. */
const bareQuery = (schema: string) => `
  select p.id as "position", 2 as source, p.id as post, a.id as author, p.key, p.body, p.data, p.visibility,
    p.repost_of, p.created_at, p.edited_at, p.mode, true as fan_out_done, a.id as through, null::text as reposted_by,
    null::bigint as reposted_id, null::bigint as reposted_at
  from ${schema}.timeline t join ${schema}.posts p on p.id = t.post join ${schema}.accounts a on a.number = p.author
  where t.reader = $1 and t.post > 0 order by t.post desc limit $2`;

interface Side {
  readonly k: number;
  readonly label: string;
  readonly lab: LabFeed;
  readonly readers: Group;
  readonly bare: number[];
  readonly home: number[];
}

/** Readers who follow `k` pulled authors and 500 - k pushed ones. */
async function prepare(lab: LabFeed, k: number, readersCount: number): Promise<Side> {
  const readers = await addAccounts(lab, `reader${k}`, readersCount);
  const pushed = await addAccounts(lab, `pushed${k}`, followees - k || 1);
  await addFollows(lab, readers, pushed);
  await addPosts(lab, pushed, { perAuthor: 4 });
  if (k > 0) {
    const pulled = await addAccounts(lab, `pulled${k}`, k);
    await makePulled(lab, pulled);
    await addFollows(lab, readers, pulled);
    await addPosts(lab, pulled, { perAuthor: 4, mode: 'pull' });
  }
  for (let index = 0; index < readers.count; index += 1) await lab.feed.rebuild(member(readers, index));
  return { k, label: String(k), lab, readers, bare: [], home: [] };
}

async function prepareAll(lab: Lab, readersCount: number, tell: (line: string) => void): Promise<Side[]> {
  tell('preparing: a world in which nobody is pulled');
  const pushedOnly = await lab.open('pushed_only');
  const sides = [{ ...(await prepare(pushedOnly, 0, readersCount)), label: '0, nobody is pulled' }];
  const mixed = await lab.open('mixed');
  await makePulled(mixed, await addAccounts(mixed, 'strangers', strangers));
  for (const k of [0, 10, 50, 100, 500]) {
    tell(`preparing: ${k} pull authors among ${followees}`);
    sides.push(await prepare(mixed, k, readersCount));
  }
  for (const world of [pushedOnly, mixed]) {
    while (!(await numberMerged(world.context)));
    await settleTables(world);
  }
  for (const side of sides) await readOnce(side);
  return sides;
}

/** The first read lists the merged authors that its reader follows, as it does once for every reader in use. */
async function readOnce({ lab, readers }: Side): Promise<void> {
  for (let index = 0; index < readers.count; index += 1) {
    const reader = member(readers, index);
    const { sources } = await lab.feed.home({ reader, limit });
    if (sources.timeline !== 'live') throw new Error(`home: ${reader} has no timeline`);
  }
}

/** The bare query reads the timeline of the readers without pull authors of the same world. */
async function measure(
  side: Side,
  plain: Group,
  turn: number,
): Promise<readonly [bare: number, home: number]> {
  const { database, schema, feed } = side.lab;
  const at = turn % plain.count;
  const bare = await timeOf(() => database.query(bareQuery(schema), [plain.first + at, limit]));
  const reader = member(side.readers, at);
  return [bare, await timeOf(() => feed.home({ reader, limit }))];
}

async function run({ quick, tell, store }: ExperimentContext): Promise<Report> {
  if (store === 'redis')
    throw new Error('home: timelines in Redis have an experiment of their own, home-redis');
  return withLab({ poolMax: 1 }, async (lab) => {
    const sides = await prepareAll(lab, quick ? 10 : 50, tell);
    const turns = quick ? 400 : 2_000;
    for (let turn = -40; turn < turns; turn += 1) {
      for (const side of sides) {
        const plain = sides.find((other) => other.k === 0 && other.lab === side.lab)!.readers;
        const [bare, home] = await measure(side, plain, Math.abs(turn));
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
  for (const { k, label, bare, home } of sides) {
    const most = mostOf(k);
    const ratio = median(home) / median(bare);
    rows.push([label, median(bare), median(home), percentile(home, 0.99), ratio, most]);
    figures[`k ${label}: x bare`] = ratio;
    figures[`k ${label}: home p50 ms`] = median(home);
    if (ratio > most) misses.push(`k = ${label} takes ${ratio.toFixed(2)} x, to reach ${most} x`);
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
