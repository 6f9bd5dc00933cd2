import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Database, Transaction } from '../../src/database/index.js';
import { createRecordingLog } from './recording-log.js';
import { testDatabases } from './test-databases.js';

/** A promise and what settles it. */
function createGate() {
  let open = (): void => {};
  const passed = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { passed, open };
}

/** What a promise is rejected with; fulfilment is a failure. */
const rejectionOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => Promise.reject(new Error('was fulfilled')),
    (error: unknown) => error,
  );

describe.each(testDatabases())('transactions on $name', ({ open }) => {
  const log = createRecordingLog();
  let database: Database;
  beforeAll(async () => {
    database = await open({ log, poolMax: 2 });
    await database.script(`
      create table account (id int primary key, balance int not null check (balance >= 0));
      create table deferred (id int primary key, account int references account deferrable initially deferred)`);
  });
  afterAll(() => database.close());
  beforeEach(() => database.script('truncate account cascade; insert into account values (1, 10), (2, 0)'));

  const balances = async (): Promise<unknown[]> =>
    (await database.query('select balance from account order by id')).rows.map((row) => row['balance']);

  test('what the work did is there once it resolved', async () => {
    const answer = await database.transaction(async (transaction) => {
      await transaction.query('update account set balance = balance - 3 where id = 1');
      await transaction.query('update account set balance = balance + 3 where id = 2');
      return 'moved';
    });
    expect(answer).toBe('moved');
    expect(await balances()).toEqual([7, 3]);
  });

  test('nothing of what the work did is there when it throws, and the caller gets its error', async () => {
    const error = new Error('changed my mind');
    const work = database.transaction(async (transaction) => {
      await transaction.query('update account set balance = 99');
      throw error;
    });
    await expect(work).rejects.toBe(error);
    expect(await balances()).toEqual([10, 0]);
  });

  test('a failed statement rolls everything back and the database works on', async () => {
    const work = database.transaction(async (transaction) => {
      await transaction.query('update account set balance = 5 where id = 2');
      await transaction.query('update account set balance = -1 where id = 1');
    });
    await expect(work).rejects.toMatchObject({ name: 'SqlError', code: '23514' });
    expect(await balances()).toEqual([10, 0]);
  });

  test('a transaction whose failed statement was ignored is not reported as committed', async () => {
    const work = database.transaction(async (transaction) => {
      await transaction.query('update account set balance = 5 where id = 2');
      await transaction.query('update account set balance = -1 where id = 1').catch(() => {});
    });
    await expect(work).rejects.toMatchObject({ name: 'SqlError', code: '25P02' });
    expect(await balances()).toEqual([10, 0]);
  });

  test('a commit that Postgres refuses throws its reason and the database works on', async () => {
    const work = database.transaction((transaction) =>
      transaction.query('insert into deferred values (1, 99)'),
    );
    await expect(work).rejects.toMatchObject({ name: 'SqlError', code: '23503' });
    expect((await database.query('select * from deferred')).rowCount).toBe(0);
  });

  test.each(['read committed', 'repeatable read', 'serializable'] as const)(
    'isolation %s is what Postgres runs',
    async (isolation) => {
      const rows = await database.transaction(
        async (transaction) =>
          (await transaction.query("select current_setting('transaction_isolation') as isolation")).rows,
        { isolation },
      );
      expect(rows).toEqual([{ isolation }]);
    },
  );

  test.each([
    ['query', () => database.query('select 1')],
    ['script', () => database.script('select 1')],
    ['transaction', () => database.transaction(async () => 1)],
    ['listen', () => database.listen('channel', () => {})],
  ])('%s on the database inside a transaction is refused at once', async (_, call) => {
    await database.transaction(async (transaction) => {
      await expect(call()).rejects.toMatchObject({ code: 'transaction-misuse' });
      await expect(nextTurn().then((): Promise<unknown> => call())).rejects.toMatchObject({
        code: 'transaction-misuse',
      });
      await transaction.query('update account set balance = 4 where id = 2');
    });
    expect(await balances()).toEqual([10, 4]);
  });

  test('a call outside waits for nothing but a connection while a transaction is open elsewhere', async () => {
    const gate = createGate();
    const work = database.transaction(() => gate.passed);
    const outside = database.query('select 1 as one');
    gate.open();
    await work;
    expect((await outside).rows).toEqual([{ one: 1 }]);
  });

  test('what was begun inside a transaction may use the database once that has ended', async () => {
    const gate = createGate();
    let later: Promise<unknown> = Promise.resolve();
    await database.transaction(async () => {
      later = gate.passed.then(() => database.query('select 1 as one'));
    });
    gate.open();
    await expect(later).resolves.toMatchObject({ rows: [{ one: 1 }] });
  });

  test('a handle is refused after its transaction has committed or rolled back', async () => {
    let kept: Transaction | undefined;
    await database.transaction(async (transaction) => {
      kept = transaction;
    });
    await expect(kept?.query('select 1')).rejects.toMatchObject({ code: 'transaction-misuse' });
    await expect(kept?.script('select 1')).rejects.toMatchObject({ code: 'transaction-misuse' });
    await database
      .transaction(async (transaction) => {
        kept = transaction;
        throw new Error('roll back');
      })
      .catch(() => {});
    await expect(kept?.query('select 1')).rejects.toMatchObject({ code: 'transaction-misuse' });
  });

  test('a BEGIN by hand is rolled back and refused', async () => {
    await expect(database.query('begin')).rejects.toMatchObject({ code: 'transaction-misuse' });
    await expect(database.script('begin; update account set balance = 77')).rejects.toMatchObject({
      code: 'transaction-misuse',
    });
    await expect(database.script('begin; select 1/0')).rejects.toMatchObject({ code: '22012' });
    expect(await balances()).toEqual([10, 0]);
  });

  test('transactions side by side each see their own', async () => {
    await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        database.transaction(async (transaction) => {
          const { rows } = await transaction.query<{ index: number }>('select $1::int as index', [index]);
          expect(rows[0]?.index).toBe(index);
          await transaction.query('update account set balance = balance + 1 where id = 2');
        }),
      ),
    );
    expect(await balances()).toEqual([10, 20]);
  });

  test('a transaction that stays open is logged while it is open and when it ends', async () => {
    log.lines.length = 0;
    const gate = createGate();
    const work = database.transaction(() => gate.passed);
    await expect.poll(() => log.lines.length, { timeout: 20_000 }).toBe(1);
    gate.open();
    await work;
    expect(log.lines.map(({ level }) => level)).toEqual(['warn', 'warn']);
    expect(log.lines[1]?.fields['openMs']).toBeGreaterThanOrEqual(1_000);
  });

  test('a short transaction is not logged', async () => {
    log.lines.length = 0;
    await database.transaction(async () => {});
    expect(log.lines).toEqual([]);
  });
});

