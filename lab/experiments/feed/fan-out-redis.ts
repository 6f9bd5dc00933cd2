/**
 * Entries a second that a fan-out writes into timelines in Redis, by the script alone and through the whole worker path, against
 * pipelined ZADD + ZREMRANGEBYRANK into sorted sets of the same readers; and what entries that arrive late cost the server.
 */
import type { Redis } from 'ioredis';
import { createRedisTimelines } from '../../../src/feed/redis/index.js';
import type { TimelineLists } from '../../../src/feed/index.js';
import { type RedisServer, startRedisServer } from '../../../src/testing/redis-server.js';
import type { Experiment, ExperimentContext, Figure, Report } from '../../experiment.js';
import { median } from '../../statistics.js';
import {
  addAccounts,
  addFollows,
  drained,
  type LabFeed,
  member,
  settleTables,
  timeOf,
  withLab,
  withSlots,
} from './world.js';

/** Of a call, and of a pipeline. */
const batchSize = 1_000;
/** Sorted sets are ten times as large, so there are fewer of them. */
const sortedSets = 2_000;
const inFlight = 4;
const entries = 800;
const bounds = { entriesMax: entries, slack: 64 };
/** In a turn of the worker path: enough that its start and its end are a small part. */
const workerPosts = 30;
const least = { script: 5, worker: 3 };
const lateMost = 15;
const callMsMost = 5;

interface Sides {
  readonly lab: LabFeed;
  readonly lists: TimelineLists;
  readonly redis: Redis;
  readonly authors: readonly string[];
  readonly readers: readonly string[];
  /** Ids before the first post of the run, newest first. */
  readonly before: readonly string[];
}

function batchesOf(readers: readonly string[]): string[][] {
  const batches: string[][] = [];
  for (let from = 0; from < readers.length; from += batchSize)
    batches.push(readers.slice(from, from + batchSize));
  return batches;
}

/** Does the jobs in order, so many at a time. */
async function inTurn(jobs: readonly (() => Promise<unknown>)[], width: number): Promise<void> {
  const left = jobs.values();
  const lane = async () => {
    for (const job of left) await job();
  };
  await Promise.all(Array.from({ length: width }, lane));
}

/** 800 entries for every reader, in a list and in a sorted set. */
async function fill({ lab, lists, redis, readers, before }: Sides): Promise<void> {
  const keptMs = 86_400_000;
  const { rows } = await lab.database.query<{ account: string; token: string }>(
    `update ${lab.schema}.readers set state = 'live', token = nextval('${lab.schema}.timeline_tokens'),
       floor = 9223372036854775807, seen_at = floor(extract(epoch from now()) * 1000)
     where account = any($1::bigint[]) returning account, token`,
    [readers],
  );
  const scored = before.flatMap((id) => [Number(BigInt(id) >> 20n), id]);
  const jobs = rows.map(({ account: reader, token }, index) => async () => {
    await lists.begin({ reader, token, keptMs });
    await lists.merge({ reader, token, ids: before, floor: '0', entriesMax: entries, keptMs });
    if (index < sortedSets) await redis.zadd(`sorted:${index}`, ...scored);
  });
  await inTurn(jobs, 8);
}

const idAt = (ms: number, sequence: number) => String((BigInt(ms) << 20n) + BigInt(sequence));

async function scriptRate({ lists, readers }: Sides, posts: readonly string[]): Promise<number> {
  let written = 0;
  const jobs = posts.flatMap((post) =>
    batchesOf(readers).map((batch) => async () => {
      const pushed = await lists.push({ post, readers: batch, ...bounds });
      written += pushed.written;
    }),
  );
  const tookMs = await timeOf(() => inTurn(jobs, inFlight));
  return (written / tookMs) * 1_000;
}

async function sortedSetRate({ redis }: Sides, posts: readonly string[]): Promise<number> {
  const keys = Array.from({ length: sortedSets }, (_, index) => `sorted:${index}`);
  const jobs = posts.flatMap((post) =>
    batchesOf(keys).map((batch) => async () => {
      const pipeline = redis.pipeline();
      for (const key of batch) {
        pipeline.zadd(key, Number(BigInt(post) >> 20n), post);
        pipeline.zremrangebyrank(key, 0, -entries - 1);
      }
      await pipeline.exec();
    }),
  );
  const tookMs = await timeOf(() => inTurn(jobs, inFlight));
  return ((posts.length * sortedSets) / tookMs) * 1_000;
}

