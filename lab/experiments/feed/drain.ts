/**
 * A burst of posts, one in twenty by an author with very many followers, into empty timelines: how long until everybody
 * has everything, by number of workers, as one job a post, in batches, and with the big authors pulled. And the same
 * inside the request.
 */
import { fanOut } from '../../../src/feed/fan-out.js';
import type { Experiment, ExperimentContext, Figure, Report } from '../../experiment.js';
import { median } from '../../statistics.js';
import {
  addAccounts,
  addFollows,
  drained,
  type Group,
  type LabFeed,
  makePulled,
  member,
  openTimelines,
  settleTables,
  timeOf,
  withLab,
  withSlots,
} from './world.js';

interface Size {
  readonly posts: number;
  readonly bigPosts: number;
  readonly bigAuthors: number;
  readonly bigFollowers: number;
  readonly workers: readonly number[];
  readonly runs: number;
}

const full: Size = {
  posts: 1_000,
  bigPosts: 52,
  bigAuthors: 40,
  bigFollowers: 10_000,
  workers: [1, 2, 4, 8],
  runs: 3,
};
const small: Size = { ...full, posts: 300, bigPosts: 16, bigAuthors: 12, workers: [1, 8], runs: 1 };

const smallAuthors = 200;

interface Stage {
  readonly readers: Group;
  readonly bigs: Group;
  readonly smalls: Group;
}

async function build(lab: LabFeed, size: Size): Promise<Stage> {
  const readers = await addAccounts(lab, 'reader', size.bigFollowers);
  const bigs = await addAccounts(lab, 'big', size.bigAuthors);
  const smalls = await addAccounts(lab, 'small', smallAuthors);
  await addFollows(lab, readers, bigs);
  // The median of a Twitter-like graph.
  await addFollows(lab, { ...readers, count: 61 }, smalls);
  await openTimelines(lab, readers);
  await settleTables(lab);
  return { readers, bigs, smalls };
}

async function empty(
  { database, schema }: LabFeed,
  { readers }: Stage,
  pulled: Group | undefined,
): Promise<void> {
  await database.script(`truncate ${schema}.timeline, ${schema}.fan_outs, ${schema}.fan_out_batches`);
  await openTimelines({ database, schema }, readers);
  await database.query(`update ${schema}.authors set mode = 'push', pushed_since = 0 where mode = 'pull'`);
  if (pulled) await makePulled({ database, schema }, pulled);
}

async function burst(lab: LabFeed, { bigs, smalls }: Stage, { posts, bigPosts }: Size): Promise<string[]> {
  const ids: string[] = [];
  const every = Math.floor(posts / bigPosts);
  for (let index = 0; index < posts; index += 1) {
    const isBig = index % every === 0 && index / every < bigPosts;
    const author = isBig ? member(bigs, (index / every) % bigs.count) : member(smalls, index % smalls.count);
    ids.push((await lab.feed.publish({ author, text: `post ${index}` })).post.id);
  }
  return ids;
}

interface Way {
  readonly label: string;
  readonly lab: LabFeed;
  readonly pull: boolean;
}

async function drainMs(way: Way, stage: Stage, size: Size, workers: number): Promise<number> {
  await empty(way.lab, stage, way.pull ? stage.bigs : undefined);
  await burst(way.lab, stage, size);
  return withSlots(way.lab, workers, () => drained(way.lab));
}

/** The requests that publish write everybody's timelines before they answer, one after the other. */
async function insideRequestMs(lab: LabFeed, stage: Stage, size: Size): Promise<number> {
  await empty(lab, stage, undefined);
  const ids = await burst(lab, stage, size);
  const tookMs = await timeOf(async () => {
    for (const id of ids) await fanOut(lab.context, id);
  });
  for (const name of ['feed-small', 'feed-big']) await lab.queue.purge(name, 'pending');
  return tookMs;
}

async function run({ quick, tell }: ExperimentContext): Promise<Report> {
  const size = quick ? small : full;
  return withLab({ poolMax: 12 }, async (server) => {
    const never = { pullFrom: 1_000_000_000, pushBelow: 0 };
    const whole = await server.open('drain', { threshold: never, batchSize: 10_000 });
    const batched = await server.open('drain', { threshold: never, batchSize: 1_000 });
    tell(`preparing: ${size.bigAuthors} authors of ${size.bigFollowers.toLocaleString('en')} followers`);
    const stage = await build(whole, size);
    const ways: Way[] = [
      { label: 'one job a post', lab: whole, pull: false },
      { label: 'batches of 1,000', lab: batched, pull: false },
      { label: 'big authors pulled', lab: whole, pull: true },
    ];
    const times = new Map<string, number[]>();
    const note = (key: string, ms: number) => times.set(key, [...(times.get(key) ?? []), ms]);
    for (let turn = 0; turn < size.runs; turn += 1) {
      for (const way of ways) {
        for (const workers of size.workers) {
          tell(`turn ${turn + 1}: ${way.label}, ${workers} workers`);
          note(`${way.label}/${workers}`, await drainMs(way, stage, size, workers));
        }
      }
      tell(`turn ${turn + 1}: inside the request`);
      note('inside', await insideRequestMs(whole, stage, size));
    }
    const ms = (key: string) => median(times.get(key) ?? []);
    return report({ ways, size, ms, durability: server.durability });
  });
}

function report(input: {
  readonly ways: readonly Way[];
  readonly size: Size;
  readonly ms: (key: string) => number;
  readonly durability: string;
}): Report {
  const { ways, size, ms, durability } = input;
  const most = size.workers.at(-1)!;
  const figures: Record<string, Figure> = { 'inside the request s': ms('inside') / 1_000 };
  for (const { label } of ways) {
    for (const workers of size.workers)
      figures[`${label}, ${workers} workers: s`] = ms(`${label}/${workers}`) / 1_000;
  }
  const byThreshold = ms('one job a post/1') / ms('big authors pulled/1');
  const byWorkers = ms('one job a post/1') / ms(`one job a post/${most}`);
  figures['threshold, 1 worker: x faster'] = byThreshold;
  figures[`${most} workers: x faster`] = byWorkers;
  return {
    tables: [
      {
        columns: ['seconds to drain', ...size.workers.map((workers) => `${workers} workers`)],
        rows: ways.map(({ label }) => [
          label,
          ...size.workers.map((workers) => ms(`${label}/${workers}`) / 1_000),
        ]),
      },
      { columns: ['inside the request, one client', 's'], rows: [['all of it', ms('inside') / 1_000]] },
    ],
    figures,
    reference: {
      '8 workers against 1 (Apple M4, PostgreSQL 16)':
        '3.5 x without threshold (3.09 -> 0.88 s), 5.4 x with (1.61 -> 0.30 s)',
      threshold: '1.9 x with 1 worker; splitting off big authors is the main lever, workers the second',
    },
    durability,
    holds: byThreshold > 1 && byWorkers > 1,
    verdict: `pulling the big authors drains ${byThreshold.toFixed(1)} x as fast with one worker, ${most} workers ${byWorkers.toFixed(1)} x as fast as one without it`,
  };
}

export const drain: Experiment = {
  name: 'drain',
  shows:
    'a burst of posts into empty timelines: workers, batches, the pull threshold, and inside the request',
  run,
};
