/**
 * Random sequences of operations on the redis store and, beside it, on the memory store, which is the specification: every answer and
 * every view must be the same. A failure prints the seed and the shrunk sequence; REDIS_MODEL_SEED and REDIS_MODEL_RUNS replay and
 * lengthen.
 */
import { type Arbitrary, array, assert as assertProperty, asyncProperty, nat, tuple } from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createQueue, type LeasedMessage, type NewMessage, type Queue } from '../../src/queue/index.js';
import { createMemoryQueueStore } from '../../src/queue/memory/index.js';
import { createRedisQueueStore } from '../../src/queue/redis/index.js';
import { ManualClock } from '../../src/testing/manual-clock.js';
import { findRedisServer, type RedisServer, startRedisServer } from '../../src/testing/redis-server.js';

/** One operation: which, and numbers from which its arguments are made. */
type Step = readonly [operation: number, a: number, b: number, c: number];

const states = ['invisible', 'pending', 'running', 'completed', 'canceled', 'errored'] as const;
const ids = Array.from({ length: 10 }, (_, index) => `m${index}`);
const pick = <T>(list: readonly T[], number: number): T => list[number % list.length]!;
const where = (number: number): Record<string, string> =>
  pick<Record<string, string>>(
    [{}, {}, { user: 'u0' }, { user: 'u1' }, { kind: 'k0' }, { user: 'u0', kind: 'k1' }, { kind: 'none' }],
    number,
  );

function messageOf(a: number, b: number, c: number): NewMessage {
  return {
    id: pick(ids, a),
    payload: b % 5 === 0 ? { other: true } : {},
    metadata: c % 7 === 0 ? { kind: `k${c % 2}` } : { user: `u${b % 3}`, kind: `k${c % 2}` },
    ...(c % 3 === 0 ? { priority: (a % 5) - 2 } : {}),
    ...(b % 4 === 0 ? { delayMs: (c % 5) * 1_000 } : {}),
    ...(a % 3 === 0 ? { attemptsMax: 1 + (b % 2) } : {}),
    ...(c % 5 === 0 ? { leaseMs: 3_000 } : {}),
    ...(a % 4 === 1 ? { uniqueWhileLive: true } : {}),
    ...(b % 11 === 0 ? { trace: 'trace' } : {}),
  };
}

/** Says nothing beside its payload: alone it takes the shortest way. */
const plainOf = ({ id, payload, trace }: NewMessage): NewMessage => ({
  id,
  payload,
  ...(trace && { trace }),
});

/** The same steps on one queue; what is answered goes into `seen`. */
class Side {
  readonly queue: Queue;
  readonly #leases: LeasedMessage[] = [];

  constructor(queue: Queue) {
    this.queue = queue;
  }

