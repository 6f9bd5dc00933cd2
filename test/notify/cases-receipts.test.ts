/** Receipts for what was believed lost: the provider knows better, and whatever had ended becomes sent. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Database } from '../../src/database/index.js';
import type { ReceiptStatus } from '../../src/notify/index.js';
import { testDatabases } from '../database/test-databases.js';
import {
  addsUp,
  ambiguous,
  openWorld,
  programmableProvider,
  quickKinds,
  refused,
  untilEnded,
  type World,
} from './world.js';
import { until } from '../../src/testing/until.js';

describe.each(testDatabases().slice(0, 2))(
  'a receipt for what was believed lost on $name',
  (testDatabase) => {
    let database: Database;
    let world: World;
    let accepted = 0;
    const provider = programmableProvider('email', {
      parseReceipts: ({ body }) => ({ kind: 'receipts', receipts: JSON.parse(Buffer.from(body).toString()) }),
    });
    beforeAll(async () => {
      database = await testDatabase.open();
      world = await openWorld({ database, providers: [provider], kinds: quickKinds });
    });
    afterAll(async () => {
      await world.stop();
      await database.close();
    });

    const receive = (reference: string, status: ReceiptStatus, cost?: number) =>
      world.notify.receive('test-email', {
        url: 'https://us.example.test/',
        headers: {},
        body: Buffer.from(JSON.stringify([{ reference, messageId: `m-${reference}`, status, cost }])),
      });

    /** Sends one whose attempts all end as told. */
    async function ended(
      kind: 'order' | 'promo',
      as: 'failed' | 'ambiguous',
      address: string,
    ): Promise<string> {
      provider.answers.set(address, [as === 'failed' && kind === 'promo' ? refused : ambiguous]);
      const to = [{ channel: 'email', address } as const];
      const data = { number: 1, what: 'x' };
      const { deliveries } = await world.notify.send(kind as 'order', { user: 'u', key: address, data, to });
      accepted += 1;
      const id = deliveries[0]!.id;
      const worker = world.notify.worker({ slots: 2, floors: false });
      await worker.start();
      await untilEnded(world.notify, [id]);
      await worker.stop();
      expect((await world.notify.delivery(id))?.state).toBe(as);
      return id;
    }

    it.each([
      ['promo', 'ambiguous', 'sent once, and nobody knew'],
      ['order', 'failed', 'tried until its attempts were used up'],
      ['promo', 'failed', 'refused, as it seemed'],
    ] as const)('%s that is %s (%s) becomes sent, with what it cost', async (kind, as, _how) => {
      const address = `${kind}-${as}@example.test`;
      const id = await ended(kind, as, address);
      const calls = provider.calls(address).length;
      expect(await receive(id, 'delivered', 0.07)).toEqual({ status: 200, matched: 1 });
      const known = { state: 'sent', receipt: 'delivered', cost: 0.07 };
      expect(await world.notify.delivery(id)).toMatchObject(known);
      // Twice, and an older one after it: nothing goes back.
      await receive(id, 'delivered', 0.07);
      await receive(id, 'queued');
      expect(await world.notify.delivery(id)).toMatchObject(known);
      expect(addsUp(await world.notify.ledger(), accepted)).toBe(true);
      expect(provider.calls(address)).toHaveLength(calls);
    });

    it('N27: one that nothing is known of is kept, and joined whole when its delivery turns up', async () => {
      const early = (messageId: string, more: object) =>
        world.notify.receive('test-email', {
          url: 'https://us.example.test/',
          headers: {},
          body: Buffer.from(JSON.stringify([{ messageId, ...more }])),
        });
      const bounce = { status: 'undelivered', retire: 'bounced' };
      for (const [id, more] of [
        ['early-1', { status: 'delivered', cost: 0.05 }],
        ['early-2', bounce],
        ['early-3', bounce],
      ] as const)
        expect(await early(id, more)).toEqual({ status: 200, matched: 0 });
      const { people } = world.notify;
      const ids: string[] = [];
      const worker = world.notify.worker({ slots: 2, floors: false });
      await worker.start();
      for (const messageId of ['early-1', 'early-2', 'early-3']) {
        const address = `${messageId}@example.test`;
        // Registered again since the bounce came: it is another one.
        if (messageId === 'early-3') await people.putDestination('u', { channel: 'email', address });
        provider.answers.set(address, [{ kind: 'sent', messageId }]);
        const to = [{ channel: 'email', address } as const];
        const data = { number: 1 };
        const { deliveries } = await world.notify.send('order', { user: 'u', key: messageId, data, to });
        accepted += 1;
        ids.push(deliveries[0]!.id);
      }
      await untilEnded(world.notify, ids);
      const receiptOf = async (id: string) => (await world.notify.delivery(id))?.receipt;
      await until(async () => (await receiptOf(ids[1]!)) === 'undelivered', { boundMs: 60_000 });
      await until(async () => (await receiptOf(ids[2]!)) === 'undelivered', { boundMs: 60_000 });
      await worker.stop();
      expect(await world.notify.delivery(ids[0]!)).toMatchObject({ receipt: 'delivered', cost: 0.05 });
      const { rows } = await database.query<{ address: string }>(
        `select address from ${world.schema}.retired where reason = 'bounced' order by 1`,
      );
      expect(rows.map(({ address }) => address)).toContain('early-2@example.test');
      expect((await people.get('u'))?.destinations.map(({ retired }) => retired)).toEqual([undefined]);
    });

    it('N27: one for what has been purged is answered 200', async () => {
      const id = await ended('promo', 'ambiguous', 'purged@example.test');
      await database.query(`delete from ${world.schema}.notifications where key = 'purged@example.test'`);
      accepted -= 1;
      expect(await receive(id, 'delivered')).toEqual({ status: 200, matched: 0 });
      expect(addsUp(await world.notify.ledger(), accepted)).toBe(true);
    });
  },
);
