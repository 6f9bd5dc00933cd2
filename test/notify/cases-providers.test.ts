/** Receipts, failover, circuit breaker and rate: what the workers know together of their providers. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Database } from '../../src/database/index.js';
import type { Provider, ReceiptStatus } from '../../src/notify/index.js';
import { testDatabases } from '../database/test-databases.js';
import {
  ambiguous,
  email,
  notAccepted,
  openWorld,
  quickKinds,
  scriptedProvider,
  silence,
  sms,
  untilEnded,
  type ScriptedProvider,
} from './world.js';
import { until } from '../../src/testing/until.js';
import { within } from '../limits.js';

const receiptsByText: Partial<Provider> = {
  parseReceipts({ headers, body }) {
    if (headers['signature'] !== 'right') return { kind: 'signature-invalid' };
    return { kind: 'receipts', receipts: JSON.parse(Buffer.from(body).toString()) };
  },
};

function post(receipts: readonly object[], signature = 'right') {
  return {
    url: 'https://us.example.test/',
    headers: { signature },
    body: Buffer.from(JSON.stringify(receipts)),
  };
}

describe.each(testDatabases().slice(0, 2))('providers on $name', (testDatabase) => {
  let database: Database;
  beforeAll(async () => {
    database = await testDatabase.open();
  });
  afterAll(() => database.close());

  const order = { user: 'u', data: { number: 1 }, to: [email] };

  it('N24, N25, N26, N27: receipts come early, late, twice, in any order, and for nothing', async () => {
    const provider = scriptedProvider('email', [{ kind: 'sent' }], receiptsByText);
    const world = await openWorld({ database, providers: [provider], kinds: quickKinds });
    const { notify } = world;
    let count = 0;
    provider.attempt = async (request) => {
      (provider.calls as unknown[]).push(request);
      count += 1;
      const messageId = `m${count}`;
      // Early: before the answer to the call.
      if (request.kind === 'promo')
        await notify.receive('test-email', post([{ messageId, status: 'delivered' }]));
      if (request.content['subject'] === 'Order 26') return { kind: 'ambiguous', detail: 'timeout' };
      return { kind: 'sent', messageId };
    };
    await notify.changeKind('order', { retryAfter: '10m' });
    const worker = notify.worker();
    await worker.start();

    const early = await notify.send('promo', { user: 'u', key: 'n24', data: { what: 'x' }, to: [email] });
    await until(async () => (await notify.delivery(early.deliveries[0]!.id))?.receipt === 'delivered');
    expect(await notify.delivery(early.deliveries[0]!.id)).toMatchObject({
      state: 'sent',
      receipt: 'delivered',
    });

    const statuses: ReceiptStatus[] = ['queued', 'sent', 'delivered'];
    for (const [index, order_] of permutations(statuses).entries()) {
      const { deliveries } = await notify.send('order', { ...order, key: `n25-${index}` });
      await untilEnded(notify, [deliveries[0]!.id]);
      const { messageId } = (await notify.delivery(deliveries[0]!.id))!;
      for (const status of order_) {
        for (let twice = 0; twice < 2; twice += 1) {
          expect(await notify.receive('test-email', post([{ messageId, status }]))).toEqual({
            status: 200,
            matched: 1,
          });
        }
      }
      expect((await notify.delivery(deliveries[0]!.id))?.receipt).toBe('delivered');
      const shown = await notify.get((await notify.delivery(deliveries[0]!.id))!.notification);
      const events = shown!.deliveries[0]!.history.map(({ event }) => event).filter((event) =>
        event.startsWith('receipt'),
      );
      expect(events).toHaveLength(6);
    }

    const calls = provider.calls.length;
    const unsure = await notify.send('order', { ...order, key: 'n26', data: { number: 26 } });
    const { id } = unsure.deliveries[0]!;
    await until(
      async () => (await notify.delivery(id))?.state === 'waiting' && provider.calls.length > calls,
    );
    const receipt = { messageId: 'theirs', reference: id, status: 'delivered', cost: 0.07 };
    expect(await notify.receive('test-email', post([receipt]))).toEqual({ status: 200, matched: 1 });
    expect(await notify.delivery(id)).toMatchObject({
      state: 'sent',
      receipt: 'delivered',
      cost: 0.07,
      attempts: 1,
    });
    expect(provider.calls.length - calls).toBe(1);

    const unknown = { messageId: 'nobody', status: 'delivered' };
    expect(await notify.receive('test-email', post([unknown]))).toEqual({ status: 200, matched: 0 });
    expect((await notify.receive('test-email', post([unknown], 'wrong'))).status).toBe(401);
    await worker.stop();
    await world.stop();
  });

  it('N21, N42: a provider that never answers is left alone; the next one sends; a probe brings it back', async () => {
    let healthy = false;
    const first = scriptedProvider(
      'sms',
      [(request, context) => (healthy ? { kind: 'sent' } : silence(request, context))],
      {
        name: 'first',
        timeoutMs: 200,
      },
    );
    const second = scriptedProvider('sms', [{ kind: 'sent' }], { name: 'second' });
    const world = await openWorld({
      database,
      providers: [first, second],
      kinds: {
        ...quickKinds,
        otp: { ...quickKinds.otp, changeProvider: true } as never,
      } as typeof quickKinds,
      breaker: { coolDownMs: 1_000 },
    });
    const worker = world.notify.worker({ slots: 6 });
    await worker.start();
    const send = (key: string) =>
      world.notify.send('otp', { user: 'u', key, data: { code: key }, to: [sms] });
    const outcomes = [];
    for (let index = 0; index < 12; index += 1) outcomes.push(await send(`a${index}`));
    await untilEnded(
      world.notify,
      outcomes.map(({ deliveries }) => deliveries[0]!.id),
    );
    expect(await world.notify.ledger()).toMatchObject({ sent: 12, expired: 0, failed: 0 });
    const silentCalls = first.calls.length;
    expect(silentCalls).toBeLessThanOrEqual(12);
    const after = await send('after');
    await untilEnded(world.notify, [after.deliveries[0]!.id]);
    healthy = true;
    let probes = 0;
    await until(async () => {
      probes += 1;
      const one = await send(`probe${probes}`);
      await untilEnded(world.notify, [one.deliveries[0]!.id]);
      return (
        (await world.notify.delivery(one.deliveries[0]!.id))?.provider === 'first' &&
        first.calls.length > silentCalls + 1
      );
    });
    await worker.stop();
    await world.stop();
  });

  it('what the first provider declines goes to the next one at once, and back to the first after a pause', async () => {
    const first = scriptedProvider('email', [notAccepted], { name: 'first' });
    const second = scriptedProvider('email', [notAccepted, { kind: 'sent' }], { name: 'second' });
    const world = await openWorld({ database, providers: [first, second], kinds: quickKinds });
    const worker = world.notify.worker({ slots: 1, floors: false });
    await worker.start();
    const { deliveries } = await world.notify.send('promo', {
      user: 'u',
      key: 'k',
      data: { what: 'x' },
      to: [email],
    });
    await untilEnded(world.notify, [deliveries[0]!.id]);
    expect([first.calls.length, second.calls.length]).toEqual([2, 2]);
    expect(await world.notify.delivery(deliveries[0]!.id)).toMatchObject({
      state: 'sent',
      provider: 'second',
      attempts: 1,
    });
    await worker.stop();
    await world.stop();
  });

  it('N43: after an unknown outcome only a kind that allows it changes the provider', async () => {
    const first = scriptedProvider('email', [ambiguous, ambiguous, ambiguous, { kind: 'sent' }], {
      name: 'first',
    });
    const second = scriptedProvider('email', [{ kind: 'sent' }], { name: 'second' });
    const world = await openWorld({
      database,
      providers: [first, second],
      kinds: {
        ...quickKinds,
        otp: {
          ...quickKinds.otp,
          channels: ['email'],
          changeProvider: true,
          templates: { email: { text: 'x' } },
        } as never,
      },
    });
    const worker = world.notify.worker({ slots: 1, floors: false });
    await worker.start();
    const run = async (kind: 'otp' | 'order' | 'promo') => {
      const data = { number: 1, what: 'x', code: '1' };
      const { deliveries } = await world.notify.send(kind as 'order', {
        user: 'u',
        key: kind,
        data,
        to: [email],
      });
      await untilEnded(world.notify, [deliveries[0]!.id]);
      return world.notify.delivery(deliveries[0]!.id);
    };
    expect(await run('otp')).toMatchObject({ state: 'sent', provider: 'second', attempts: 2 });
    expect(await run('promo')).toMatchObject({ state: 'ambiguous', provider: 'first', attempts: 1 });
    expect(await run('order')).toMatchObject({ state: 'sent', provider: 'first', attempts: 2 });
    await worker.stop();
    await world.stop();
  });

  it('N20: the reserved share of a rate serves urgent kinds; the rate holds', async () => {
    const rate = { perSecond: 20, reserved: 6 };
    const provider = scriptedProvider('sms', [{ kind: 'sent' }], { rate });
    const world = await openWorld({ database, providers: [provider], kinds: quickKinds });
    const worker = world.notify.worker({ slots: 50 });
    const promos = Array.from({ length: 200 }, (_, index) => ({
      user: 'u',
      key: `p${index}`,
      data: { what: 'x' },
      to: [sms],
    }));
    await world.notify.sendMany('promo', promos);
    await worker.start();
    await until(() => provider.calls.length > 10);
    const otps = Array.from({ length: 8 }, (_, index) => ({
      user: 'u',
      key: `o${index}`,
      data: { code: '1' },
      to: [sms],
    }));
    const startedAtMs = performance.now();
    await world.notify.sendMany('otp', otps);
    await until(() => callsOf(provider, 'otp').length === 8);
    expect(performance.now() - startedAtMs).toBeLessThan(within(7_000));
    expect(callsOf(provider, 'promo').length).toBeLessThan(200);
    const times = provider.calls.map(({ startedAtMs: at }) => at);
    const most = Math.max(
      ...times.map((from) => times.filter((at) => at >= from && at < from + 1_000).length),
    );
    // The rate of a second and one chunk of 200 ms.
    expect(most).toBeLessThanOrEqual(rate.perSecond + rate.perSecond / 5 + 2);
    await worker.stop();
    await world.stop();
  });

  it('N40: after a 429 nothing is tried before its time, and the returns are spread', async () => {
    const provider = scriptedProvider('sms', [], {});
    provider.attempt = async (request) => {
      const again = provider.calls.some(({ reference }) => reference === request.reference);
      (provider.calls as unknown[]).push({ ...request, startedAtMs: performance.now() });
      return again ? { kind: 'sent' } : { kind: 'not-accepted', detail: 'http 429', retryAfterMs: 1_000 };
    };
    const world = await openWorld({ database, providers: [provider], kinds: quickKinds });
    const worker = world.notify.worker({ slots: 40 });
    const promos = Array.from({ length: 20 }, (_, index) => ({
      user: 'u',
      key: `p${index}`,
      data: { what: 'x' },
      to: [sms],
    }));
    await world.notify.sendMany('promo', promos);
    await worker.start();
    await until(async () => (await world.notify.ledger()).sent === 20, { boundMs: 30_000 });
    const byReference = new Map<string, number[]>();
    for (const { reference, startedAtMs } of provider.calls) {
      byReference.set(reference, [...(byReference.get(reference) ?? []), startedAtMs]);
    }
    const gaps = [...byReference.values()].map(([one = 0, two = 0]) => two - one);
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(995);
    await worker.stop();
    await world.stop();
  });

  it('a provider that refuses our credentials is stopped, and says so', async () => {
    const first = scriptedProvider('email', [{ kind: 'refused', detail: 'http 401', configuration: true }]);
    const world = await openWorld({ database, providers: [first], kinds: quickKinds });
    const worker = world.notify.worker();
    await worker.start();
    const one = await world.notify.send('order', { ...order, key: '1' });
    await untilEnded(world.notify, [one.deliveries[0]!.id]);
    await world.notify.send('order', { ...order, key: '2' });
    // What is sent after it on another channel is called, so the worker has had its time for it.
    const inbox = [{ channel: 'inbox', address: 'u' } as const];
    const later = await world.notify.send('order', { ...order, key: '3', to: inbox });
    await untilEnded(world.notify, [later.deliveries[0]!.id]);
    expect(first.calls).toHaveLength(1);
    expect((await world.notify.providers())[0]).toMatchObject({
      name: 'test-email',
      open: false,
      reason: 'configuration: http 401',
    });
    await worker.stop();
    await world.stop();
  });
});

const callsOf = (provider: ScriptedProvider, kind: string) =>
  provider.calls.filter((call) => call.kind === kind);

function permutations<T>(items: readonly T[]): T[][] {
  if (items.length <= 1) return [[...items]];
  return items.flatMap((item, index) =>
    permutations([...items.slice(0, index), ...items.slice(index + 1)]).map((rest) => [item, ...rest]),
  );
}
