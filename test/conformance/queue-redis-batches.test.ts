/**
 * What messages of one batch have in common is packed once by the redis store. So a batch in which much is alike and something is
 * not must leave every message with what is its own; it is compared with the memory store.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  createQueue,
  type LeasedMessage,
  type MessageEvent,
  type NewMessage,
  type Queue,
} from '../../src/queue/index.js';
import { createMemoryQueueStore } from '../../src/queue/memory/index.js';
import { createRedisQueueStore, type RedisQueueStore } from '../../src/queue/redis/index.js';
import { ManualClock } from '../../src/testing/manual-clock.js';
import { findRedisServer, type RedisServer, startRedisServer } from '../../src/testing/redis-server.js';

/** Runs of messages that are alike, and ones that differ in a single field, in turn. */
const messages: NewMessage[] = Array.from({ length: 60 }, (_, index) => ({
  id: `m${index}`,
  payload: { index },
  priority: index,
  ...(index % 7 === 3 && { attemptsMax: 9 }),
  ...(index % 11 === 5 && { leaseMs: 5_000 + index }),
  ...(index % 13 === 6 && { metadata: { kind: 'a' } }),
  ...(index % 17 === 8 && { uniqueWhileLive: true }),
}));

const withoutIncarnation = ({ incarnation: _, ...event }: MessageEvent) => event;
const withoutToken = ({ leaseToken: _, ...message }: LeasedMessage) => message;

describe.skipIf(!findRedisServer())('batches on the redis store (need redis-server on the PATH)', () => {
  let server: RedisServer;
  let store: RedisQueueStore;
  beforeAll(async () => {
    server = await startRedisServer();
    store = createRedisQueueStore({ url: server.url, durability: 'none' });
    await store.start();
  });
  afterAll(async () => {
    await store.stop();
    await server.stop();
  });

  /** Everything that a caller is told, and what is stored in the end. */
  async function tell(queue: Queue, name: string, clock: ManualClock): Promise<unknown[]> {
    const told: unknown[] = [];
    const enqueued = async (some: NewMessage[]) => void told.push(await queue.enqueue(name, some));
    await enqueued(messages.slice(0, 30));
    clock.advance(10);
    // Twice in one batch, and known before it.
    await enqueued([...messages.slice(25, 60), messages[40]!, { ...messages[41]!, payload: 'other' }]);
    const [early, ...others] = await queue.dequeue(name, { count: 20 });
    const failed = others.slice(0, 5).map((lease) => ({ ...lease, error: 'no', retryDelayMs: 0 }));
    told.push(await queue.fail(name, failed));
    clock.advance(10);
    // Two requests at once, some of whose messages have run before.
    const [first, second] = await Promise.all([
      queue.dequeue(name, { count: 10 }),
      queue.dequeue(name, { count: 100 }),
    ]);
    const leases = [...others.slice(5), ...first, ...second];
    told.push([early!, ...leases].map(withoutToken));
    clock.advance(10);
    const completions = leases.map(({ id, leaseToken }, index) => ({
      id,
      leaseToken: index % 9 === 4 ? leases[0]!.leaseToken : leaseToken,
      ...(index % 5 === 1 && { result: { index } }),
    }));
    told.push(await queue.complete(name, [...completions, completions[2]!, failed[0]!]));
    told.push(await queue.complete(name, completions));
    for (const { id = '' } of messages)
      told.push(await queue.get(name, id), (await queue.history(name, id)).map(withoutIncarnation));
    told.push(await queue.depth(name));
    return told;
  }

  test.each([
    ['kept', {}],
    ['not kept', { retentionMs: { completed: 0, canceled: 0, errored: 0 } }],
    ['without a history', { history: 'off' }],
  ] as const)('every message of a batch keeps what is its own (%s)', async (name, configuration) => {
    const told: unknown[][] = [];
    for (const each of [createMemoryQueueStore(), store]) {
      const clock = new ManualClock();
      const queue = createQueue({ store: each, clock });
      await queue.configure(name, configuration);
      told.push(await tell(queue, name, clock));
    }
    expect(told[1]).toEqual(told[0]);
  });

  test('a repeated request gives back nothing that has passed on to another', async () => {
    const queue = createQueue({ store, clock: new ManualClock() });
    await queue.enqueue('passed', [
      { id: 'a', payload: {}, priority: 1 },
      { id: 'b', payload: {}, priority: 2 },
    ]);
    const [a] = await queue.dequeue('passed', { count: 2, requestId: 'first' });
    await queue.release('passed', [a!]);
    const [again] = await queue.dequeue('passed', { count: 1, requestId: 'second' });
    expect(again).toMatchObject({ id: 'a' });
    const repeated = await queue.dequeue('passed', { count: 2, requestId: 'first' });
    expect(repeated.map(({ id }) => id)).toEqual(['b']);
  });

  test('the value that a completion frees is dequeueable in the same step', async () => {
    const clock = new ManualClock();
    const queue = createQueue({ store, clock });
    await queue.configure('freed', { type: { kind: 'exclusive', key: 'user' } });
    await queue.enqueue(
      'freed',
      ['a', 'b'].map((id) => ({ id, payload: {}, metadata: { user: 'u' } })),
    );
    const [a] = await queue.dequeue('freed');
    // What only runs is held as well.
    await queue.cancel('freed', ['b']);
    await expect(queue.configure('freed', { type: { kind: 'simple' } })).rejects.toMatchObject({
      code: 'configuration-fixed',
    });
    await queue.enqueue('freed', [{ id: 'c', payload: {}, metadata: { user: 'u' } }]);
    const now = clock.storeNow();
    const { messages: next } = await store.settleAndDequeue!({
      queue: 'freed',
      complete: [{ id: a!.id, leaseToken: a!.leaseToken, result: undefined }],
      dequeue: {
        queue: 'freed',
        count: 1,
        where: {},
        leaseMs: undefined,
        requestId: 'r',
        worker: undefined,
        now,
      },
      now,
    });
    expect(next).toMatchObject([{ id: 'c' }]);
  });
});
