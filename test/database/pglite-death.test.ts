import type { Worker } from 'node:worker_threads';
import { afterEach, describe, expect, inject, test, vi } from 'vitest';
import { openPglite } from '../../src/database/index.js';

const workers = vi.hoisted((): Worker[] => []);
vi.mock('node:worker_threads', async (importOriginal) => {
  const original = await importOriginal<typeof import('node:worker_threads')>();
  class Observed extends original.Worker {
    constructor(...parameters: ConstructorParameters<typeof Worker>) {
      super(...parameters);
      workers.push(this);
    }
  }
  return { ...original, Worker: Observed };
});

afterEach(() => {
  workers.length = 0;
});

const errorOf = (promise: Promise<unknown>): Promise<unknown> => promise.catch((error: unknown) => error);

describe('the embedded database whose thread dies', () => {
  test('rejects every waiting call with database-unavailable, later ones at once, and can be closed', async () => {
    const database = await openPglite({ folder: 'memory', seedFile: inject('pgliteSeedFile') });
    const waiting = Array.from({ length: 5 }, () =>
      errorOf(database.query('select count(*) from generate_series(1, 100000000)')),
    );
    const inTransaction = errorOf(database.transaction((transaction) => transaction.query('select 1')));
    await workers[0]?.terminate();
    for (const error of [...(await Promise.all(waiting)), await inTransaction]) {
      expect(error).toMatchObject({ code: 'database-unavailable', status: 503 });
    }
    await expect(database.query('select 1')).rejects.toMatchObject({ code: 'database-unavailable' });
    await database.close();
    await expect(database.query('select 1')).rejects.toMatchObject({ code: 'database-closed' });
  });

  test('rolls back nothing twice: an open transaction fails with the death, not with its own statement', async () => {
    const database = await openPglite({ folder: 'memory', seedFile: inject('pgliteSeedFile') });
    const work = errorOf(
      database.transaction(async (transaction) => {
        await transaction.query('select 1');
        await workers[0]?.terminate();
        await transaction.query('select 2');
      }),
    );
    expect(await work).toMatchObject({ code: 'database-unavailable' });
    await database.close();
  });
});
