/** Enqueue and complete in a caller's own transaction; the clients that are understood are in clients.test.ts. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Database, Transaction } from '../../../src/database/index.js';
import { testDatabases } from '../../database/test-databases.js';
import { type OpenedQueue, openQueue } from './open-store.js';

class RolledBack extends Error {}

describe.each(testDatabases())('a transaction of the database on $name', ({ open }) => {
  let database: Database;
  let opened: OpenedQueue;
  beforeAll(async () => {
    database = await open();
    opened = await openQueue(database);
  });
  afterAll(async () => {
    await opened.queue.stop();
    await database.close();
  });

  const inTransaction = (
    work: (transaction: Transaction) => Promise<unknown>,
    ending: 'commit' | 'rollback',
  ) =>
    database
      .transaction(async (transaction) => {
        await work(transaction);
        if (ending === 'rollback') throw new RolledBack();
      })
      .catch((error: unknown) => {
        if (!(error instanceof RolledBack)) throw error;
      });

  test('messages are there when it commits, and never were when it rolls back', async () => {
    const { queue } = opened;
    const enqueue = (id: string) => (transaction: Transaction) =>
      queue.enqueue('tx', [{ id, payload: { a: '"\\{},' }, metadata: { k: 'v"\\' } }], { transaction });
    await inTransaction(enqueue('rolled-back'), 'rollback');
    await inTransaction(enqueue('committed'), 'commit');
    expect(await queue.get('tx', 'rolled-back')).toBeUndefined();
    expect(await queue.get('tx', 'committed')).toMatchObject({
      payload: { a: '"\\{},' },
      metadata: { k: 'v"\\' },
    });
    expect(await queue.depth('tx')).toMatchObject({ pending: 1 });
  });

  test('a refused message, a known id and a conflict leave the transaction usable', async () => {
    const { queue } = opened;
    await queue.configure('picky', { type: { kind: 'exclusive', key: 'user' } });
    await queue.enqueue('picky', [{ id: 'known', payload: 1, metadata: { user: 'u' } }]);
    let kinds: string[] = [];
    await inTransaction(async (transaction) => {
      const outcomes = await queue.enqueue(
        'picky',
        [
          { id: 'known', payload: 1, metadata: { user: 'u' } },
          { id: 'known', payload: 2, metadata: { user: 'u' } },
          { id: 'no-key', payload: 1 },
          { id: 'bad\u0000', payload: 1 },
          { id: 'good', payload: 1, metadata: { user: 'u' } },
        ],
        { transaction },
      );
      kinds = outcomes.map(({ kind }) => kind);
      await transaction.query('select 1');
    }, 'commit');
    expect(kinds).toEqual(['enqueued', 'conflict', 'refused', 'refused', 'enqueued']);
    expect(await queue.get('picky', 'good')).toMatchObject({ state: 'pending' });
  });

  test('a completion commits or rolls back with it', async () => {
    const { queue } = opened;
    await queue.enqueue('complete', [{ id: 'm', payload: 1 }]);
    const [lease] = await queue.dequeue('complete');
    const complete = (transaction: Transaction) => queue.complete('complete', [lease!], { transaction });
    await inTransaction(complete, 'rollback');
    expect(await queue.get('complete', 'm')).toMatchObject({ state: 'running' });
    await inTransaction(complete, 'commit');
    expect(await queue.get('complete', 'm')).toMatchObject({ state: 'completed' });
  });

  test('what follows from a completion commits or rolls back with it, and where it is refused the transaction goes on', async () => {
    const { queue } = opened;
    await queue.configure('charged', { type: { kind: 'exclusive', key: 'user' } });
    await queue.enqueue('placed', [{ id: 'm', payload: 1 }]);
    const [lease] = await queue.dequeue('placed');
    const complete = (metadata: Record<string, string>) => (transaction: Transaction) =>
      queue.complete(
        'placed',
        [
          {
            ...lease!,
            followUps: [
              { queue: 'told', messages: [{ id: 't', payload: 1 }] },
              { queue: 'charged', messages: [{ id: 'c', payload: 1, metadata }] },
            ],
          },
        ],
        { transaction },
      );
    const states = async () => [
      (await queue.get('placed', 'm'))?.state,
      (await queue.get('told', 't'))?.state,
      (await queue.get('charged', 'c'))?.state,
    ];
    await inTransaction(complete({ user: 'u' }), 'rollback');
    expect(await states()).toEqual(['running', undefined, undefined]);
    let outcomes: unknown;
    await inTransaction(async (transaction) => {
      outcomes = await complete({})(transaction);
      await queue.enqueue('told', [{ id: 'beside', payload: 1 }], { transaction });
    }, 'commit');
    expect(outcomes).toMatchObject([{ kind: 'refused', id: 'm', error: { field: 'metadata.user' } }]);
    expect(await states()).toEqual(['running', undefined, undefined]);
    expect(await queue.get('told', 'beside')).toMatchObject({ state: 'pending' });
    await inTransaction(complete({ user: 'u' }), 'commit');
    expect(await states()).toEqual(['completed', 'pending', 'pending']);
  });

  test('a dequeue that waits sees the messages within a second of the commit', async () => {
    const { queue } = opened;
    const waiting = queue.dequeue('wait', { waitMs: 20_000 });
    await inTransaction(
      (transaction) => queue.enqueue('wait', [{ id: 'm', payload: 1 }], { transaction }),
      'commit',
    );
    const committedAtMs = performance.now();
    expect((await waiting).map(({ id }) => id)).toEqual(['m']);
    // The promise is 1 s on an idle system; the bound leaves room for a busy machine.
    expect(performance.now() - committedAtMs).toBeLessThan(5_000);
  });

  test('the wake-up is sent by the commit, and left out where it is not wanted', async () => {
    const { queue, store } = opened;
    const hints: string[] = [];
    const unwatch = await store.watch(['quiet', 'woken'], (name) => void hints.push(name));
    const enqueue = (name: string, wake: boolean) => (transaction: Transaction) =>
      queue.enqueue(name, [{ payload: 1 }], { transaction, wake });
    await inTransaction(enqueue('woken', true), 'rollback');
    await inTransaction(enqueue('quiet', false), 'commit');
    expect(hints).toEqual([]);
    await inTransaction(enqueue('woken', true), 'commit');
    await expect.poll(() => hints).toEqual(['woken']);
    await unwatch();
  });

  test('a call inside a transaction that leaves its handle out is refused, whoever else is calling', async () => {
    const { queue } = opened;
    await queue.enqueue('busy', [{ payload: 0 }]);
    const others = Promise.all(Array.from({ length: 20 }, () => queue.enqueue('busy', [{ payload: 1 }])));
    const inside = database.transaction(async () => {
      await queue.enqueue('busy', [{ id: 'inside', payload: 1 }]);
    });
    await expect(inside).rejects.toMatchObject({ code: 'transaction-misuse' });
    expect((await others).flat()).toHaveLength(20);
    await expect(database.transaction(async () => void (await queue.dequeue('busy')))).rejects.toMatchObject({
      code: 'transaction-misuse',
    });
    expect(await queue.get('busy', 'inside')).toBeUndefined();
  });

  test('what is no transaction is refused by name', async () => {
    for (const transaction of [{}, 'tx', 7, { query: 1 }]) {
      await expect(
        opened.queue.enqueue('q', [{ id: 'x', payload: 1 }], { transaction }),
      ).rejects.toMatchObject({
        code: 'transaction-unsupported',
        field: 'transaction',
      });
    }
  });
});
