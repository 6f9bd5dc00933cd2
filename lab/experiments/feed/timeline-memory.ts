/**
 * Bytes that a timeline of 800 ids takes in Redis by encoding: sorted set as skiplist and as listpack, and list; by
 * MEMORY USAGE with all samples, with the five of its default, and by what the server itself grows.
 */
import type { Redis } from 'ioredis';
import { startRedisServer } from '../../../src/testing/redis-server.js';
import type { Experiment, ExperimentContext, Figure, Report } from '../../experiment.js';

const entries = 800;
const actives = 20_000_000;
/** A list is to take at most this share of a default sorted set on the same server. */
const shareMost = 1 / 9;

interface Encoding {
  readonly label: string;
  readonly listpackMax: number;
  /** As Redis names it. */
  readonly encoding: string;
  readonly fill: (redis: Redis, key: string, ids: readonly string[]) => Promise<unknown>;
}

const asSortedSet: Encoding['fill'] = (redis, key, ids) =>
  redis.zadd(key, ...ids.flatMap((id) => [Number(BigInt(id) >> 20n), id]));

const encodings: readonly Encoding[] = [
  { label: 'sorted set, as it comes', listpackMax: 128, encoding: 'skiplist', fill: asSortedSet },
  {
    label: 'sorted set, zset-max-listpack-entries 1,024',
    listpackMax: 1_024,
    encoding: 'listpack',
    fill: asSortedSet,
  },
  {
    label: 'list of ids with its floor',
    listpackMax: 128,
    encoding: 'quicklist',
    fill: (redis, key, ids) => redis.rpush(key, ...ids, 'f0'),
  },
];

interface Measured {
  readonly label: string;
  readonly encoding: string;
  readonly bytes: number;
  readonly sampled: number;
  readonly grown: number;
}

function idsOf(timeline: number): string[] {
  return Array.from({ length: entries }, (_, index) =>
    String(
      ((1_750_000_000_000n + BigInt(timeline * 7 + index * 400_000)) << 20n) +
        BigInt((index * 7_919) % 1_048_576),
    ),
  );
}

async function usedMemory(redis: Redis): Promise<number> {
  return Number(/used_memory:(\d+)/.exec(await redis.info('memory'))?.[1]);
}

async function measure(
  redis: Redis,
  { label, listpackMax, encoding, fill }: Encoding,
  timelines: number,
): Promise<Measured> {
  await redis.flushall('SYNC');
  await redis.config('SET', 'zset-max-listpack-entries', listpackMax);
  const before = await usedMemory(redis);
  for (let number = 0; number < timelines; number += 1)
    await fill(redis, `timeline:{${number % 64}}:${number}`, idsOf(number));
  const grown = ((await usedMemory(redis)) - before) / timelines;
  const key = 'timeline:{7}:7';
  const found = String(await redis.object('ENCODING', key));
  if (found !== encoding) throw new Error(`${label}: expected ${encoding}, got ${found}`);
  const bytes = Number(await redis.call('MEMORY', 'USAGE', key, 'SAMPLES', '0'));
  const sampled = Number(await redis.call('MEMORY', 'USAGE', key));
  return { label, encoding, bytes, sampled, grown };
}

async function run({ quick, tell }: ExperimentContext): Promise<Report> {
  const server = await startRedisServer();
  const redis = server.connect();
  try {
    const version = /redis_version:(\S+)/.exec(await redis.info('server'))?.[1] ?? 'unknown';
    const all: Measured[] = [];
    for (const encoding of encodings) {
      tell(encoding.label);
      all.push(await measure(redis, encoding, quick ? 300 : 5_000));
    }
    return report(all, version);
  } finally {
    redis.disconnect();
    await server.stop();
  }
}

function report(all: readonly Measured[], version: string): Report {
  const [skiplist, , list] = all as [Measured, Measured, Measured];
  const figures: Record<string, Figure> = { redis: version };
  for (const { label, bytes, sampled } of all) {
    figures[`${label}: bytes`] = bytes;
    figures[`${label}: bytes by default samples`] = sampled;
  }
  const share = skiplist.bytes / list.bytes;
  figures['default sorted set: x list'] = share;
  return {
    tables: [
      {
        columns: [
          `${entries} ids of 19 digits, Redis ${version}`,
          'encoding',
          'bytes',
          'by default samples',
          'server grew by',
          `GB of ${actives / 1e6} million`,
        ],
        rows: all.map((one) => [
          one.label,
          one.encoding,
          one.bytes,
          one.sampled,
          Math.round(one.grown),
          (one.bytes * actives) / 1e9,
        ]),
      },
    ],
    figures,
    reference: {
      'Redis 7.4.9':
        '84,048 skiplist (7.0.15: 96,432), 16,432 listpack, 79,392 by sampling; 1.7 TB, 330 GB for 20 million',
      'to reach': 'a list with its floor at most 1/9 of a default sorted set',
    },
    durability: 'none: Redis without persistence',
    holds: list.bytes <= skiplist.bytes * shareMost,
    verdict: `a list takes ${list.bytes.toLocaleString('en')} bytes, a default sorted set ${share.toFixed(1)} x as many`,
  };
}

export const timelineMemory: Experiment = {
  name: 'timeline-memory',
  shows: 'bytes of a timeline of 800 ids in Redis by encoding, and what sampling would say',
  run,
};