/** Posts by authors in turn; everybody follows all of them. */
async function workerRate({ lab, readers }: Sides, authors: readonly string[]): Promise<number> {
  const posts = workerPosts;
  for (let number = 0; number < posts; number += 1)
    await lab.feed.publish({ author: authors[number % authors.length]!, text: 'to everybody' });
  const tookMs = await withSlots(lab, 8, () => drained(lab));
  return ((posts * readers.length) / tookMs) * 1_000;
}

interface ServerTime {
  readonly microsecondsEach: number;
  readonly callsOver: number;
}

/** What the server itself says about the calls of `work`. */
async function serverTime(redis: Redis, work: () => Promise<number>): Promise<ServerTime> {
  await redis.config('SET', 'slowlog-log-slower-than', String(callMsMost * 1_000));
  await redis.config('RESETSTAT');
  await redis.slowlog('RESET');
  const written = await work();
  const spent = /cmdstat_evalsha:calls=\d+,usec=(\d+)/.exec(await redis.info('commandstats'))?.[1];
  return {
    microsecondsEach: Number(spent) / written,
    callsOver: Number(await redis.call('SLOWLOG', 'LEN')),
  };
}

async function pushEverywhere({ lists, readers }: Sides, posts: readonly string[]): Promise<number> {
  let written = 0;
  for (const post of posts) {
    for (const batch of batchesOf(readers)) {
      const pushed = await lists.push({ post, readers: batch, ...bounds });
      written += pushed.written;
    }
  }
  return written;
}

interface Measured {
  readonly sorted: number[];
  readonly script: number[];
  /** The posts of one author, and of ten in turn. */
  readonly worker: number[];
  readonly tenAuthors: number[];
  readonly inOrder: ServerTime[];
  readonly late: ServerTime[];
  readonly anywhere: ServerTime[];
}

async function measure(sides: Sides, turns: number, tell: (line: string) => void): Promise<Measured> {
  const measured: Measured = {
    sorted: [],
    script: [],
    worker: [],
    tenAuthors: [],
    inOrder: [],
    late: [],
    anywhere: [],
  };
  const { before, redis, authors } = sides;
  const spread = Array.from({ length: 10 }, (_, number) => number);
  for (let turn = 0; turn <= turns; turn += 1) {
    tell(`turn ${turn}`);
    const now = Date.now();
    const newest = (from: number) => spread.map((number) => idAt(now, 100 * (from + number)));
    const rates = [
      await sortedSetRate(sides, newest(0)),
      await scriptRate(sides, newest(10)),
      await workerRate(sides, authors.slice(0, 1)),
      await workerRate(sides, authors),
    ] as const;
    const ahead = idAt(Date.now(), 0);
    const inOrder = await serverTime(redis, () =>
      pushEverywhere(
        sides,
        spread.map((number) => String(BigInt(ahead) + BigInt(number))),
      ),
    );
    // Behind these ten, and behind half of all.
    const late = await serverTime(redis, () => pushEverywhere(sides, [String(BigInt(ahead) - 1n)]));
    const halfway = String(BigInt(before[400]!) + BigInt(turn) + 1n);
    const anywhere = await serverTime(redis, () => pushEverywhere(sides, [halfway]));
    // The first turn warms the caches.
    if (turn === 0) continue;
    measured.sorted.push(rates[0]);
    measured.script.push(rates[1]);
    measured.worker.push(rates[2]);
    measured.tenAuthors.push(rates[3]);
    measured.inOrder.push(inOrder);
    measured.late.push(late);
    measured.anywhere.push(anywhere);
  }
  return measured;
}

