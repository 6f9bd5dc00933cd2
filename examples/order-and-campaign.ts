/**
 * An order confirmation that is sent when its transaction commits, and a campaign that is run twice and reaches everybody
 * once. Nothing leaves the machine: the sandbox does everything but the last step.
 */
import { openPglite } from 'headgate/database';
import { createNotify, createSandboxProvider, defineKinds } from 'headgate/notify';
import { createPostgresNotifyStore } from 'headgate/notify/postgres';
import { createQueue } from 'headgate/queue';
import { createPostgresQueueStore } from 'headgate/queue/postgres';

const kinds = defineKinds({
  order: {
    delivery: 'at-least-once', // a confirmation that is missing costs a call to support, a second one a shrug
    channels: ['email', 'inbox'],
    templates: {
      email: { subject: 'Order {{ number }}', text: 'Thank you for order {{ number }}.' },
      inbox: { title: 'Order {{ number }}', body: 'We have it.' },
    },
  },
  promo: {
    delivery: 'at-most-once', // the same promotion twice costs more than one that is missing
    channels: ['email'],
    templates: { email: { subject: 'New: {{ what }}', text: 'Have a look at {{ what }}.' } },
  },
});

const database = await openPglite({ folder: 'memory' });
await database.query('create table orders (number integer primary key)');
const queue = createQueue({ store: createPostgresQueueStore({ database }) });
await queue.start();
const store = createPostgresNotifyStore({ database });
const notify = createNotify({ database, queue, store, kinds, providers: [createSandboxProvider('email')] });
await notify.start();
const worker = notify.worker();
await worker.start();

// Ann can be reached by e-mail; the inbox she has anyway.
await notify.people.putDestination('ann', { channel: 'email', address: 'ann@example.com' });

const place = (number: number, fails: boolean): Promise<void> =>
  database.transaction(async (transaction) => {
    await transaction.query('insert into orders (number) values ($1)', [number]);
    await notify.send('order', { user: 'ann', key: `order-${number}`, data: { number } }, { transaction });
    if (fails) throw new Error('the payment was refused');
  });
await place(7, false);
await place(8, true).catch(() => {}); // no order, and so no confirmation

// Recipients come as a stream: from a query, a file, whatever is too large to be held.
function* everybody() {
  for (let number = 0; number < 500; number += 1) {
    const to = [{ channel: 'email', address: `reader-${number}@example.com` } as const];
    yield { user: `reader-${number}`, data: { what: 'boots' }, to };
  }
}
await notify.campaigns.run({ id: 'spring', kind: 'promo', recipients: everybody() });
await notify.campaigns.run({ id: 'spring', kind: 'promo', recipients: everybody() }); // as after a crash

while ((await notify.ledger()).waiting > 0) await new Promise((resolve) => setTimeout(resolve, 50));

const { sent } = await notify.ledger({ kind: 'order' });
const progress = await notify.campaigns.progress('spring');
console.log(`confirmations sent: ${sent} (one order, by e-mail and in the inbox)`);
console.log(`campaign: ${progress.taken} taken, ${progress.sent} sent`);

await worker.stop();
await notify.stop();
await queue.stop();
await database.close();