  #lease(number: number) {
    if (this.#leases.length === 0) return { id: 'm0', leaseToken: 'none' };
    // Mostly a late one, at times an old one.
    const place = number % 3 === 0 ? number : this.#leases.length - 1 - (number % 4);
    return pick(this.#leases, Math.max(0, place));
  }

  async step([operation, a, b, c]: Step, clock: ManualClock): Promise<unknown> {
    const { queue } = this;
    const lease = this.#lease(a);
    const held = { id: lease.id, leaseToken: lease.leaseToken };
    switch (operation) {
      case 0:
        return queue.enqueue('q', [c % 3 ? plainOf(messageOf(a, b, c)) : messageOf(a, b, c)]);
      case 1:
        return queue.enqueue('q', [messageOf(a, b, c), messageOf(a + c, b + 1, c + 1)]);
      case 2:
      case 3:
      case 4: {
        const requestId = b % 6 === 0 ? `again${c % 2}` : `r${a}-${b}-${c}-${this.#leases.length}`;
        return this.#keep(
          await queue.dequeue('q', { count: Math.max(1, (a % 6) - 2), where: where(b), requestId }),
        );
      }
      case 5: {
        const first = { ...held, ...(b % 2 ? { result: { b } } : {}) };
        return queue.complete('q', c % 2 ? [first] : [first, this.#lease(c)]);
      }
      case 6:
        return queue.fail('q', [
          { ...held, error: `e${b}`, ...(b % 3 ? { retryDelayMs: (c % 3) * 1_000 } : {}) },
        ]);
      case 7:
        return queue.release('q', [{ ...held, delayMs: (b % 3) * 1_000, refund: c % 2 === 0 }]);
      case 8:
        return queue.extend('q', [{ ...held, ...(b % 2 ? { leaseMs: 1_000 * (1 + (c % 40)) } : {}) }]);
      case 9:
        return queue.cancel('q', [pick(ids, a), pick(ids, b)]);
      case 10:
        return queue.change('q', [
          {
            id: pick(ids, a),
            ...(b % 2 ? { priority: (c % 7) - 3 } : {}),
            ...(b % 3 ? {} : { visibleAt: clock.now() + ((c % 5) - 2) * 1_000 }),
            ...(c % 4 ? {} : { payload: { changed: b } }),
          },
        ]);
      case 11:
        return queue.requeue('q', [pick(ids, a), pick(ids, b)]);
      case 12:
        return c % 4 === 0
          ? queue.purge(
              'q',
              pick(
                states.filter((state) => state !== 'running'),
                a,
              ),
            )
          : undefined;
      case 13:
        return clock.now();
      case 14:
        return queue.configure('q', pick(changes, a));
      case 15:
        return queue.store.settleAndDequeue!({
          queue: 'q',
          complete: [{ ...held, result: undefined }],
          dequeue: {
            queue: 'q',
            count: 1 + (b % 3),
            where: where(c),
            leaseMs: undefined,
            requestId: `f${a}-${b}-${this.#leases.length}`,
            worker: undefined,
            now: clock.storeNow(),
          },
          now: clock.storeNow(),
        }).then(async ({ completed, messages }) => ({ completed, messages: this.#keep(messages) }));
      default:
        return this.#tidy(clock);
    }
  }

  #keep(leases: readonly LeasedMessage[]): unknown {
    this.#leases.push(...leases);
    return [...leases].sort((x, y) => (x.id < y.id ? -1 : 1));
  }

  async #tidy(clock: ManualClock): Promise<unknown> {
    for (;;) {
      const { moved, nextDueMs } = await this.queue.store.housekeep({ now: clock.storeNow() });
      if (moved === 0) return nextDueMs;
    }
  }

  async view(number: number): Promise<unknown> {
    const { queue } = this;
    const messages = await Promise.all(ids.map((id) => queue.get('q', id)));
    const listed = await Promise.all(
      states.map((state) => queue.list('q', { state, where: where(number), limit: 3 })),
    );
    return {
      messages,
      history: await queue.history('q', pick(ids, number)),
      listed: listed.map((page) => ({
        ids: page.messages.map(({ id }) => id),
        more: page.next !== undefined,
      })),
      depth: { ...(await queue.depth('q', where(number))), exact: true },
      oldest: await queue.oldest('q', where(number)),
    };
  }
}

const changes = [
  { retentionMs: { completed: 0, canceled: 0, errored: 0 } },
  { retentionMs: { completed: 5_000, canceled: 100_000, errored: 10_000 } },
  { rateLimit: { count: 3, perMs: 2_000 } },
  { rateLimit: undefined },
  { dequeueBlocked: true },
  { dequeueBlocked: false },
  { enqueueBlocked: true },
  { enqueueBlocked: false },
  { history: 'off' as const },
  { history: 'batch' as const },
  { delayMs: 1_000, leaseMs: 2_000, attemptsMax: 2 },
  { delayMs: 0, leaseMs: 30_000, attemptsMax: 3 },
];

/** Without what the two may choose freely: tokens, numbers of incarnations, error texts. */
const comparable = (answer: unknown): unknown =>
  JSON.parse(
    JSON.stringify(answer ?? null, (key, value: unknown) => {
      if (key === 'leaseToken' || key === 'incarnation') return undefined;
      if (value instanceof Error) return (value as { code?: string }).code;
      return value;
    }),
  );

const step: Arbitrary<Step> = tuple(nat(17), nat(59), nat(59), nat(59));
const sequence = array(step, { minLength: 20, maxLength: 80 });

describe.skipIf(!findRedisServer())('redis beside memory (needs redis-server on the PATH)', () => {
  let server: RedisServer | undefined;
  let runs = 0;
  beforeAll(async () => {
    server = await startRedisServer();
  });
  afterAll(() => server?.stop());

  async function play(steps: readonly Step[], isExclusive: boolean): Promise<void> {
    const clock = new ManualClock();
    const redis = createRedisQueueStore({ url: server!.url, prefix: `model:${++runs}`, durability: 'none' });
    const sides = [createMemoryQueueStore(), redis].map((store) => new Side(createQueue({ store, clock })));
    const [memory, other] = sides as [Side, Side];
    // Without a listener the store takes shorter ways.
    const listens = steps.length % 3 === 0;
    const events = sides.map(({ queue }) => {
      const seen: unknown[] = [];
      if (listens) queue.store.onEvents((some) => seen.push(...some));
      return seen;
    });
    try {
      if (isExclusive)
        for (const { queue } of sides)
          await queue.configure('q', { type: { kind: 'exclusive', key: 'user' } });
      for (const next of steps) {
        if (next[0] === 13) clock.advance((next[1] % 12) * 700 + (next[2] % 9 === 0 ? 40_000 : 0));
        const answers = { memory: await memory.step(next, clock), redis: await other.step(next, clock) };
        expect({ next, answer: comparable(answers.redis) }).toEqual({
          next,
          answer: comparable(answers.memory),
        });
        const views = { memory: await memory.view(next[3]), redis: await other.view(next[3]) };
        expect({ next, view: comparable(views.redis) }).toEqual({ next, view: comparable(views.memory) });
      }
      const sorted = (all: readonly unknown[]) =>
        all.map((event) => JSON.stringify(comparable(event))).sort();
      expect(sorted(events[1]!)).toEqual(sorted(events[0]!));
    } finally {
      await redis.stop();
    }
  }

  const parameters = {
    numRuns: Number(process.env['REDIS_MODEL_RUNS'] ?? 40),
    ...(process.env['REDIS_MODEL_SEED'] ? { seed: Number(process.env['REDIS_MODEL_SEED']) } : {}),
  };

  test.each([
    ['a simple queue', false],
    ['an exclusive queue', true],
  ])('%s answers like the memory store', async (_, isExclusive) => {
    const property = asyncProperty(sequence, (steps) => play(steps, isExclusive));
    await expect(assertProperty(property, parameters)).resolves.toBeUndefined();
  });
});
