/**
 * Every operation reads a bounded number of rows and pages on a queue with 7 million ended, 1 million future and 3 million
 * waiting messages, in each statement that it and its functions run, with generic plans and with custom ones.
 * `HEADGATE_LONG=1` has these numbers of messages (some minutes to fill); otherwise a hundredth, under the same bounds.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Database } from '../../../src/database/index.js';
import type { QueueStore } from '../../../src/queue/index.js';
import { createPostgresQueueStore } from '../../../src/queue/postgres/index.js';
import { testServers } from '../../database/test-databases.js';
import { ExplainedSession, type Statement } from './explained-session.js';
import { fillLargeTables, forgetWaiting } from './large-tables.js';
import { type LargeQueue, operations } from './large-operations.js';
import { openQueue } from './open-store.js';

const isLong = process.env['HEADGATE_LONG'] === '1';
const scale = isLong ? 100 : 1;
const size = {
  terminal: 70_000 * scale,
  future: 10_000 * scale,
  waiting: 30_000 * scale,
  blocked: 3_000 * scale,
  idleValues: 1_000 * scale,
};
const tables: LargeQueue = {
  ended: 1,
  errored: 1,
  canceled: 101,
  completed: 201,
  future: size.terminal + 1,
  waiting: size.terminal + size.future + 1,
  last: size.terminal + size.future + size.waiting,
  idle: size.terminal + size.future + size.waiting + size.blocked + 2,
};

/** Functions without these settings: they read no large table, or are called by functions that have them. */
const withoutSettings = [
  'allowance',
  'beside_moves',
  'drop_partitions',
  'empty_tokens',
  'enqueue_fresh',
  'fold_depth',
  'maintain',
  'make_partition',
  'now_ms',
  'pair_of',
  'partition_days',
  'pick_exclusive',
  'record',
  'refresh_mark',
  'sweep_due',
  'unindex',
];

const modes = ['force_generic_plan', 'force_custom_plan', ...(isLong ? (['auto'] as const) : [])] as const;
/** The functions keep to generic plans by themselves: only what is a plain statement can have others. */
const isPlainStatement = (name: string) => /^(get|history|configur)/.test(name);
const cases = modes.flatMap((mode) =>
  operations
    .filter(([name]) => isLong || mode === 'force_generic_plan' || isPlainStatement(name))
    .map(([name, bounds, prepare]) => [name, mode, bounds, prepare] as const),
);

function report(name: string, statements: readonly Statement[]): void {
  if (!isLong) return;
  const rows = statements.map((statement) => statement.rows);
  const pages = Math.max(...statements.map((statement) => statement.pages));
  const total = rows.reduce((sum, some) => sum + some, 0);
  process.stdout.write(`${name}: ${total} rows, ${Math.max(...rows)} in one statement, ${pages} pages\n`);
}

describe.each(testServers())('plans among millions on $name', ({ open, url }) => {
  let database: Database;
  let schema: string;
  let session: ExplainedSession;
  let store: QueueStore;

  beforeAll(async () => {
    database = await open({ poolMax: 2, queryTimeoutMs: 600_000 });
    ({ schema } = await openQueue(database));
    await fillLargeTables({ database, schema }, size);
  }, 900_000);
  afterAll(async () => {
    await database.close();
  });

  const stages = [
    ['as they are now', async () => {}],
    ['as they were when nothing waited', async () => forgetWaiting(database, schema)],
  ] as const;
  describe.each(stages)('statistics %s', (_, begin) => {
    beforeAll(async () => {
      await begin();
      session = await ExplainedSession.open(await url());
      store = createPostgresQueueStore({ database: session, schema });
    });
    afterAll(async () => {
      await session.close();
    });

    test.each(cases)('%s, plan_cache_mode %s', async (name, mode, bounds, prepare) => {
      await session.script(`set plan_cache_mode = ${mode}`);
      let statements: Statement[] = [];
      // The sixth execution of a prepared statement is the first that may have a generic plan.
      for (let n = 0; n < (mode === 'auto' ? 7 : 2); n += 1) {
        const run = await prepare(store, tables);
        statements = await session.explain(run);
      }
      report(`${name} (${mode})`, statements);
      expect(statements.length).toBeGreaterThan(0);
      const isOver = ({ rows, pages }: Statement) => rows > bounds.rows || pages > bounds.pages;
      const over = statements
        .filter(isOver)
        .map(({ scans, ...rest }) => [rest, scans.map(({ text }) => text)]);
      expect(over).toEqual([]);
    });
  });

  test('a day whose retention has passed is expired in steps of some pages', async () => {
    const session = await ExplainedSession.open(await url());
    const later = Date.now() + 2 * 86_400_000;
    const statements = await session.explain(() => session.query(`select ${schema}.maintain($1)`, [later]));
    const steps = statements.filter(({ text }) => text.startsWith('delete from') && text.includes('.ids'));
    report('expiry of a day', statements);
    expect(steps.length).toBeGreaterThan(3);
    // A hundred pages of ended messages, some tens each, and their ids twice.
    expect(steps.filter(({ rows }) => rows > 3 * 100 * 60)).toEqual([]);
    expect(steps.some(({ rows }) => rows > 100)).toBe(true);
    await session.close();
  });

  test('each function that reads the tables keeps generic plans and is kept from scanning them', async () => {
    const { rows } = await database.query<{ name: string; settings: string[] | null }>(
      'select proname as name, proconfig as settings from pg_proc where pronamespace = $1::regnamespace',
      [schema],
    );
    expect(rows.length).toBeGreaterThan(30);
    const others = rows.filter(({ settings }) => !settings?.includes('enable_seqscan=off'));
    expect(others.map(({ name }) => name).sort()).toEqual(withoutSettings);
  });
});
