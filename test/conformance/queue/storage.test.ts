/** What the tables hold after much has come and gone, and that they are what the committed description says. */
import { readFile, writeFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Database } from '../../../src/database/index.js';
import { seededRandom } from '../../../src/testing/queue-suite-harness.js';
import { testDatabases } from '../../database/test-databases.js';
import { describeSchema } from './describe-schema.js';
import { openQueue } from './open-store.js';

const live = process.env['HEADGATE_LONG'] === '1' ? 10_000 : 2_000;

describe.each(testDatabases())('tables on $name', ({ open }) => {
  let database: Database;
  beforeAll(async () => {
    database = await open();
  });
  afterAll(async () => {
    await database.close();
  });

  test('Q41: indexes of metadata hold nothing of values that are gone, and do not grow by them', async () => {
    const { queue, schema, store } = await openQueue(database);
    const one = async (sql: string): Promise<number> =>
      Number((await database.query<{ n: string }>(`select (${sql})::text as n`)).rows[0]!.n);
    const seed = Math.floor(Math.random() * 2 ** 31);
    const random = seededRandom(seed);
    const step = live / 10;
    const enqueue = () =>
      queue.enqueue(
        'q',
        Array.from({ length: step }, () => ({
          payload: 1,
          metadata: { user: `u${Math.floor(random() * 1e9)}` },
        })),
      );
    const sizeOf = () => one(`pg_relation_size('${schema}.pairs_pkey')`);
    for (let filled = 0; filled < live; filled += step) await enqueue();
    const fresh = await sizeOf();
    for (let replaced = 0; replaced < 10 * live; replaced += step) {
      await queue.complete('q', await queue.dequeue('q', { count: step }));
      // What autovacuum does by itself after some thousands of rows.
      for (const table of ['pairs', 'messages', 'depth_changes'])
        await database.query(`vacuum ${schema}.${table}`);
      await enqueue();
    }
    for (let round = 0; round < 100; round += 1) await store.housekeep({ now: undefined });
    expect([seed, await one(`select count(*) from ${schema}.pairs`)]).toEqual([seed, live]);
    expect(await one(`select count(*) from ${schema}.depth where pair <> '' and pending = 0`)).toBe(0);
    expect((await sizeOf()) / fresh).toBeLessThanOrEqual(1.5);
  });

  test('the depth of several pairs is counted in steps, and says when one was not enough', async () => {
    const { queue } = await openQueue(database);
    const fill = (count: number) =>
      queue.enqueue(
        'q',
        Array.from({ length: count }, (_, index) => ({
          payload: 1,
          metadata: { tenant: 't', parity: String(index % 2) },
          delayMs: index % 10 === 0 ? 3_600_000 : 0,
        })),
      );
    await fill(1_000);
    await queue.dequeue('q', { count: 100 });
    const where = { tenant: 't', parity: '0' };
    const { running } = await queue.depth('q', where);
    expect(running).toBe(44);
    expect(await queue.depth('q', where)).toMatchObject({
      invisible: 100,
      pending: 400 - running,
      exact: true,
    });
    for (let filled = 1_000; filled < 26_000; filled += 1_000) await fill(1_000);
    expect(await queue.depth('q', where)).toMatchObject({
      invisible: 26 * 100,
      pending: 26 * 400 - running,
      running,
      exact: false,
    });
  });

  test('an id whose message has been lost refuses its own enqueue after a few tries, and no other', async () => {
    const { queue, schema, store } = await openQueue(database);
    await queue.enqueue('q', [{ id: 'lost', payload: 1 }]);
    await database.query(`delete from ${schema}.messages`);
    const messages = ['before', 'lost', 'after'].map((id) => ({ id, payload: 1 }));
    const outcomes = await queue.enqueue('q', messages);
    expect(outcomes).toMatchObject([
      { kind: 'enqueued', id: 'before', created: true },
      { kind: 'refused', id: 'lost', error: { code: 'message-busy', ids: { queue: 'q', message: 'lost' } } },
      { kind: 'enqueued', id: 'after', created: true },
    ]);
    expect((await queue.dequeue('q', { count: 3 })).map(({ id }) => id)).toEqual(['before', 'after']);
    await store.stop();
  });

  test('the migrations make what docs/reference/queue-tables.md says', async () => {
    const { schema } = await openQueue(database);
    const file = new URL('../../../docs/reference/queue-tables.md', import.meta.url);
    const made = await describeSchema(database, schema);
    if (process.env['HEADGATE_DESCRIBE_SCHEMA'] === '1') await writeFile(file, made);
    expect(made).toBe(await readFile(file, 'utf8'));
  });
});
