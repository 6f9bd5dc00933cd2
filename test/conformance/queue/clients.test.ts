/** Enqueue and complete in a transaction of each client's own, the way its documentation opens one. */
import { drizzle as drizzleOnPg } from 'drizzle-orm/node-postgres';
import { drizzle as drizzleOnPostgresJs } from 'drizzle-orm/postgres-js';
import { Kysely, PostgresDialect } from 'kysely';
import { Pool } from 'pg';
import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Database } from '../../../src/database/index.js';
import { testServers } from '../../database/test-databases.js';
import { type OpenedQueue, openQueue } from './open-store.js';
import { openPrisma } from './prisma-client.js';

interface OpenedClient {
  /** Commits when `work` ends, rolls back when it throws. */
  transaction(work: (transaction: unknown) => Promise<void>): Promise<unknown>;
  close(): Promise<unknown>;
}

const clients: Record<string, (url: string) => OpenedClient> = {
  pg: (url) => {
    const pool = new Pool({ connectionString: url });
    return {
      transaction: async (work) => {
        const client = await pool.connect();
        try {
          await client.query('begin');
          await work(client);
          await client.query('commit');
        } catch (error) {
          await client.query('rollback');
          throw error;
        } finally {
          client.release();
        }
      },
      close: () => pool.end(),
    };
  },
  kysely: (url) => {
    const db = new Kysely({ dialect: new PostgresDialect({ pool: new Pool({ connectionString: url }) }) });
    return {
      transaction: (work) => db.transaction().execute(work),
      close: () => db.destroy(),
    };
  },
  'drizzle on pg': (url) => {
    const pool = new Pool({ connectionString: url });
    const db = drizzleOnPg(pool);
    return { transaction: (work) => db.transaction(work), close: () => pool.end() };
  },
  'drizzle on postgres.js': (url) => {
    const sql = postgres(url);
    const db = drizzleOnPostgresJs(sql);
    return { transaction: (work) => db.transaction(work), close: () => sql.end() };
  },
  prisma: (url) => {
    const prisma = openPrisma(url);
    return {
      transaction: (work) => prisma.$transaction(work, { maxWait: 30_000, timeout: 30_000 }),
      close: () => prisma.$disconnect(),
    };
  },
  'postgres.js': (url) => {
    const sql = postgres(url);
    return { transaction: (work) => sql.begin(work), close: () => sql.end() };
  },
};

class RolledBack extends Error {}

describe.each(testServers())('clients on $name', ({ open, url }) => {
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

  test.each(Object.entries(clients))('%s', async (name, connect) => {
    const { queue } = opened;
    const client = connect(await url());
    const payload = ['{"a,b"}', null, '\\', 'naïve 👋🏽'];
    const messages = (id: string) => [
      { id, payload, metadata: { k: 'a,b"\\' }, delayMs: 0 },
      ...Array.from({ length: 12 }, (_, index) => ({ payload: index, metadata: { other: 'yes' } })),
    ];
    try {
      const rolledBack = client.transaction(async (transaction) => {
        await queue.enqueue(name, messages('back'), { transaction });
        throw new RolledBack();
      });
      await expect(rolledBack).rejects.toThrow(RolledBack);
      await client.transaction(async (transaction) => {
        const outcomes = await queue.enqueue(name, messages('m'), { transaction });
        expect(outcomes.every((outcome) => outcome.kind === 'enqueued' && outcome.created)).toBe(true);
        expect(await queue.get(name, 'm')).toBeUndefined();
        expect(await queue.enqueue(name, [{ id: 'm', payload: 'other' }], { transaction })).toMatchObject([
          { kind: 'conflict', state: 'pending' },
        ]);
      });
      expect(await queue.get(name, 'back')).toBeUndefined();
      expect(await queue.depth(name)).toMatchObject({ pending: 13 });

      const [lease] = await queue.dequeue(name, { where: { k: 'a,b"\\' } });
      expect(lease).toMatchObject({ id: 'm', payload });
      const refused = client.transaction(async (transaction) => {
        await queue.complete(name, [{ ...lease!, result: 7 }], { transaction });
        throw new RolledBack();
      });
      await expect(refused).rejects.toThrow(RolledBack);
      expect(await queue.get(name, 'm')).toMatchObject({ state: 'running' });
      await client.transaction(async (transaction) => {
        const followUps = [{ queue: `${name} next`, messages: [{ id: 'next', payload: 1 }] }];
        expect(
          await queue.complete(name, [{ ...lease!, result: 7, followUps }], { transaction }),
        ).toMatchObject([{ kind: 'done', state: 'completed' }]);
      });
      expect(await queue.get(name, 'm')).toMatchObject({ state: 'completed', result: 7 });
      expect(await queue.get(`${name} next`, 'next')).toMatchObject({ state: 'pending' });
    } finally {
      await client.close();
    }
  });
});
