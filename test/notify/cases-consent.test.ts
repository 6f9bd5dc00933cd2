/** What people have switched off is not sent: by wish and by link, while it waits and while it is being sent. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Database } from '../../src/database/index.js';
import {
  createResendProvider,
  createSmtpProvider,
  defineKinds,
  type AttemptOutcome,
} from '../../src/notify/index.js';
import type { Component } from '../../src/lifecycle.js';
import { startResendCounterpart, startSmtpCounterpart } from '../../src/testing/index.js';
import { testDatabases, testServers } from '../database/test-databases.js';
import {
  ambiguous,
  openWorld,
  programmableProvider,
  quickKinds,
  sent,
  untilEnded,
  type World,
} from './world.js';
import { until } from '../../src/testing/until.js';

const consentKinds = defineKinds({
  ...quickKinds,
  follow: {
    delivery: 'at-least-once',
    channels: ['inbox'],
    digest: { window: '100ms', templates: { inbox: { title: '{{ count }} new', body: 'x' } } },
    templates: { inbox: { title: 'New follower', body: '{{ who }}' } },
  },
});
const unsubscribe = { url: 'https://us.example.test/unsubscribe', secret: 'a secret of 16 or more' };

describe.each(testDatabases().slice(0, 2))('what is switched off on $name', (testDatabase) => {
  let database: Database;
  let world: World<typeof consentKinds>;
  let worker: Component;
  const email = programmableProvider('email');
  const sms = programmableProvider('sms');
  const push = programmableProvider('push', { platform: 'fcm' });
  const tomorrow = () => Date.now() + 86_400_000;

  beforeAll(async () => {
    database = await testDatabase.open();
    world = await openWorld({ database, providers: [email, sms, push], kinds: consentKinds, unsubscribe });
    worker = world.notify.worker({ slots: 20 });
    await worker.start();
  });
  afterAll(async () => {
    await worker.stop();
    await world.stop();
    await database.close();
  });

  const stateOf = async (id: string) => (await world.notify.delivery(id))?.state;

  it('N28: an opt-out ends what waits, and later ones make no call', async () => {
    const to = [{ channel: 'email', address: 'n28@example.test' } as const];
    const promo = { user: 'n28', data: { what: 'x' }, to };
    const waiting = [];
    for (let index = 0; index < 20; index += 1) {
      waiting.push(await world.notify.send('promo', { ...promo, key: `w${index}`, sendAt: tomorrow() }));
    }
    const { suppressed } = await world.notify.people.prefer('n28', {
      kind: 'promo',
      channel: 'email',
      enabled: false,
    });
    expect(suppressed).toHaveLength(20);
    const later = await world.notify.send('promo', { ...promo, key: 'later' });
    await untilEnded(world.notify, [later.deliveries[0]!.id]);
    for (const { deliveries } of [...waiting, later]) {
      expect(await world.notify.delivery(deliveries[0]!.id)).toMatchObject({
        state: 'suppressed',
        reason: 'switched off by the user',
      });
    }
    expect(email.calls('n28@example.test')).toHaveLength(0);
  });

  it('N28: what is being sent at the opt-out keeps its outcome, and has no second attempt', async () => {
    const cases = [
      ['order', 'sent', sent],
      ['order', 'suppressed', ambiguous],
      ['promo', 'ambiguous', ambiguous],
    ] as const;
    for (const [kind, expected, outcome] of cases) {
      const user = `flight-${kind}-${expected}`;
      const address = `${user}@example.test`;
      let answer = (_: AttemptOutcome): void => {};
      email.answers.set(address, [() => new Promise<AttemptOutcome>((resolve) => (answer = resolve))]);
      const { deliveries } = await world.notify.send(kind as 'order', {
        user,
        key: 'k',
        data: { number: 1, what: 'x' } as never,
        to: [{ channel: 'email', address }],
      });
      const { id } = deliveries[0]!;
      await until(() => email.calls(address).length === 1);
      const off = { kind, channel: 'email', enabled: false } as const;
      expect((await world.notify.people.prefer(user, off)).suppressed).toEqual([]);
      expect(await stateOf(id)).toBe('sending');
      answer(outcome);
      await untilEnded(world.notify, [id]);
      expect([kind, await stateOf(id)]).toEqual([kind, expected]);
      expect(email.calls(address)).toHaveLength(1);
    }
  });

  it('N29: the table of kind and channel holds, the most specific wish decides, a required kind says so', async () => {
    const { people } = world.notify;
    await people.prefer('n29', { kind: '*', channel: 'email', enabled: false });
    await people.prefer('n29', { kind: 'promo', channel: 'push', enabled: false });
    await people.prefer('n29', { kind: 'order', channel: 'email', enabled: true });
    const table = await people.preferences('n29');
    const off = table.filter(({ enabled }) => !enabled).map(({ kind, channel }) => `${kind} ${channel}`);
    expect(off).toEqual(['follow email', 'promo email', 'promo push']);
    await expect(people.prefer('n29', { kind: 'otp', channel: 'sms', enabled: false })).rejects.toMatchObject(
      { code: 'kind-required' },
    );
    const states: string[] = [];
    for (const kind of ['promo', 'order'] as const) {
      for (const destination of [
        { channel: 'email', address: `${kind}-n29@example.test` },
        { channel: 'push', address: `${kind}-n29`, details: { platform: 'fcm' } },
      ] as const) {
        const { deliveries } = await world.notify.send(kind, {
          user: 'n29',
          key: destination.channel,
          data: { what: 'x', number: 1 },
          to: [destination],
        });
        await untilEnded(world.notify, [deliveries[0]!.id]);
        states.push(`${kind} ${destination.channel} ${await stateOf(deliveries[0]!.id)}`);
      }
    }
    expect(states).toEqual([
      'promo email suppressed',
      'promo push suppressed',
      'order email sent',
      'order push sent',
    ]);
  });

  it('N29: a digest and a campaign are asked like a single one', async () => {
    const { people, digests, campaigns, inbox } = world.notify;
    await people.prefer('off', { kind: 'follow', channel: 'inbox', enabled: false });
    await people.prefer('off', { kind: 'promo', channel: 'push', enabled: false });
    for (const user of ['off', 'on'])
      for (const key of ['a', 'b']) await digests.add('follow', { user, key, data: { who: key } });
    await until(async () => (await inbox.unread('on')) === 1);
    const digested = async () =>
      (await world.notify.deliveries({ user: 'off', kind: 'follow' })).find(
        ({ reason }) => reason === 'switched off by the user',
      );
    await until(digested);
    expect(await inbox.unread('off')).toBe(0);
    const recipients = ['off', 'on'].map((user) => ({
      user,
      data: { what: 'x' },
      to: [{ channel: 'push', address: `campaign-${user}`, details: { platform: 'fcm' } } as const],
    }));
    await campaigns.run({ id: 'consent', kind: 'promo', recipients });
    await until(async () => (await campaigns.progress('consent')).waiting === 0);
    expect(await campaigns.progress('consent')).toMatchObject({ taken: 2, sent: 1, suppressed: 1 });
    expect(push.calls('campaign-off')).toHaveLength(0);
  });

  it('the one-click link of an e-mail switches its kind and channel off; a forged one does nothing', async () => {
    const to = [{ channel: 'email', address: 'click@example.test' } as const];
    const { deliveries } = await world.notify.send('promo', {
      user: 'click',
      key: 'k',
      data: { what: 'x' },
      to,
    });
    await untilEnded(world.notify, [deliveries[0]!.id]);
    const link = new URL(String(email.calls('click@example.test')[0]!.content['unsubscribeUrl']));
    const token = link.searchParams.get('token') as string;
    await expect(world.notify.people.unsubscribe(`${token}x`)).rejects.toMatchObject({
      code: 'token-invalid',
    });
    expect(await world.notify.people.unsubscribe(token)).toEqual({
      user: 'click',
      kind: 'promo',
      channel: 'email',
    });
    await world.notify.people.unsubscribe(token);
    const after = await world.notify.send('promo', { user: 'click', key: 'k2', data: { what: 'x' }, to });
    await untilEnded(world.notify, [after.deliveries[0]!.id]);
    expect(await stateOf(after.deliveries[0]!.id)).toBe('suppressed');
  });
});

const [server] = testServers();

describe.skipIf(server === undefined)(
  'the one-click link on the wire (RFC 8058) (needs a PostgreSQL server)',
  () => {
    let database: Database;
    beforeAll(async () => {
      database = await server!.open({ poolMax: 4 });
    });
    afterAll(() => database.close());

    it('is in the two headers of a promotion by SMTP and by HTTP, and in none of a required kind', async () => {
      const mailServer = await startSmtpCounterpart();
      const service = await startResendCounterpart();
      const from = 'a@example.test';
      const providers = [
        createSmtpProvider({ host: '127.0.0.1', port: mailServer.port, requireTls: false, from }),
        createResendProvider({ apiKey: 'k', from, url: service.url }),
      ];
      for (const provider of providers) {
        const kinds = { ...quickKinds, order: { ...quickKinds.order, required: true } } as typeof quickKinds;
        const world = await openWorld({ database, providers: [provider], kinds, unsubscribe });
        const worker = world.notify.worker({ slots: 2, floors: false });
        await worker.start();
        const to = [{ channel: 'email', address: 'b@example.test' } as const];
        const promo = await world.notify.send('promo', { user: 'u', key: 'k', data: { what: 'x' }, to });
        await untilEnded(world.notify, [promo.deliveries[0]!.id]);
        const order = await world.notify.send('order', { user: 'u', key: 'k', data: { number: 1 }, to });
        await untilEnded(world.notify, [order.deliveries[0]!.id]);
        const [first, second] =
          provider === providers[0]
            ? mailServer.messages.map(({ raw }) => headersOf(raw))
            : service.requests.map(({ body }) => JSON.parse(body.toString()).headers ?? {});
        expect(first['List-Unsubscribe-Post']).toBe('List-Unsubscribe=One-Click');
        const link = /^<(https:[^>\s]+)>$/.exec(first['List-Unsubscribe'])?.[1];
        const token = new URL(link as string).searchParams.get('token') as string;
        expect(await world.notify.people.unsubscribe(token)).toEqual({
          user: 'u',
          kind: 'promo',
          channel: 'email',
        });
        expect(Object.keys(second).filter((name) => name.startsWith('List-'))).toEqual([]);
        await worker.stop();
        await world.stop();
      }
      await mailServer.stop();
      await service.stop();
    });
  },
);

/** Unfolded, as a receiver reads them. */
function headersOf(raw: string): Record<string, string> {
  const head = raw.slice(0, raw.indexOf('\r\n\r\n')).replaceAll(/\r\n[ \t]+/g, ' ');
  return Object.fromEntries(head.split('\r\n').map((line) => line.split(/: ?(.*)/s).slice(0, 2)));
}