describe.each(testDatabases())('waiting and closing on $name', ({ open }) => {
  test('a call that gets no connection within the bound is answered with database-busy', async () => {
    const database = await open({ acquireTimeoutMs: 200, poolMax: 1 });
    const gate = createGate();
    const work = database.transaction(() => gate.passed);
    await expect(database.query('select 1')).rejects.toMatchObject({ code: 'database-busy', status: 503 });
    await expect(database.transaction(async () => {})).rejects.toMatchObject({ code: 'database-busy' });
    gate.open();
    await work;
    await expect(database.query('select 1 as one')).resolves.toMatchObject({ rows: [{ one: 1 }] });
    await database.close();
  });

  test('calls that wait for the connection get it in the order of asking', async () => {
    const database = await open({ poolMax: 1 });
    const order: number[] = [];
    await Promise.all(
      Array.from({ length: 50 }, async (_, index) => {
        await database.query('select $1::int', [index]);
        order.push(index);
      }),
    );
    expect(order).toEqual(Array.from({ length: 50 }, (_, index) => index));
    await database.close();
  });

  test('close waits for what was called before and refuses what is called after', async () => {
    const database = await open({ poolMax: 1 });
    const before = Array.from({ length: 10 }, () => database.query('select pg_sleep(0.01), 1 as one'));
    const closed = database.close();
    await expect(database.query('select 1')).rejects.toMatchObject({ code: 'database-closed' });
    await expect(database.transaction(async () => {})).rejects.toMatchObject({ code: 'database-closed' });
    await expect(database.listen('channel', () => {})).rejects.toMatchObject({ code: 'database-closed' });
    for (const { rows } of await Promise.all(before)) expect(rows).toMatchObject([{ one: 1 }]);
    await closed;
    await database.close();
    await expect(database.query('select 1')).rejects.toMatchObject({ code: 'database-closed' });
  });

  test('close ends in spite of a transaction that never does', async () => {
    const database = await open({ acquireTimeoutMs: 200, poolMax: 1 });
    const begun = createGate();
    const gate = createGate();
    const failure = rejectionOf(
      database.transaction(async (transaction) => {
        begun.open();
        await gate.passed;
        await transaction.query('select 1');
      }),
    );
    await begun.passed;
    await database.close();
    gate.open();
    expect(await failure).toMatchObject({ code: expect.stringMatching(/database-(unavailable|closed)/) });
  });
});
