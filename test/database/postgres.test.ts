import { afterEach, describe, expect, test } from 'vitest';
import { type Database, openPostgres } from '../../src/database/index.js';
import { startPostgresServer } from '../../src/testing/index.js';
import { startProxy } from '../../src/testing/proxy.js';
import { createRecordingLog } from './recording-log.js';
import { testServers } from './test-databases.js';

const opened: { close(): Promise<void> }[] = [];
const closedAfter = <D extends { close(): Promise<void> }>(database: D): D => {
  opened.push(database);
  return database;
};
afterEach(async () => {
  for (const database of opened.splice(0)) await database.close();
});

/** What a promise is rejected with; fulfilment is a failure. */
const rejectionOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => Promise.reject(new Error('was fulfilled')),
    (error: unknown) => error,
  );

const backendPid = async (database: Pick<Database, 'query'>): Promise<unknown> =>
  (await database.query('select pg_backend_pid() as pid')).rows[0]?.['pid'];

describe.each(testServers())('a server: $name', ({ open, url }) => {
  test.each([true, false])('statements are prepared: %s', async (preparedStatements) => {
    const database = closedAfter(await open({ preparedStatements, poolMax: 1 }));
    await database.query('select $1::int as prepared_or_not', [1]);
    await database.query('select $1::int as prepared_or_not', [2]);
    const { rows } = await database.query(
      "select statement from pg_prepared_statements where statement like '%prepared_or_not'",
    );
    expect(rows).toHaveLength(preparedStatements ? 1 : 0);
  });

  test('a prepared statement survives a change of its table', async () => {
    const database = closedAfter(await open({ poolMax: 1 }));
    await database.script('create table changed (a int); insert into changed values (1)');
    expect((await database.query('select * from changed')).rows).toEqual([{ a: 1 }]);
    await database.script('alter table changed add column b int');
    expect((await database.query('select * from changed')).rows).toEqual([{ a: 1, b: null }]);
    expect((await database.query('select * from changed')).rows).toEqual([{ a: 1, b: null }]);
  });

  test('an idle connection that the server ends is replaced, with a line in the log but not one for each', async () => {
    const log = createRecordingLog();
    const database = closedAfter(await open({ log, poolMax: 3 }));
    const other = closedAfter(await open({ poolMax: 1 }));
    const pids = await Promise.all(
      [1, 2, 3].map(() => database.query('select pg_backend_pid() as pid, pg_sleep(0.2)')),
    );
    await other.query('select pg_terminate_backend(pid) from unnest($1::int[]) as pid', [
      pids.map(({ rows }) => rows[0]?.['pid']),
    ]);
    await expect.poll(() => log.lines.length).toBeGreaterThan(0);
    await expect.poll(() => backendPid(database).catch(() => 'none')).toBeTypeOf('number');
    expect(log.lines.length).toBeLessThan(3);
  });

  test('a statement whose connection is cut is answered with database-unavailable', async () => {
    const database = closedAfter(await open({ poolMax: 1 }));
    const other = closedAfter(await open({ poolMax: 1 }));
    const pid = await backendPid(database);
    const cut = rejectionOf(database.query('select pg_sleep(600)'));
    await expect
      .poll(
        async () =>
          (await other.query('select 1 from pg_stat_activity where pid = $1 and state = $2', [pid, 'active']))
            .rowCount,
      )
      .toBe(1);
    await other.query('select pg_terminate_backend($1)', [pid]);
    expect(await cut).toMatchObject({ code: 'database-unavailable' });
    expect(await backendPid(database)).not.toBe(pid);
  });

  test('a transaction whose connection is cut fails and leaves nothing', async () => {
    const database = closedAfter(await open({ poolMax: 1 }));
    const other = closedAfter(await open({ poolMax: 1 }));
    await database.script('create table cut_off (a int)');
    const work = database.transaction(async (transaction) => {
      await transaction.query('insert into cut_off values (1)');
      await other.query('select pg_terminate_backend($1)', [await backendPid(transaction)]);
      await transaction.query('insert into cut_off values (2)');
    });
    await expect(work).rejects.toMatchObject({ code: 'database-unavailable' });
    expect((await database.query('select * from cut_off')).rowCount).toBe(0);
  });

  test('a statement on a connection that has gone silent ends by the bound, and the next one gets another connection', async () => {
    const target = new URL(await url());
    const proxy = await startProxy({ target: { host: target.hostname, port: Number(target.port) } });
    const database = closedAfter(
      await open({ connectionString: proxy.urlOf(await url()), queryTimeoutMs: 300, poolMax: 1 }),
    );
    await database.query('select 1');
    expect(proxy.goHalfOpen()).toBe(1);
    await expect(database.query('select 1')).rejects.toMatchObject({ code: 'database-unavailable' });
    await expect(database.query('select 1 as one')).resolves.toMatchObject({ rows: [{ one: 1 }] });
    await database.close();
    await proxy.stop();
  });

  test('close ends though the connection has gone silent in the middle of a statement', async () => {
    const target = new URL(await url());
    const proxy = await startProxy({ target: { host: target.hostname, port: Number(target.port) } });
    const database = await open({
      connectionString: proxy.urlOf(await url()),
      acquireTimeoutMs: 300,
      poolMax: 1,
    });
    await database.query('select 1');
    proxy.goHalfOpen();
    const silent = rejectionOf(database.query('select 1'));
    await database.close();
    expect(await silent).toMatchObject({ code: 'database-closed' });
    await proxy.stop();
  });

  test('what the server promises is told: fsync is off in tests', async () => {
    const database = closedAfter(await open());
    expect(await database.durability()).toMatchObject({ fsync: false, synchronousCommit: 'on' });
  });
});

test('nobody listening is database-unavailable', async () => {
  const database = closedAfter(
    await openPostgres({ connectionString: 'postgres://postgres@127.0.0.1:1/none' }),
  );
  await expect(database.query('select 1')).rejects.toMatchObject({
    code: 'database-unavailable',
    status: 503,
  });
});

test('a connection string that is none is refused without being shown', async () => {
  const opening = openPostgres({ connectionString: 'mysql://user:geheim@host/database' });
  await expect(opening).rejects.toMatchObject({ code: 'invalid-input', field: 'connectionString' });
  await expect(opening).rejects.not.toThrow(/geheim/);
});

test('a database object works on after its server was killed and started again', async () => {
  const server = await startPostgresServer();
  const database = closedAfter(await openPostgres({ connectionString: server.url }));
  await database.script('create table kept (a int); insert into kept values (1)');
  await server.kill();
  await expect(database.query('select 1')).rejects.toMatchObject({ code: 'database-unavailable' });
  await server.restart();
  expect((await database.query('select a from kept')).rows).toEqual([{ a: 1 }]);
  await database.close();
  await server.stop();
});
