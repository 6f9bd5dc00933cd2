/** What small calls at once and small calls one by one cost the database: statements sent, and plans made. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Database } from '../../../src/database/index.js';
import { createQueue } from '../../../src/queue/index.js';
import { createPostgresQueueStore } from '../../../src/queue/postgres/index.js';
import { testServers } from '../../database/test-databases.js';
import { openQueue } from './open-store.js';

describe.each(testServers())('calls at once on $name', ({ open }) => {
  let database: Database;
  beforeAll(async () => {
    database = await open();
  });
  afterAll(() => database.close());

  test('a hundred callers at once share a few statements', async () => {
    const { schema } = await openQueue(database);
    let statements = 0;
    const counted = new Proxy(database, {
      get(target, name: keyof Database) {
        const member: unknown = Reflect.get(target, name, target);
        if (typeof member !== 'function') return member;
        return (...parameters: unknown[]) => {
          // A wake-up tells other processes, now and then and by the clock: not what a call costs.
          if (name === 'query' && !String(parameters[0]).includes('pg_notify')) statements += 1;
          return member.apply(target, parameters) as unknown;
        };
      },
    });
    const queue = createQueue({ store: createPostgresQueueStore({ database: counted, schema }) });
    const sent = async <T>(work: () => Promise<T>): Promise<{ answer: T; statements: number }> => {
      statements = 0;
      const answer = await work();
      return { answer, statements };
    };
    const hundred = Array.from({ length: 100 }, (_, index) => index);
    // Two go at once, the others together.
    const most = 3;
    const enqueued = await sent(() =>
      Promise.all(hundred.map((index) => queue.enqueue('q', [{ payload: index }]))),
    );
    expect(enqueued.statements).toBeLessThanOrEqual(most);
    const dequeued = await sent(() => Promise.all(hundred.map(() => queue.dequeue('q'))));
    expect(dequeued.answer.flat()).toHaveLength(100);
    expect(dequeued.statements).toBeLessThanOrEqual(most);
    const completed = await sent(() =>
      Promise.all(dequeued.answer.map((messages) => queue.complete('q', messages))),
    );
    expect(completed.answer.flat().every(({ kind }) => kind === 'done')).toBe(true);
    expect(completed.statements).toBeLessThanOrEqual(most);
    await queue.stop();
  });

  test('no function is planned anew at each call', async () => {
    const { schema } = await openQueue(database);
    const { rows } = await database.query<{ name: string; settings: string | null }>(
      `select p.proname as name, array_to_string(p.proconfig, ' ') as settings from pg_proc p
       where p.pronamespace = $1::regnamespace and p.proname = any ('{enqueue,dequeue,complete,give_back,extend,lost}'::text[])`,
      [schema],
    );
    expect(rows.map(({ name }) => name).sort()).toEqual(
      ['complete', 'dequeue', 'enqueue', 'extend', 'give_back', 'lost'].sort(),
    );
    for (const { name, settings } of rows)
      expect([name, settings]).toEqual([name, expect.stringContaining('plan_cache_mode=force_generic_plan')]);
  });
});
