/** What supersedes, quiet hours, digests, the inbox and erasure, on each kind of database. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Database } from '../../src/database/index.js';
import { defineKinds } from '../../src/notify/index.js';
import type { Component } from '../../src/lifecycle.js';
import { testDatabases } from '../database/test-databases.js';
import { addsUp, kinds, openWorld, programmableProvider, untilEnded, type World } from './world.js';
import { until } from '../../src/testing/until.js';

const peopleKinds = defineKinds({
  ...kinds,
  code: { ...kinds.otp, purpose: () => 'login', required: true },
  follow: {
    delivery: 'at-least-once',
    channels: ['inbox'],
    digest: {
      window: '300ms',
      templates: {
        inbox: { title: '{{ count }} new', body: '{% for e in events %}{{ e.who }} {% endfor %}' },
      },
    },
    templates: { inbox: { title: 'New follower', body: '{{ who }}' } },
  },
});

describe.each(testDatabases().slice(0, 2))('people on $name', (testDatabase) => {
  let database: Database;
  let world: World<typeof peopleKinds>;
  let worker: Component;
  const email = programmableProvider('email');
  const sms = programmableProvider('sms');
  const tomorrow = () => Date.now() + 86_400_000;

  beforeAll(async () => {
    database = await testDatabase.open({ ...(testDatabase.hasSessions && { poolMax: 10 }) });
    world = await openWorld({ database, providers: [email, sms], kinds: peopleKinds });
    worker = world.notify.worker({ slots: 20 });
    await worker.start();
  });
  afterAll(async () => {
    await worker.stop();
    await world.stop();
    await database.close();
  });

  const stateOf = async (id: string) => (await world.notify.delivery(id))?.state;

  it('N22: a newer code takes the place of those that wait', async () => {
    const to = [{ channel: 'sms', address: '+41790000022' } as const];
    const old = await world.notify.send('code', {
      user: 'n22',
      key: 'a',
      data: { code: '1' },
      to,
      sendAt: tomorrow(),
    });
    const fresh = await world.notify.send('code', { user: 'n22', key: 'b', data: { code: '2' }, to });
    await untilEnded(world.notify, [fresh.deliveries[0]!.id]);
    expect(await world.notify.delivery(old.deliveries[0]!.id)).toMatchObject({
      state: 'suppressed',
      reason: 'superseded by a newer one',
    });
    expect(sms.calls('+41790000022').map(({ content }) => content['text'])).toEqual(['Your code is 2']);
  });

  it('quiet hours hold what is not urgent until they end, and urgent ones pass', async () => {
    const minute = new Date().getUTCHours() * 60 + new Date().getUTCMinutes();
    const time = (at: number) => {
      const wrapped = (at + 1_440) % 1_440;
      return `${String(Math.floor(wrapped / 60)).padStart(2, '0')}:${String(wrapped % 60).padStart(2, '0')}`;
    };
    const quietHours = { from: time(minute - 60), until: time(minute + 120) };
    await world.notify.people.put('quiet', { timeZone: 'UTC', quietHours });
    const promo = await world.notify.send('promo', {
      user: 'quiet',
      key: 'k',
      data: { what: 'x' },
      to: [{ channel: 'email', address: 'quiet@example.test' }],
    });
    const otp = await world.notify.send('otp', {
      user: 'quiet',
      key: 'k',
      data: { code: '1' },
      to: [{ channel: 'sms', address: '+41790000023' }],
    });
    await untilEnded(world.notify, [otp.deliveries[0]!.id]);
    expect(await stateOf(otp.deliveries[0]!.id)).toBe('sent');
    const held = (await world.notify.delivery(promo.deliveries[0]!.id))!;
    expect(held.state).toBe('waiting');
    expect(held.runAfter % 60_000).toBe(0);
    expect(held.runAfter - Date.now()).toBeGreaterThan(118 * 60_000);
    expect(held.expiresAt - held.runAfter).toBe(86_400_000);
  });

  it('N11, N13: 50 events at once make one digest with each of them once, also when they come twice', async () => {
    const before = await world.notify.ledger({ kind: 'follow' });
    const events = Array.from({ length: 50 }, (_, index) => ({
      user: 'n11',
      key: `event-${index}`,
      data: { who: `u${index}` },
      digestKey: 'follows',
    }));
    await Promise.all([...events, ...events].map((event) => world.notify.digests.add('follow', event)));
    await until(async () => (await world.notify.inbox.unread('n11')) > 0);
    const entries = await world.notify.inbox.list('n11');
    expect(entries.map(({ title }) => title)).toEqual(['50 new']);
    expect(entries[0]!.body.trim().split(' ').sort()).toEqual(events.map(({ data }) => data.who).sort());
    expect(addsUp(await world.notify.ledger({ kind: 'follow' }), before.accepted + 51)).toBe(true);
  });

  it('N31: only digest keys that are equal as JSON merge, and nothing is lost', async () => {
    const keys = ['a', 'A', '1', 1, null, undefined, ''];
    for (const [index, digestKey] of keys.entries()) {
      await world.notify.digests.add('follow', {
        user: 'n31',
        key: `e${index}`,
        data: { who: `w${index}` },
        digestKey,
      });
    }
    await until(async () => (await world.notify.inbox.unread('n31')) === 6);
    const bodies = (await world.notify.inbox.list('n31')).map(({ body }) => body.trim()).sort();
    expect(bodies).toEqual(['w0', 'w1', 'w2', 'w3', 'w4 w5', 'w6']);
  });

  it('the inbox is live: unread counts as entries come and are read', async () => {
    const ending = new AbortController();
    const counts: number[] = [];
    const reading = (async () => {
      for await (const { unread } of world.notify.inbox.live({ user: 'live', signal: ending.signal })) {
        counts.push(unread);
        if (unread === 1) await world.notify.inbox.markRead('live');
        if (counts.length === 3) ending.abort();
      }
    })();
    await until(() => counts.length === 1);
    await world.notify.send('order', {
      user: 'live',
      key: 'k',
      data: { number: 1 },
      to: [{ channel: 'inbox', address: 'live' }],
    });
    await reading;
    expect(counts).toEqual([0, 1, 0]);
    expect((await world.notify.inbox.list('live'))[0]).toMatchObject({ title: 'Order', body: '1' });
  });

  it('N37: a retired destination is not called and says why; registered again it lives again', async () => {
    const destination = { channel: 'email', address: 'n37@example.test' } as const;
    const { people } = world.notify;
    await people.putDestination('n37', destination);
    await people.retire(destination, 'bounced');
    const send = async (key: string) => {
      const { deliveries } = await world.notify.send('order', { user: 'n37', key, data: { number: 1 } });
      await untilEnded(world.notify, [deliveries[0]!.id]);
      return world.notify.delivery(deliveries[0]!.id);
    };
    expect(await send('1')).toMatchObject({ state: 'suppressed', reason: 'destination retired: bounced' });
    await people.putDestination('n37', destination);
    expect(await send('2')).toMatchObject({ state: 'sent' });
    expect(email.calls('n37@example.test')).toHaveLength(1);
  });

  it('an erased user leaves nothing but the suppression list', async () => {
    const { notify } = world;
    const user = 'erased-user';
    const address = `${user}@example.test`;
    await notify.people.put(user, { locale: 'de', timeZone: 'Europe/Berlin' });
    await notify.people.putDestination(user, { channel: 'email', address });
    await notify.people.prefer(user, { kind: 'promo', channel: 'sms', enabled: false });
    await notify.people.retire({ channel: 'email', address: `old-${address}` }, 'bounced');
    await notify.digests.add('follow', { user, key: 'k', data: { who: 'somebody' } });
    const { deliveries, id } = await notify.send('order', {
      user,
      key: 'k',
      data: { number: 1 },
      to: [
        { channel: 'email', address },
        { channel: 'inbox', address: user },
      ],
    });
    const ids = deliveries.map((delivery) => delivery.id);
    await untilEnded(notify, ids);
    // The digest may just be on its way into the inbox: it is not written any more.
    await notify.people.erase(user);
    expect([await notify.get(id), await notify.people.get(user)]).toEqual([undefined, undefined]);
    const { rows: tables } = await database.query<{ name: string }>(
      `select table_name as name from information_schema.tables where table_schema = $1`,
      [world.schema.replaceAll('"', '')],
    );
    await until(async () => (await notify.ledger({ kind: 'follow' })).waiting === 0);
    const left: string[] = [];
    for (const { name } of tables) {
      const text = `select t::text as line from ${world.schema}.${name} t`;
      for (const { line } of (await database.query<{ line: string }>(text)).rows)
        if ([user, ...ids].some((mark) => line.includes(mark))) left.push(name);
    }
    expect(left).toEqual(['retired']);
  });
});
