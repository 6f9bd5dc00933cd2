/** Notifications in a minute: a code, sent once however often it is asked for, and the story of its delivery. Nothing leaves the machine. */
import { openPglite } from 'headgate/database';
import { createNotify, createSandboxProvider, defineKinds } from 'headgate/notify';
import { createPostgresNotifyStore } from 'headgate/notify/postgres';
import { createQueue } from 'headgate/queue';
import { createPostgresQueueStore } from 'headgate/queue/postgres';

const kinds = defineKinds({
  otp: {
    delivery: 'at-least-once', // a code that does not come costs a login, a second one costs nothing
    channels: ['sms'],
    deadline: '1m',
    priority: 'urgent',
    secret: true, // the text is erased when the delivery ends
    data: (input: unknown) => input as { code: string },
    templates: { sms: { text: 'Your code is {{ code }}' } },
  },
});

// Everything but the last step; createTwilioProvider or createSmppProvider in its place sends.
const sandbox = createSandboxProvider('sms', {
  onMessage: ({ destination, content }) =>
    console.log(`to ${destination.address}: ${String(content['text'])}`),
});

const database = await openPglite({ folder: 'memory' });
const queue = createQueue({ store: createPostgresQueueStore({ database }) });
await queue.start();
const store = createPostgresNotifyStore({ database });
const notify = createNotify({ database, queue, store, kinds, providers: [sandbox] });
await notify.start();
const worker = notify.worker();
await worker.start();

const request = {
  user: 'ann',
  key: 'login-1', // your own name of this sign-in
  data: { code: '482913' },
  to: [{ channel: 'sms', address: '+41791234567' } as const],
};
const { id } = await notify.send('otp', request);
const again = await notify.send('otp', request); // a client that retried
console.log(`the second one is ${again.kind}, of the same notification: ${again.id === id}`);

const isOver = async (): Promise<boolean> => (await notify.ledger()).waiting === 0;
while (!(await isOver())) await new Promise((resolve) => setTimeout(resolve, 20));

for (const { state, history } of (await notify.get(id))?.deliveries ?? [])
  console.log(`${state}: ${history.map(({ event }) => event).join(', ')}`);

await worker.stop();
await notify.stop();
await queue.stop();
await database.close();
