/** Cases that are seen on the wire: what counterparts got from the whole engine. One server, versions agree elsewhere. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Database } from '../../src/database/index.js';
import {
  createResendProvider,
  createSmtpProvider,
  createTwilioProvider,
  defineKinds,
} from '../../src/notify/index.js';
import {
  faultList,
  startHttpCounterpart,
  startResendCounterpart,
  startSmtpCounterpart,
  startTwilioCounterpart,
} from '../../src/testing/index.js';
import { testServers } from '../database/test-databases.js';
import {
  ambiguous,
  email,
  notAccepted,
  openWorld,
  quickKinds,
  scriptedProvider,
  sms,
  untilEnded,
} from './world.js';
import { until } from '../../src/testing/until.js';

const [server] = testServers();

describe.skipIf(server === undefined)('on the wire (needs a PostgreSQL server)', () => {
  let database: Database;
  beforeAll(async () => {
    database = await server!.open({ poolMax: 8 });
  });
  afterAll(() => database.close());

  it('N06: a copy made after a timeout has the same reference; both receipts belong to one delivery', async () => {
    const counterpart = await startTwilioCounterpart({
      authToken: 'token',
      faults: faultList([{ kind: 'late', delayMs: 2_000 }]),
    });
    const provider = createTwilioProvider({
      accountSid: 'AC1',
      authToken: 'token',
      from: '+1',
      url: counterpart.url,
      statusUrl: 'https://us.example.test/receipts',
      timeoutMs: 300,
    });
    const world = await openWorld({ database, providers: [provider], kinds: quickKinds });
    const worker = world.notify.worker();
    await worker.start();
    const { deliveries } = await world.notify.send('order', {
      user: 'u',
      key: 'k',
      data: { number: 1 },
      to: [sms],
    });
    const { id } = deliveries[0]!;
    await untilEnded(world.notify, [id]);
    expect(counterpart.messages).toHaveLength(2);
    const callbacks = new Set(counterpart.messages.map(({ statusCallback }) => statusCallback));
    expect([...callbacks]).toEqual([`https://us.example.test/receipts?reference=${id}`]);
    for (const message of counterpart.messages) {
      const request = counterpart.callback(message, { MessageStatus: 'delivered' });
      expect(await world.notify.receive('twilio', request)).toEqual({ status: 200, matched: 1 });
    }
    expect(await world.notify.delivery(id)).toMatchObject({
      state: 'sent',
      receipt: 'delivered',
      attempts: 2,
    });
    expect(await world.notify.ledger()).toMatchObject({ accepted: 1, sent: 1 });
    await worker.stop();
    await world.stop();
    await counterpart.stop();
  });

  it('N07: an SMTP server that reads everything and stays silent: one body for a promotion, all alike for an order', async () => {
    const counterpart = await startSmtpCounterpart();
    counterpart.script([{ at: 'body', does: 'silent' }], { repeat: true });
    const provider = createSmtpProvider({
      host: '127.0.0.1',
      port: counterpart.port,
      requireTls: false,
      from: 'a@example.test',
      timeoutMs: 600,
    });
    const world = await openWorld({
      database,
      providers: [provider],
      kinds: quickKinds,
      breaker: { unanswered: 100 },
    });
    const worker = world.notify.worker();
    await worker.start();
    const promo = await world.notify.send('promo', { user: 'u', key: 'k', data: { what: 'x' }, to: [email] });
    await untilEnded(world.notify, [promo.deliveries[0]!.id]);
    expect(counterpart.messages).toHaveLength(1);
    const order = await world.notify.send('order', { user: 'u', key: 'k', data: { number: 1 }, to: [email] });
    await untilEnded(world.notify, [order.deliveries[0]!.id]);
    expect(await world.notify.ledger()).toMatchObject({ sent: 0, ambiguous: 1, failed: 1 });
    const bodies = counterpart.messages.slice(1).map(({ raw }) => raw);
    expect(bodies).toHaveLength(5);
    expect(new Set(bodies).size).toBe(1);
    await worker.stop();
    await world.stop();
    await counterpart.stop();
  });

  it('N12: while an SMTP server closes before its greeting the slot is free, and afterwards the mail is sent once', async () => {
    const counterpart = await startSmtpCounterpart();
    counterpart.script([1, 2, 3].map(() => ({ at: 'greeting', does: 'close' })));
    const provider = createSmtpProvider({
      host: '127.0.0.1',
      port: counterpart.port,
      requireTls: false,
      from: 'a@example.test',
    });
    const other = scriptedProvider('sms');
    const world = await openWorld({ database, providers: [provider, other], kinds: quickKinds });
    const worker = world.notify.worker({ slots: 1, floors: false });
    await worker.start();
    const order = { user: 'u', data: { number: 1 } };
    const mail = await world.notify.send('order', { ...order, key: 'mail', to: [email] });
    await until(() => counterpart.connections().total > 0);
    const text = await world.notify.send('order', { ...order, key: 'text', to: [sms] });
    await untilEnded(world.notify, [mail.deliveries[0]!.id, text.deliveries[0]!.id]);
    expect(await world.notify.delivery(mail.deliveries[0]!.id)).toMatchObject({ state: 'sent', attempts: 1 });
    expect([counterpart.messages.length, counterpart.connections().total]).toEqual([1, 4]);
    expect(other.calls).toHaveLength(1);
    await worker.stop();
    await world.stop();
    await counterpart.stop();
  });

  it('N45: a template that prints the time is frozen: the same bytes under the same key', async () => {
    const counterpart = await startResendCounterpart({ faults: faultList([{ kind: 'cut', accepts: true }]) });
    let printed = 0;
    const kinds = defineKinds({
      clock: {
        ...quickKinds.order,
        templates: { email: { subject: () => `printed ${(printed += 1)}`, text: 'x' } },
      },
    });
    const provider = createResendProvider({ apiKey: 'k', from: 'a@example.test', url: counterpart.url });
    const world = await openWorld({ database, providers: [provider], kinds });
    const worker = world.notify.worker();
    await worker.start();
    const { deliveries } = await world.notify.send('clock', { user: 'u', key: 'k', data: {}, to: [email] });
    await untilEnded(world.notify, [deliveries[0]!.id]);
    const [first, second] = counterpart.requests;
    expect(second?.body).toEqual(first?.body);
    expect(second?.headers['idempotency-key']).toBe(first?.headers['idempotency-key']);
    expect([counterpart.sent.size, counterpart.otherPayloads(), counterpart.requests.length]).toEqual([
      1, 0, 2,
    ]);
    await worker.stop();
    await world.stop();
    await counterpart.stop();
  });

  it('N48: with nothing left of its time a code is not called, and expires', async () => {
    const provider = scriptedProvider('sms', [notAccepted]);
    const kinds = {
      ...quickKinds,
      otp: { ...quickKinds.otp, deadline: '600ms' } as never,
    } as typeof quickKinds;
    const world = await openWorld({ database, providers: [provider], kinds });
    const worker = world.notify.worker();
    await worker.start();
    const { deliveries } = await world.notify.send('otp', {
      user: 'u',
      key: 'k',
      data: { code: '1' },
      to: [sms],
    });
    await untilEnded(world.notify, [deliveries[0]!.id]);
    expect(await world.notify.delivery(deliveries[0]!.id)).toMatchObject({ state: 'expired', attempts: 0 });
    for (const { timeLeftMs } of provider.calls) expect(timeLeftMs).toBeGreaterThan(0);
    expect(Math.max(...provider.calls.map(({ timeLeftMs }) => timeLeftMs))).toBeLessThanOrEqual(600);
    await worker.stop();
    await world.stop();
  });

  it('N39: a destination that was registered again during the call, or after Apple’s time, stays', async () => {
    const destination = { channel: 'push', address: 'token', details: { platform: 'apns' } } as const;
    const provider = scriptedProvider('push', [], { platform: 'apns' });
    const world = await openWorld({ database, providers: [provider], kinds: quickKinds });
    const { people } = world.notify;
    await people.putDestination('u', destination);
    let retire: { reason: string; before?: number } = { reason: 'apns 410', before: 1_700_000_000_000 };
    let during = async (): Promise<void> => {};
    provider.attempt = async () => {
      await during();
      return { kind: 'refused', detail: 'apns 410', retire };
    };
    const worker = world.notify.worker();
    await worker.start();
    const retiredAfter = async (key: string): Promise<string | undefined> => {
      const { deliveries } = await world.notify.send('promo', { user: 'u', key, data: { what: 'x' } });
      await untilEnded(world.notify, [deliveries[0]!.id]);
      return (await people.get('u'))?.destinations[0]?.retired;
    };
    expect(await retiredAfter('older')).toBeUndefined();
    retire = { reason: 'gone' };
    during = async () => {
      const calledAt = Date.now();
      await until(() => Date.now() > calledAt + 1);
      await people.putDestination('u', destination);
    };
    expect(await retiredAfter('refreshed')).toBeUndefined();
    during = async () => {};
    expect(await retiredAfter('dead')).toBe('gone');
    await worker.stop();
    await world.stop();
  });

  it('N41: while a provider is down it is tried a few times, not thousands; afterwards all is sent', async () => {
    let down = true;
    const provider = scriptedProvider('email', [
      () => (down ? { kind: 'not-accepted', detail: 'not connected', unanswered: true } : { kind: 'sent' }),
    ]);
    const world = await openWorld({
      database,
      providers: [provider],
      kinds: quickKinds,
      breaker: { coolDownMs: 300 },
    });
    const worker = world.notify.worker({ slots: 10, floors: false });
    const requests = Array.from({ length: 200 }, (_, index) => ({
      user: 'u',
      key: `${index}`,
      data: { what: 'x' },
      to: [email],
    }));
    await world.notify.sendMany('promo', requests);
    const startedAtMs = performance.now();
    await worker.start();
    // The first ten at once, then a probe a cool-down.
    await until(() => provider.calls.length >= 14);
    const coolDowns = Math.ceil((performance.now() - startedAtMs) / 300);
    expect(provider.calls.length).toBeLessThanOrEqual(20 + coolDowns);
    expect(await world.notify.ledger()).toMatchObject({ waiting: 200 });
    down = false;
    await until(async () => (await world.notify.ledger()).sent === 200, { boundMs: 40_000 });
    await worker.stop();
    await world.stop();
  });

  it('N42: one error in many changes nothing; fifty within a minute do', async () => {
    let failing = 0;
    const first = scriptedProvider(
      'email',
      [
        () => {
          failing -= 1;
          return failing >= 0 ? ambiguous : { kind: 'sent' };
        },
      ],
      { name: 'first' },
    );
    const second = scriptedProvider('email', [{ kind: 'sent' }], { name: 'second' });
    const world = await openWorld({
      database,
      providers: [first, second],
      kinds: quickKinds,
      breaker: { errors: 10 },
    });
    const worker = world.notify.worker({ slots: 10, floors: false });
    await worker.start();
    const send = async (name: string, count: number) => {
      const requests = Array.from({ length: count }, (_, index) => ({
        user: 'u',
        key: `${name}${index}`,
        data: { what: 'x' },
        to: [email],
      }));
      const outcomes = await world.notify.sendMany('promo', requests);
      await untilEnded(
        world.notify,
        outcomes.map(({ deliveries }) => deliveries[0]!.id),
      );
    };
    failing = 1;
    await send('few', 40);
    expect([first.calls.length, second.calls.length]).toEqual([40, 0]);
    failing = 1_000;
    await send('many', 60);
    expect(second.calls.length).toBeGreaterThan(0);
    const before = first.calls.length;
    await send('after', 20);
    expect(first.calls.length).toBe(before);
    await worker.stop();
    await world.stop();
  });

  it('N18: no broken answer of a provider ends as sent', async () => {
    const counterpart = await startHttpCounterpart({
      faults: faultList([
        { kind: 'answer', status: 500 },
        { kind: 'answer', status: 422 },
        { kind: 'answer', status: 200, body: '<html>' },
        { kind: 'cut' },
      ]),
    });
    const provider = createResendProvider({ apiKey: 'k', from: 'a@example.test', url: counterpart.url });
    const world = await openWorld({ database, providers: [provider], kinds: quickKinds });
    const worker = world.notify.worker({ slots: 1, floors: false });
    await worker.start();
    const states: (string | undefined)[] = [];
    for (let index = 0; index < 4; index += 1) {
      const { deliveries } = await world.notify.send('promo', {
        user: 'u',
        key: `${index}`,
        data: { what: 'x' },
        to: [email],
      });
      await untilEnded(world.notify, [deliveries[0]!.id]);
      states.push((await world.notify.delivery(deliveries[0]!.id))?.state);
    }
    expect(states).toEqual(['ambiguous', 'failed', 'ambiguous', 'ambiguous']);
    await worker.stop();
    await world.stop();
    await counterpart.stop();
  });
});
