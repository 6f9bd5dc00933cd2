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
  },
);
