/** The way from a database transaction to the redis store: all or nothing, in order, once, whatever is killed on the way. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Database } from '../../src/database/index.js';
import { createQueue, type Queue } from '../../src/queue/index.js';
import {
  createOutbox,
  createRelay,
  type Outbox,
  type Relay,
  type RelayOptions,
} from '../../src/queue/outbox/index.js';
import { createRedisQueueStore, type RedisQueueStore } from '../../src/queue/redis/index.js';
import { findRedisServer, type RedisServer, startRedisServer } from '../../src/testing/redis-server.js';
import { until } from '../../src/testing/until.js';
import { testDatabases } from '../database/test-databases.js';

let runs = 0;

describe.skipIf(!findRedisServer())('the outbox (needs redis-server on the PATH)', () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedisServer({ fsync: 'always' });
  });
  afterAll(() => server.stop());

  describe.each(testDatabases())('on $name', ({ hasSessions, open }) => {
    let database: Database;
    let schema: string;
    let outbox: Outbox;
    let store: RedisQueueStore;
    let queue: Queue;
    const relays: Relay[] = [];

    beforeAll(async () => {
      database = await open();
    });
    afterAll(() => database.close());

    beforeEach(async () => {
      schema = `outbox_${++runs}`;
      outbox = createOutbox({ database, schema });
      await outbox.start();
      store = createRedisQueueStore({ url: server.url, durability: 'strict', prefix: `o${runs}`, outbox });
      queue = createQueue({ store });
    });
    afterEach(async () => {
      await Promise.all(relays.splice(0).map((relay) => relay.stop()));
      await store.stop();
    });

    async function startRelay(options: Partial<RelayOptions> = {}): Promise<Relay> {
      const relay = createRelay({ database, store, schema, pollMs: 50, ...options });
      relays.push(relay);
      await relay.start();
      return relay;
    }

    const enqueue = (ids: readonly string[], more: object = {}) =>
      database.transaction((transaction) =>
        queue.enqueue(
          'q',
          ids.map((id) => ({ id, payload: { id }, priority: 1, ...more })),
          { transaction },
        ),
      );
    const isEmpty = async (): Promise<boolean> =>
      (await database.query(`select 1 from ${schema}.outbox_message limit 1`)).rowCount === 0;
    const takeAll = async (): Promise<string[]> =>
      (await queue.dequeue('q', { count: 1_000 })).map(({ id }) => id);

    test('what was enqueued in a transaction is there when it commits, and never was when it rolls back', async () => {
      await startRelay();
      expect(await enqueue(['a', 'b'])).toMatchObject([
        { id: 'a', created: true },
        { id: 'b', created: true },
      ]);
      const failing = database.transaction(async (transaction) => {
        await queue.enqueue('q', [{ id: 'never', payload: {} }], { transaction });
        throw new Error('no');
      });
      await expect(failing).rejects.toThrow('no');
      await enqueue(['c'], { payload: 'é\u0000"', metadata: { k: 'v' }, delayMs: 60_000 });
      await until(isEmpty);
      expect(await takeAll()).toEqual(['a', 'b']);
      expect(await queue.get('q', 'never')).toBeUndefined();
      expect(await queue.get('q', 'c')).toMatchObject({
        payload: 'é\u0000"',
        metadata: { k: 'v' },
        state: 'invisible',
      });
    });

    test('a message that the store refuses goes aside with its error, and stops nothing', async () => {
      await queue.configure('q', { type: { kind: 'exclusive', key: 'user' } });
      await enqueue(['a'], { metadata: { user: 'u' } });
      await enqueue(['bad']);
      await enqueue(['b'], { metadata: { user: 'v' } });
      await startRelay();
      await until(isEmpty);
      expect(await takeAll()).toEqual(['a', 'b']);
      const { rows } = await database.query(`select queue, error from ${schema}.outbox_refused`);
      expect(rows).toEqual([{ queue: 'q', error: expect.stringContaining('metadata.user') as string }]);
    });

    test('a paused queue and a queue that forgets too soon leave the messages where they are', async () => {
      const lines: string[] = [];
      const tell = (_: unknown, text: string): void => void lines.push(text);
      const isSaid = (part: string) => async () => lines.some((line) => line.includes(part));
      await queue.configure('q', { enqueueBlocked: true });
      await enqueue(['a', 'b']);
      const relay = await startRelay({ log: { debug: tell, info: tell, warn: tell, error: tell } });
      await until(isSaid('did not take them'));
      expect(await relay.lag()).toMatchObject([{ queue: 'q', waiting: 2 }]);
      await queue.configure('q', { retentionMs: { completed: 0, canceled: 0, errored: 0 } });
      await until(isSaid('forgets ids too soon'));
      await queue.configure('q', { enqueueBlocked: false });
      lines.length = 0;
      await until(isSaid('forgets ids too soon'));
      expect(await relay.lag()).toMatchObject([{ queue: 'q', waiting: 2 }]);
      await queue.configure('q', {
        retentionMs: { completed: 86_400_000, canceled: 86_400_000, errored: 86_400_000 },
      });
      await until(isEmpty);
      expect(await takeAll()).toEqual(['a', 'b']);
    });

    test('a relay that ended between moving and removing leaves nothing doubled, though it was completed meanwhile', async () => {
      let failures = 3;
      const losing = {
        configuration: (name: string) => store.configuration(name),
        enqueue: async (request: Parameters<RedisQueueStore['enqueue']>[0]) => {
          const outcomes = await store.enqueue(request);
          if (failures-- > 0) throw new Error('the reply was lost');
          return outcomes;
        },
      };
      await enqueue(['a', 'b', 'c']);
      await startRelay({ store: losing });
      await until(async () => (await queue.depth('q')).pending > 0);
      await queue.complete('q', await queue.dequeue('q', { count: 1 }));
      await until(isEmpty);
      expect(failures).toBeLessThan(0);
      expect(await takeAll()).toEqual(['b', 'c']);
      expect(await queue.get('q', 'a')).toMatchObject({ state: 'completed', version: 3 });
    });

    test.skipIf(!hasSessions)(
      'who begins after another’s commit comes later, with many writers and two relays (needs several sessions)',
      async () => {
        const order: string[][] = [];
        const writer = async (name: number): Promise<void> => {
          for (let round = 0; round < 25; round += 1) {
            const before = order.length;
            const id = `w${name}-${round}`;
            await enqueue([id]);
            // Committed now: whatever is begun from here on has all of `order` before it.
            order.push([
              id,
              ...order
                .slice(0, before)
                .slice(-5)
                .map(([earlier]) => earlier!),
            ]);
          }
        };
        await startRelay({ batchMax: 7 });
        await startRelay({ batchMax: 5 });
        await Promise.all([0, 1, 2, 3].map(writer));
        await until(isEmpty);
        const moved = await takeAll();
        expect(moved).toHaveLength(100);
        const places = new Map(moved.map((id, place) => [id, place]));
        const wrong = order.filter(([id, ...earlier]) =>
          earlier.some((one) => places.get(one)! > places.get(id!)!),
        );
        expect(wrong).toEqual([]);
      },
    );

    test.skipIf(!hasSessions)(
      'another relay takes over from one that has fallen silent (needs several sessions)',
      async () => {
        let isSilent = false;
        let release = (): void => {};
        const silent = {
          configuration: (name: string) => store.configuration(name),
          enqueue: async () => {
            isSilent = true;
            await new Promise<void>((resolve) => {
              release = resolve;
            });
            throw new Error('gone');
          },
        };
        await enqueue(['a']);
        const first = await startRelay({ store: silent, takeoverMs: 300 });
        await until(async () => isSilent);
        await startRelay({ takeoverMs: 300 });
        await until(isEmpty);
        expect(await takeAll()).toEqual(['a']);
        release();
        await first.stop();
      },
    );

    test('nothing is lost or doubled while Redis is killed and comes back', async () => {
      await startRelay({ batchMax: 10 });
      const ids = Array.from({ length: 300 }, (_, index) => `m${index}`);
      for (const [index, id] of ids.entries()) {
        await enqueue([id]);
        if (index === 100) await server.kill();
        if (index === 200) await server.restart();
      }
      await until(isEmpty);
      expect(await takeAll()).toEqual(ids);
    });
  });
});
