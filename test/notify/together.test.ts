/** Sends, claims and answers go to the database together: nobody waits for what somebody else holds. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Database, Transaction } from '../../src/database/index.js';
import { testDatabases } from '../database/test-databases.js';
import { email, openWorld, programmableProvider, untilEnded, type World } from './world.js';

describe.each(testDatabases().slice(0, 2))('what is done together on $name', (testDatabase) => {
  let database: Database;
  let world: World;
  const provider = programmableProvider('email');
  const order = { user: 'u', data: { number: 1 }, to: [email] };
  beforeAll(async () => {
    database = await testDatabase.open({ ...(testDatabase.hasSessions && { poolMax: 12 }) });
    world = await openWorld({ database, providers: [provider] });
  });
  afterAll(async () => {
    await world.stop();
    await database.close();
  });

  it('a send from inside an open transaction that is not given is refused at once', async () => {
    const misuse = database.transaction(() => world.notify.send('order', { ...order, key: 'misuse' }));
    await expect(misuse).rejects.toMatchObject({ code: 'transaction-misuse' });
    expect((await world.notify.send('order', { ...order, key: 'misuse' })).kind).toBe('accepted');
  });

  it('of repeats at the same moment one is accepted, and the others know it', async () => {
    const outcomes = await Promise.all(
      Array.from({ length: 30 }, (_, index) =>
        world.notify.send('order', { ...order, key: `r${index % 3}` }),
      ),
    );
    const kinds = outcomes.map(({ kind }) => kind);
    expect(kinds.filter((kind) => kind === 'accepted')).toHaveLength(3);
    expect(kinds.filter((kind) => kind === 'duplicate')).toHaveLength(27);
    expect(new Set(outcomes.map(({ id }) => id)).size).toBe(3);
  });

  /** A transaction that has done `work` and stays open until it is told to end. */
  async function openTransaction(work: (transaction: Transaction) => Promise<unknown>) {
    let end = (): void => {};
    const told = new Promise<void>((resolve) => (end = resolve));
    let done: Promise<void> = Promise.resolve();
    await new Promise<void>((resolve, reject) => {
      done = database.transaction(async (transaction) => {
        await work(transaction);
        resolve();
        await told;
      });
      done.catch(reject);
    });
    return async () => {
      end();
      await done;
    };
  }

  it.skipIf(!testDatabase.hasSessions)(
    'a send whose key an open transaction holds delays no other (needs several sessions)',
    async () => {
      const end = await openTransaction((transaction) =>
        world.notify.send('order', { ...order, key: 'held' }, { transaction }),
      );
      let isKnown = false;
      const repeat = world.notify.send('order', { ...order, key: 'held' }).finally(() => (isKnown = true));
      const others = await Promise.all(
        Array.from({ length: 50 }, (_, index) => world.notify.send('order', { ...order, key: `o${index}` })),
      );
      expect(others.every(({ kind }) => kind === 'accepted')).toBe(true);
      expect(isKnown).toBe(false);
      await end();
      expect((await repeat).kind).toBe('duplicate');
    },
  );

  it.skipIf(!testDatabase.hasSessions)(
    'a delivery whose row is held delays no other (needs several sessions)',
    async () => {
      const send = async (key: string): Promise<string> => {
        const to = [{ channel: 'email', address: `${key}@example.test` } as const];
        return (await world.notify.send('order', { ...order, key, to })).deliveries[0]!.id;
      };
      const stuck = await send('stuck');
      const others = await Promise.all(Array.from({ length: 20 }, (_, index) => send(`free${index}`)));
      const end = await openTransaction((transaction) =>
        transaction.query(`select 1 from ${world.schema}.deliveries where id = $1 for update`, [stuck]),
      );
      const worker = world.notify.worker({ slots: 10 });
      await worker.start();
      await untilEnded(world.notify, others);
      expect(provider.calls('stuck@example.test')).toHaveLength(0);
      await end();
      await untilEnded(world.notify, [stuck]);
      expect(provider.calls('stuck@example.test')).toHaveLength(1);
      await worker.stop();
    },
  );
});
