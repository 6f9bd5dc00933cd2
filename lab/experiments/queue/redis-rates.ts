/**
 * What the redis store itself reaches, without workers: messages a second in batches and one at a time, empty dequeues, and
 * memory a message; beside what a plain prototype without tokens, history and metadata reached.
 */
import { createRedisQueueStore, type RedisQueueStore } from '../../../src/queue/redis/index.js';
import type { MessageToStore } from '../../../src/queue/store.js';
import { startRedisServer } from '../../../src/testing/redis-server.js';
import type { Experiment, ExperimentContext, Figure, Report } from '../../experiment.js';

interface RedisQueueFigures {
  readonly enqueuedPerSecond: number;
  readonly bytesPerMessage: number;
  readonly bytesBeyondPayload: number;
  readonly batchedPerSecond: number;
  readonly onePerSecond: number;
  readonly emptyPerSecond: number;
}

const payload = JSON.stringify({ text: 'x'.repeat(144) });

const messageOf = (number: number): MessageToStore => ({
  id: `message-${String(number).padStart(12, '0')}`,
  payload,
  metadata: {},
  priority: undefined,
  delayMs: undefined,
  attemptsMax: undefined,
  leaseMs: undefined,
  uniqueWhileLive: false,
  trace: undefined,
});

async function perSecond(count: number, work: () => Promise<void>): Promise<number> {
  const beganMs = performance.now();
  await work();
  return Math.round((count * 1_000) / (performance.now() - beganMs));
}

/** `width` loops side by side, each calling `step` until it answers false. */
async function sideBySide(width: number, step: () => Promise<boolean>): Promise<void> {
  const loop = async (): Promise<void> => {
    while (await step());
  };
  await Promise.all(Array.from({ length: width }, loop));
}

async function enqueueAll(
  store: RedisQueueStore,
  queue: string,
  count: number,
  batch: number,
): Promise<void> {
  let next = 0;
  await sideBySide(4, async () => {
    const from = next;
    next += batch;
    if (from >= count) return false;
    const messages = Array.from({ length: Math.min(batch, count - from) }, (_, index) =>
      messageOf(from + index),
    );
    await store.enqueue({ queue, messages, now: undefined });
    return true;
  });
}

async function drain(store: RedisQueueStore, queue: string, batch: number, width: number): Promise<void> {
  let request = 0;
  await sideBySide(width, async () => {
    const leases = await store.dequeue({
      queue,
      count: batch,
      where: {},
      leaseMs: undefined,
      requestId: `r${++request}`,
      worker: undefined,
      now: undefined,
    });
    if (leases.length === 0) return false;
    await store.complete({
      queue,
      leases: leases.map(({ id, leaseToken }) => ({ id, leaseToken, result: undefined })),
      now: undefined,
    });
    return true;
  });
}

async function measure(fsync: 'none' | 'always', count: number): Promise<RedisQueueFigures> {
  const server = await startRedisServer({ fsync });
  const store = createRedisQueueStore({
    url: server.url,
    durability: fsync === 'always' ? 'strict' : 'none',
  });
  const client = server.connect();
  const usedMemory = async (): Promise<number> =>
    Number(/^used_memory:(\d+)/m.exec(await client.info('memory'))?.[1]);
  try {
    const before = await usedMemory();
    const enqueuedPerSecond = await perSecond(count, () => enqueueAll(store, 'q', count, 100));
    const bytesPerMessage = Math.round(((await usedMemory()) - before) / count);
    const batchedPerSecond = await perSecond(count, () => drain(store, 'q', 100, 4));
    await enqueueAll(store, 'one', count / 4, 100);
    const onePerSecond = await perSecond(count / 4, () => drain(store, 'one', 1, 64));
    let left = count;
    const emptyPerSecond = await perSecond(count, () =>
      sideBySide(64, async () => {
        await store.dequeue({
          queue: 'one',
          count: 1,
          where: {},
          leaseMs: undefined,
          requestId: `e${left}`,
          worker: undefined,
          now: undefined,
        });
        return --left > 0;
      }),
    );
    return {
      enqueuedPerSecond,
      bytesPerMessage,
      bytesBeyondPayload: bytesPerMessage - payload.length,
      batchedPerSecond,
      onePerSecond,
      emptyPerSecond,
    };
  } finally {
    client.disconnect();
    await store.stop();
    await server.stop();
  }
}

const prototype = {
  none: { enqueued: 202_000, batched: 167_000, one: 36_000 },
  always: { enqueued: 88_000, batched: 137_000, one: 26_000 },
} as const;
const bytesMost = 450;

async function run({ quick, tell }: ExperimentContext): Promise<Report> {
  const count = quick ? 60_000 : 200_000;
  const rows: Figure[][] = [];
  const figures: Record<string, Figure> = {};
  const shortfalls: string[] = [];
  let bytes = 0;
  for (const fsync of ['none', 'always'] as const) {
    const measured = await measure(fsync, count);
    const label = fsync === 'none' ? 'no AOF' : 'AOF always';
    const { enqueued, batched, one } = prototype[fsync];
    const lines: [string, number, number | null][] = [
      ['enqueue, batches of 100', measured.enqueuedPerSecond, enqueued],
      ['dequeue + complete, batches of 100', measured.batchedPerSecond, batched],
      ['dequeue + complete, one at a time, 64 side by side', measured.onePerSecond, one],
      ['empty dequeue, 64 side by side', measured.emptyPerSecond, null],
    ];
    for (const [what, perSecond, reached] of lines) {
      rows.push([`${label}: ${what}`, perSecond, reached, reached === null ? null : perSecond / reached]);
      figures[`${label}: ${what}`] = perSecond;
      if (reached !== null) shortfalls.push(`${(perSecond / reached).toFixed(2)} x`);
    }
    if (fsync === 'none') bytes = measured.bytesBeyondPayload;
    tell(`${label}: ${lines.map(([, perSecond]) => perSecond.toLocaleString('en')).join(', ')} a second`);
  }
  figures['bytes a message beyond its payload'] = bytes;
  return {
    tables: [{ columns: ['what', 'per second', 'prototype', 'x'], rows }],
    figures,
    reference: {
      'prototype, two cores, Redis 7.0':
        'no AOF 202,000 / 167,000 / 36,000; AOF always 88,000 / 137,000 / 26,000; 415 bytes with a body of 155',
      'bytes to reach': `under ${bytesMost} beyond the payload`,
    },
    durability: 'no AOF, then AOF always; Redis on this machine',
    holds: bytes < bytesMost,
    verdict: `${bytes} bytes a message beyond its payload; the rates are ${shortfalls.join(', ')} those of the prototype`,
  };
}

export const redisRates: Experiment = {
  name: 'redis-rates',
  shows: 'what the redis store reaches without workers, in batches and one at a time, and bytes a message',
  run,
};
