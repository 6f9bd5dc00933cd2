/** Faults that users of comparable queues have reported, as far as they concern Postgres alone; ids are those of the cases. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Database } from '../../../src/database/index.js';
import { createQueue } from '../../../src/queue/index.js';
import { createPostgresQueueStore } from '../../../src/queue/postgres/index.js';
import { idsOf } from '../../../src/testing/queue-suite-harness.js';
import { testDatabases } from '../../database/test-databases.js';
import { type OpenedQueue, openQueue } from './open-store.js';

const scale = process.env['HEADGATE_LONG'] === '1' ? 10 : 1;
const day = 86_400_000;

describe.each(testDatabases())('cases on $name', ({ open }) => {
  let database: Database;
  let opened: OpenedQueue;
  beforeAll(async () => {
    database = await open();
  });
  beforeEach(async () => {
    opened = await openQueue(database);
  });
  afterAll(async () => {
    await database.close();
  });

  const countOf = async (table: string): Promise<number> => {
    const { rows } = await database.query<{ n: string }>(
      `select count(*) as n from ${opened.schema}.${table}`,
    );
    return Number(rows[0]!.n);
  };
  const housekeep = () => opened.store.housekeep({ now: opened.clock.storeNow() });
  const maintain = () => database.query(`select ${opened.schema}.maintain($1)`, [opened.clock.storeNow()]);
  const drain = async (queue = 'q') => {
    for (;;) {
      const messages = await opened.queue.dequeue(queue, { count: 1_000 });
      if (messages.length === 0) return;
      await opened.queue.complete(queue, messages);
    }
  };

  test('Q37: nothing of a value is left when its messages have ended, nor of a pair', async () => {
    const { queue } = opened;
    await queue.configure('q', { type: { kind: 'exclusive', key: 'user' } });
    for (let step = 0; step < 2 * scale; step += 1) {
      await queue.enqueue(
        'q',
        idsOf(1_000, `s${step}-`).map((id) => ({ id, payload: 1, metadata: { user: id, kind: 'k' } })),
      );
    }
    await drain();
    await housekeep();
    await queue.dequeue('q');
    for (const table of ['messages', 'exclusive_values', 'value_changes', 'pairs'])
      expect(await countOf(table)).toBe(0);
    for (let step = 0; step < 10 * scale; step += 1) await housekeep();
    expect(await countOf('depth_changes')).toBe(0);
    expect(await countOf('depth')).toBeLessThanOrEqual(1);
  });

  test('Q42: many leases that end in the same millisecond all come back', async () => {
    const { queue, clock } = opened;
    const steps = 2 * scale;
    for (let step = 0; step < steps; step += 1)
      await queue.enqueue(
        'q',
        idsOf(1_000, `s${step}-`).map((id) => ({ id, payload: 1 })),
      );
    for (let step = 0; step < steps; step += 1)
      expect(await queue.dequeue('q', { count: 1_000, leaseMs: 1_000 })).toHaveLength(1_000);
    clock.advance(1_000);
    expect(await queue.dequeue('q')).toMatchObject([{ id: 's0-0', attempts: 2 }]);
    for (let step = 0; step < steps; step += 1) await housekeep();
    expect(await queue.depth('q')).toMatchObject({ pending: 1_000 * steps - 1, running: 1 });
  });

  test.each([2 ** 31 - 2, 2 ** 32 - 2, Number.MAX_SAFE_INTEGER - 3])(
    'Q50: everything works when the sequence stands at %i',
    async (start) => {
      const { queue, schema } = opened;
      await database.script(`alter sequence ${schema}.seq restart with ${start}`);
      await queue.enqueue(
        'q',
        idsOf(5).map((id) => ({ id, payload: 1, priority: 1 })),
      );
      await database.query(`update ${schema}.messages set version = $1 where id = 'm0'`, [2 ** 31 - 2]);
      const messages = await queue.dequeue('q', { count: 3 });
      expect(messages.map(({ id, version }) => [id, version])).toEqual([
        ['m0', 2 ** 31 - 1],
        ['m1', 2],
        ['m2', 2],
      ]);
      expect(await queue.complete('q', messages)).toMatchObject([
        { kind: 'done', version: 2 ** 31 },
        { version: 3 },
        { version: 3 },
      ]);
      const first = await queue.list('q', { state: 'pending', limit: 1 });
      const second = await queue.list('q', { state: 'pending', limit: 1, after: first.next });
      expect([...first.messages, ...second.messages].map(({ id }) => id)).toEqual(['m3', 'm4']);
      expect(second.next).toBeUndefined();
      expect(await queue.history('q', 'm1')).toHaveLength(3);
    },
  );

  test('terminal messages and events lie in partitions of a day, which are dropped whole, ids and all', async () => {
    const { queue, clock, schema } = opened;
    const partitions = async () => {
      const { rows } = await database.query<{ name: string }>(
        `select c.relname as name from pg_class c where c.relnamespace = $1::regnamespace and c.relkind = 'r' and c.relname ~ '_day_' order by 1`,
        [schema],
      );
      return rows.map(({ name }) => name);
    };
    await queue.configure('q', { retentionMs: { completed: day, canceled: day, errored: 2 * day } });
    await maintain();
    clock.advance(day);
    await queue.enqueue(
      'q',
      idsOf(500).map((id) => ({ id, payload: 1 })),
    );
    const again = [{ id: 'again', payload: 1, uniqueWhileLive: true }];
    await queue.enqueue('q', again);
    await queue.enqueue('q', [{ id: 'failed', payload: 1, priority: 0 }]);
    await queue.fail('q', [{ ...(await queue.dequeue('q'))[0]!, error: 'x' }]);
    await drain();
    await queue.enqueue('q', again);
    expect(await countOf('finished_default')).toBe(0);
    expect(await countOf('events_default')).toBe(0);
    const today = Math.floor(clock.now() / day);
    expect(await partitions()).toContain(`finished_day_${today + 1}`);
    expect(await queue.get('q', 'm7')).toMatchObject({ state: 'completed' });

    clock.advance(2 * day);
    await maintain();
    expect(await partitions()).not.toContain(`finished_day_${today + 1}`);
    // What failed is kept for longer, and its history with it; the id that was free at once is known anew.
    expect(await countOf('ids')).toBe(2);
    expect(await queue.enqueue('q', again)).toMatchObject([{ created: false, state: 'pending' }]);
    expect(await queue.get('q', 'failed')).toMatchObject({ state: 'errored' });
    expect(await queue.history('q', 'failed')).toHaveLength(3);
    expect(await queue.get('q', 'm7')).toBeUndefined();
    expect(await queue.enqueue('q', [{ id: 'm7', payload: 2 }])).toMatchObject([{ created: true }]);
    clock.advance(4 * day);
    await maintain();
    expect(await partitions()).not.toContain(`events_day_${today}`);
  });

  test('tokens of messages without retention are emptied by the minute, not before their time', async () => {
    const { queue, clock } = opened;
    await queue.configure('q', { retentionMs: { completed: 0, canceled: 0, errored: 0 } });
    await queue.enqueue(
      'q',
      idsOf(10).map((id) => ({ id, payload: 1 })),
    );
    const messages = await queue.dequeue('q', { count: 10 });
    const answer = await queue.complete('q', messages);
    for (const step of [0, 20_000, 39_999]) {
      clock.advance(step);
      await maintain();
      expect(await queue.complete('q', messages)).toEqual(answer);
    }
    clock.advance(60_001);
    await maintain();
    clock.advance(60_000);
    await maintain();
    expect(await countOf('departed')).toBe(0);
    expect(await countOf('ids')).toBe(0);
    expect(await queue.complete('q', [messages[0]!])).toEqual([{ kind: 'lease-lost', id: 'm0' }]);
  });

  test('a queue configured by one is configured for all, and refuses a type change beside waiting messages', async () => {
    const { queue, store } = opened;
    await queue.enqueue('q', [{ id: 'm', payload: 1 }]);
    await expect(store.configure('q', { type: { kind: 'exclusive', key: 'k' } })).rejects.toMatchObject({
      code: 'configuration-fixed',
    });
    expect(await queue.configure('q', { attemptsMax: 9, rateLimit: { count: 1, perMs: 10 } })).toEqual(
      await store.configuration('q'),
    );
  });

  test('an idle process that waits sends fewer than five commands a second', async () => {
    let commands = 0;
    const counted = new Proxy(database, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name);
        if (typeof value !== 'function') return value;
        return (...values: unknown[]) => {
          if (name === 'query' || name === 'transaction') commands += 1;
          return (value as (...values: unknown[]) => unknown).apply(target, values);
        };
      },
    });
    const queue = createQueue({
      store: createPostgresQueueStore({ database: counted, schema: opened.schema }),
    });
    await queue.start();
    await queue.dequeue('q', { waitMs: 1_000 });
    commands = 0;
    const beganMs = performance.now();
    await Promise.all(idsOf(20).map((_, n) => queue.dequeue(`q${n % 5}`, { waitMs: 3_000 })));
    const seconds = (performance.now() - beganMs) / 1_000;
    await queue.stop();
    // Each of the 20 looks once when it comes and once before it goes.
    expect((commands - 40) / seconds).toBeLessThan(5);
  });
});
