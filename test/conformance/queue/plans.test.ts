/**
 * The hot statements touch a bounded number of pages, however large the tables are, also where nothing was ever analyzed.
 * Pages are counted by EXPLAIN, which sees into the functions; unlike times they are the same on every machine.
 * `HEADGATE_LONG=1` runs ten times as many rows.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { Client } from 'pg';
import type { Database } from '../../../src/database/index.js';
import { createPostgresQueueStore } from '../../../src/queue/postgres/index.js';
import { testServers } from '../../database/test-databases.js';
import { ExplainedSession } from './explained-session.js';
import { type OpenedQueue, openQueue } from './open-store.js';

const scale = process.env['HEADGATE_LONG'] === '1' ? 10 : 1;
const many = 30_000 * scale;
/** Pages of one call: some tens, and what a session reads of the catalog when it calls a function for the first time. */
const once = 400;

describe.each(testServers())('pages touched on $name', ({ open, url }) => {
  let database: Database;
  let opened: OpenedQueue;
  let requests = 0;
  beforeAll(async () => {
    database = await open();
  });
  beforeEach(async () => {
    opened = await openQueue(database);
    // What the planner believes of these tables stays what it was when they were empty.
    for (const table of ['messages', 'ids', 'pairs', 'exclusive_values', 'value_changes', 'depth_changes']) {
      await database.script(
        `alter table ${opened.schema}.${table} set (autovacuum_enabled = off); analyze ${opened.schema}.${table}`,
      );
    }
  });
  afterAll(async () => {
    await database.close();
  });

  /** Enqueues `count` messages by statements of 5,000, each argument an SQL array made of the number `n`. */
  async function fill(
    queue: string,
    count: number,
    { metadata = 'null', delay = 'null', priority = 'null' } = {},
  ): Promise<void> {
    const prefix = `${queue}${(requests += 1)}`;
    for (let from = 0; from < count; from += 5_000) {
      await database.query(
        `select count(*) from (select
           array_agg('${prefix}-' || n) as ids, array_agg('{"n":1}'::text) as payloads, array_agg((${metadata})::text) as metadata,
           array_agg((${delay})::bigint) as delays, array_agg((${priority})::bigint) as priorities
           from generate_series($2::integer, $3::integer) n) a
         cross join lateral ${opened.schema}.enqueue($1, a.ids, a.payloads, a.metadata, a.priorities, a.delays, '{}', '{}', '{}', '{}', null, false, false, $4)`,
        [queue, from, Math.min(from + 5_000, count) - 1, opened.clock.storeNow()],
      );
    }
  }

  /** Pages that a call touches, in the shared buffers and in local ones. */
  async function pagesOf(call: string): Promise<number> {
    const { rows } = await database.query<{ 'QUERY PLAN': string }>(
      `explain (analyze, buffers, format json) select * from ${opened.schema}.${call}`,
    );
    const [{ Plan: plan }] = JSON.parse(rows[0]!['QUERY PLAN']) as [{ Plan: Record<string, number> }];
    return plan['Shared Hit Blocks']! + plan['Shared Read Blocks']!;
  }
  const dequeue = (queue: string, { count = 1, where = '{}' } = {}) =>
    `dequeue('${queue}', array[${count}], '${where}', array[3600000], array['r${(requests += 1)}'], array['nonce'], '{}', ${opened.clock.storeNow()})`;

  test('a dequeue of one among many, and one of a hundred', async () => {
    await fill('q', many);
    await pagesOf(dequeue('q'));
    expect(await pagesOf(dequeue('q'))).toBeLessThan(once);
    expect(await pagesOf(dequeue('q', { count: 100 }))).toBeLessThan(100 * 40);
  });

  test('Q45: an empty dequeue, and a dequeue of the only pending message, among future, running and terminal ones', async () => {
    await fill('q', many / 3);
    for (let taken = 0; taken < many / 3; taken += 1_000) {
      const messages = await opened.queue.dequeue('q', { count: 1_000, leaseMs: 3_600_000 });
      if (taken >= 3_000) await opened.queue.complete('q', messages);
    }
    await fill('q', many, { delay: '86400000' });
    await database.script(`vacuum ${opened.schema}.messages`);
    expect(await pagesOf(dequeue('q'))).toBeLessThan(once);
    await fill('q', 1);
    expect(await pagesOf(dequeue('q'))).toBeLessThan(once);
  });

  test('a completion among many', async () => {
    await fill('q', many);
    const messages = await opened.queue.dequeue('q', { count: 1_000, leaseMs: 3_600_000 });
    const [seq, lease] = [
      messages[500]!.leaseToken.split('.')[2],
      messages[500]!.leaseToken.split('.').slice(0, 2).join('.'),
    ];
    const call = `complete('q', array[${seq}], array['${lease}'], array['${messages[500]!.id}'], '{}', null)`;
    expect(await pagesOf(call)).toBeLessThan(once);
    expect(await opened.queue.complete('q', [messages[500]!])).toMatchObject([{ kind: 'done', version: 3 }]);
  });

  test('Q40: a filter with few matches behind many others', async () => {
    await fill('q', many, { metadata: `'{"region":"eu","kind":"a"}'` });
    await fill('q', 3, { metadata: `'{"region":"us","kind":"a"}'` });
    const where = '{"region":"us","kind":"a"}';
    // The first call reads the catalogue to make its plans.
    await pagesOf(dequeue('q', { where }));
    expect(await pagesOf(dequeue('q', { where }))).toBeLessThan(once);
    expect(await pagesOf(dequeue('q', { where: '{"region":"xx"}' }))).toBeLessThan(once);
    expect(await pagesOf(dequeue('q', { where: '{"kind":"a"}' }))).toBeLessThan(800);
  });

  test('Q33: an exclusive queue with many blocked messages in front touches no more than one with none', async () => {
    const pages: number[] = [];
    for (const blocked of [0, many]) {
      const queue = `q${blocked}`;
      await opened.queue.configure(queue, { type: { kind: 'exclusive', key: 'user' } });
      await opened.queue.enqueue(queue, [
        { id: 'runs', payload: 1, metadata: { user: 'busy' }, priority: 0 },
      ]);
      expect(await opened.queue.dequeue(queue, { leaseMs: 3_600_000 })).toHaveLength(1);
      await fill(queue, blocked, { metadata: `'{"user":"busy"}'`, priority: '1' });
      await fill(queue, 36, { metadata: `'{"user":"free' || n || '"}'`, priority: '2' });
      await pagesOf(dequeue(queue));
      pages.push(await pagesOf(dequeue(queue, { count: 10 })));
      expect(await opened.queue.dequeue(queue, { count: 100 })).toHaveLength(25);
    }
    expect(pages[1]!).toBeLessThan(pages[0]! * 1.2 + 100);
  });

  test('a batch by ids looks for each message once, also where nothing was ever analyzed', async () => {
    const session = await ExplainedSession.open(await url());
    const store = createPostgresQueueStore({ database: session, schema: opened.schema });
    const [count, now] = [500, opened.clock.storeNow()];
    const ids = Array.from({ length: count }, (_, index) => `m${index}`);
    await opened.queue.enqueue(
      'q',
      ids.map((id) => ({ id, payload: 1, attemptsMax: 1 })),
    );
    const leases = await opened.queue.dequeue('q', { count });
    const inVain = async (work: () => Promise<readonly { readonly kind: string }[]>, kind: string) => {
      const statements = await session.explain(async () => {
        expect(new Set((await work()).map((outcome) => outcome.kind))).toEqual(new Set([kind]));
      });
      return Math.max(...statements.map(({ comparedInVain }) => comparedInVain));
    };
    const failed = leases.map(({ id, leaseToken }) => ({
      id,
      leaseToken,
      error: 'x',
      retryDelayMs: undefined,
    }));
    expect(await inVain(() => store.fail({ queue: 'q', leases: failed, now }), 'done')).toBeLessThan(
      10 * count,
    );
    expect(await inVain(() => store.requeue({ queue: 'q', ids, now }), 'requeued')).toBeLessThan(10 * count);
    expect(await inVain(() => store.cancel({ queue: 'q', ids, now }), 'canceled')).toBeLessThan(10 * count);
    await session.close();
  });

  test('depth of everything and of one pair, with many changes folded', async () => {
    await fill('q', many, { metadata: `'{"tenant":"t' || n % 100 || '"}'` });
    for (let step = 0; step < 10; step += 1) await opened.store.housekeep({ now: opened.clock.storeNow() });
    await database.script(`vacuum ${opened.schema}.depth_changes`);
    expect(await pagesOf(`depth_of('q', '{"tenant":"t5"}', null)`)).toBeLessThan(once);
    expect(await opened.queue.depth('q', { tenant: 't5' })).toMatchObject({ pending: many / 100 });
    expect(await opened.queue.depth('q')).toMatchObject({ pending: many });
  });

  test('Q57: entries that an old transaction keeps from vacuum are walked once, then passed by', async () => {
    const old = new Client({ connectionString: await url() });
    await old.connect();
    await old.query('begin isolation level repeatable read');
    await old.query('select 1 from pg_class limit 1');
    await fill('q', many);
    for (let taken = 0; taken < many; taken += 1_000) {
      await opened.queue.complete('q', await opened.queue.dequeue('q', { count: 1_000 }));
    }
    await fill('q', 10);
    opened.clock.advance(2_000);
    const without = await pagesOf(dequeue('q'));
    expect(without).toBeGreaterThan(many / 40);
    const withMark = await pagesOf(dequeue('q'));
    expect(withMark).toBeLessThan(once);
    // What becomes pending below the mark is seen at once: a more urgent message, and one that comes back.
    await opened.queue.enqueue('q', [{ id: 'urgent', payload: 1, priority: 1 }]);
    const [urgent] = await opened.queue.dequeue('q');
    expect(urgent?.id).toBe('urgent');
    await opened.queue.release('q', [urgent!]);
    expect((await opened.queue.dequeue('q')).map(({ id }) => id)).toEqual(['urgent']);
    await old.end();
  });
});