async function run({ quick, tell }: ExperimentContext): Promise<Report> {
  const server: RedisServer = await startRedisServer();
  const redis = server.connect();
  const lists = createRedisTimelines({ url: server.url, timeoutMs: 60_000 });
  try {
    return await withLab({}, async (opened) => {
      const lab = await opened.open(
        'fan_out_redis',
        { threshold: { pullFrom: 1_000_000_000, pushBelow: 0 } },
        { timelines: lists },
      );
      const count = quick ? 6_000 : 20_000;
      tell(
        `preparing: ${count.toLocaleString('en')} lists and ${sortedSets} sorted sets of ${entries} entries`,
      );
      const readers = await addAccounts(lab, 'reader', count);
      const authors = await addAccounts(lab, 'author', 10);
      await addFollows(lab, readers, authors);
      await settleTables(lab);
      const dayAgo = Date.now() - 86_400_000;
      const sides: Sides = {
        lab,
        lists,
        redis,
        authors: Array.from({ length: authors.count }, (_, index) => member(authors, index)),
        readers: Array.from({ length: count }, (_, index) => String(readers.first + index)),
        before: Array.from({ length: entries }, (_, index) => idAt(dayAgo - index * 1_000, index)),
      };
      await fill(sides);
      return report(await measure(sides, quick ? 3 : 7, tell), opened.durability);
    });
  } finally {
    await lists.stop();
    redis.disconnect();
    await server.stop();
  }
}

function report(measured: Measured, durability: string): Report {
  const sorted = median(measured.sorted);
  const [script, worker] = [median(measured.script), median(measured.worker)];
  const tenAuthors = median(measured.tenAuthors);
  const each = (times: readonly ServerTime[]) =>
    median(times.map(({ microsecondsEach }) => microsecondsEach));
  const [inOrder, late, anywhere] = [each(measured.inOrder), each(measured.late), each(measured.anywhere)];
  const callsOver = [...measured.late, ...measured.anywhere].reduce((sum, time) => sum + time.callsOver, 0);
  const figures: Record<string, Figure> = {
    'script alone: x sorted sets': script / sorted,
    'whole worker path: x sorted sets': worker / sorted,
    'whole worker path, ten authors: x sorted sets': tenAuthors / sorted,
    'script entries/s': Math.round(script),
    'late by ten: x in order': late / inOrder,
    'late by 400: x in order': anywhere / inOrder,
    'late calls over 5 ms': callsOver,
  };
  const misses: string[] = [];
  if (script / sorted < least.script)
    misses.push(`the script reaches ${(script / sorted).toFixed(1)} x of ${least.script} x`);
  if (worker / sorted < least.worker)
    misses.push(`the worker path ${(worker / sorted).toFixed(1)} x of ${least.worker} x`);
  if (tenAuthors / sorted < least.worker)
    misses.push(`with ten authors ${(tenAuthors / sorted).toFixed(1)} x of ${least.worker} x`);
  if (late / inOrder > lateMost)
    misses.push(`a late batch costs ${(late / inOrder).toFixed(1)} x one in order`);
  if (callsOver > 0) misses.push(`${callsOver} late calls took more than ${callMsMost} ms`);
  return {
    tables: [
      {
        columns: ['side', 'entries/s', 'x sorted sets'],
        rows: [
          ['pipelined ZADD + ZREMRANGEBYRANK, 4 in flight', Math.round(sorted), 1],
          ['the script, 1,000 lists a call, 4 in flight', Math.round(script), script / sorted],
          ['the whole worker path, 8 slots, posts of one author', Math.round(worker), worker / sorted],
          ['the same, posts of ten authors in turn', Math.round(tenAuthors), tenAuthors / sorted],
        ],
      },
      {
        columns: ['entries that arrive', 'microseconds of the server each', 'x in order'],
        rows: [
          ['in order', inOrder, 1],
          ['behind ten newer ones', late, late / inOrder],
          ['behind half of a timeline', anywhere, anywhere / inOrder],
        ],
      },
    ],
    figures,
    reference: {
      'to reach': `script ${least.script} x, worker path ${least.worker} x; late at most ${lateMost} x, no call over ${callMsMost} ms`,
      'sorted sets, pipelined': 'about 100,000/s (Redis 7.0)',
      'lists, one script for 1,000': '690,000-1,160,000/s (Redis 7.0)',
    },
    durability: `posts: ${durability}; timelines: Redis without persistence`,
    holds: misses.length === 0,
    verdict:
      misses.length === 0
        ? `the script reaches ${(script / sorted).toFixed(1)} x, the worker path ${(worker / sorted).toFixed(1)} x, with ten authors ${(tenAuthors / sorted).toFixed(1)} x, of pipelined sorted sets`
        : misses.join('; '),
  };
}

export const fanOutRedis: Experiment = {
  name: 'fan-out-redis',
  shows:
    'entries a second of a fan-out into lists in Redis, script and worker path, against pipelined sorted sets; late entries',
  run,
};
