/** Cases of the door, of retries and of what is left behind: one world on each kind of database, an address a test. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Database } from '../../src/database/index.js';
import type { Component } from '../../src/lifecycle.js';
import { testDatabases } from '../database/test-databases.js';
import {
  addsUp,
  ambiguous,
  notAccepted,
  openWorld,
  programmableProvider,
  quickKinds,
  refused,
  silence,
  untilEnded,
  type World,
} from './world.js';
import { until } from '../../src/testing/until.js';
import { within } from '../limits.js';

/** The embedded one and one server; that versions agree is shown by door.test.ts. */
describe.each(testDatabases().slice(0, 2))('cases on $name', (testDatabase) => {
  let database: Database;
  let world: World;
  let worker: Component;
  const email = programmableProvider('email');
  const sms = programmableProvider('sms');
  const push = programmableProvider('push', { platform: 'fcm' });
  let made = 0;
  const mail = () => ({ channel: 'email', address: `${(made += 1)}@example.test` }) as const;
  const phone = () => ({ channel: 'sms', address: `+4179${String((made += 1)).padStart(7, '0')}` }) as const;
  const token = () =>
    ({ channel: 'push', address: `token-${(made += 1)}`, details: { platform: 'fcm' } }) as const;
  const order = { data: { number: 7 } };

  beforeAll(async () => {
    database = await testDatabase.open();
    world = await openWorld({ database, providers: [email, sms, push], kinds: quickKinds });
    worker = world.notify.worker({ slots: 20 });
    await worker.start();
  });
  afterAll(async () => {
    await worker.stop();
    await world.stop();
    await database.close();
  });

  it('N02: a key that is known answers the first id and its present state, whatever the content', async () => {
    const to = [mail()];
    email.answers.set(to[0]!.address, [silence, { kind: 'sent' }]);
    const first = await world.notify.send('order', { user: 'n02', key: 'k', ...order, to });
    const waiting = await world.notify.send('order', { user: 'n02', key: 'k', ...order, to });
    expect(waiting).toMatchObject({ kind: 'duplicate', id: first.id });
    expect(['waiting', 'sending']).toContain(waiting.state);
    await untilEnded(world.notify, [first.deliveries[0]!.id]);
    expect(await world.notify.send('order', { user: 'n02', key: 'k', ...order, to })).toMatchObject({
      id: first.id,
      state: 'sent',
    });
    const other = await world.notify.send('order', { user: 'n02', key: 'k', data: { number: 8 }, to });
    expect(other).toMatchObject({ kind: 'conflict', id: first.id, state: 'sent' });
    expect(email.calls(to[0]!.address)).toHaveLength(2);
  });

  it('N03: a channel that is not accepted does not send the others again', async () => {
    const to = [phone(), mail()];
    email.answers.set(to[1]!.address, [notAccepted, notAccepted, { kind: 'sent' }]);
    const { deliveries } = await world.notify.send('order', { user: 'n03', key: 'k', ...order, to });
    await untilEnded(
      world.notify,
      deliveries.map(({ id }) => id),
    );
    expect([sms.calls(to[0]!.address).length, email.calls(to[1]!.address).length]).toEqual([1, 3]);
    const states = await Promise.all(
      deliveries.map(async ({ id }) => (await world.notify.delivery(id))?.state),
    );
    expect(states).toEqual(['sent', 'sent']);
  });

  it('N04: an adapter that throws harms its own delivery only', async () => {
    const to = [phone(), mail(), token()];
    const broken = (): never => {
      throw new TypeError('broken');
    };
    sms.answers.set(to[0]!.address, [broken, { kind: 'sent' }]);
    const { deliveries } = await world.notify.send('order', { user: 'n04', key: 'k', ...order, to });
    await untilEnded(
      world.notify,
      deliveries.map(({ id }) => id),
    );
    expect(sms.calls(to[0]!.address)).toHaveLength(2);
    expect(email.calls(to[1]!.address)).toHaveLength(1);
    expect(push.calls(to[2]!.address)).toHaveLength(1);
  });

  it('N05: of 100 tokens one is dead: 100 calls, 99 sent, one failed and retired', async () => {
    const to = Array.from({ length: 100 }, token);
    push.answers.set(to[36]!.address, [{ kind: 'refused', detail: 'http 410', retire: { reason: 'gone' } }]);
    const { deliveries } = await world.notify.send('order', { user: 'n05', key: 'k', ...order, to });
    await untilEnded(
      world.notify,
      deliveries.map(({ id }) => id),
    );
    expect(to.map(({ address }) => push.calls(address).length)).toEqual(to.map(() => 1));
    const states = await Promise.all(
      deliveries.map(async ({ id }) => (await world.notify.delivery(id))?.state),
    );
    expect(states.filter((state) => state === 'sent')).toHaveLength(99);
    expect(states[36]).toBe('failed');
    const later = await world.notify.send('order', { user: 'n05', key: 'later', ...order, to: [to[36]!] });
    await untilEnded(world.notify, [later.deliveries[0]!.id]);
    expect(await world.notify.delivery(later.deliveries[0]!.id)).toMatchObject({
      state: 'suppressed',
      reason: 'destination retired: gone',
    });
    expect(push.calls(to[36]!.address)).toHaveLength(1);
  });

  it('N07, N10: what stays unknown ends: at most once after one call, at least once after its attempts', async () => {
    const promo = [mail()];
    const orders = [mail()];
    email.answers.set(promo[0]!.address, [ambiguous]);
    email.answers.set(orders[0]!.address, [ambiguous]);
    const before = await world.notify.ledger();
    const a = await world.notify.send('promo', { user: 'n07', key: 'k', data: { what: 'x' }, to: promo });
    const b = await world.notify.send('order', { user: 'n07', key: 'k', ...order, to: orders });
    await untilEnded(world.notify, [a.deliveries[0]!.id, b.deliveries[0]!.id]);
    expect(await world.notify.delivery(a.deliveries[0]!.id)).toMatchObject({
      state: 'ambiguous',
      attempts: 1,
    });
    expect(await world.notify.delivery(b.deliveries[0]!.id)).toMatchObject({
      state: 'failed',
      attempts: 5,
      reason: 'attempts used up',
    });
    expect([email.calls(promo[0]!.address).length, email.calls(orders[0]!.address).length]).toEqual([1, 5]);
    const references = new Set(email.calls(orders[0]!.address).map(({ reference }) => reference));
    expect(references.size).toBe(1);
    expect(addsUp(await world.notify.ledger(), before.accepted + 2)).toBe(true);
  });

  it('N15: of four left in sending, one goes back and three end; the next sweep changes nothing', async () => {
    // On a channel that nobody serves here: what goes back stays where the test can see it.
    const make = async (kind: 'promo' | 'order', key: string): Promise<string> => {
      const to = [{ channel: 'webhook', address: 'https://example.test/' } as const];
      const data = { number: 1, what: 'x' };
      const outcome = await world.notify.send(kind as 'order', { user: 'n15', key, data, to });
      return outcome.deliveries[0]!.id;
    };
    const ids = {
      young: await make('order', 'young'),
      promo: await make('promo', 'promo'),
      late: await make('order', 'late'),
      fifth: await make('order', 'fifth'),
    };
    const now = `floor(extract(epoch from statement_timestamp()) * 1000)::bigint`;
    const leave = (id: string, attempts: number, expiresInMs: number) =>
      database.query(
        `update ${world.schema}.deliveries set state = 'sending', attempts = $2, attempt = $2, provider = 'webhook',
           created_at = ${now} - 3000, sending_until = ${now} - 1, sweep_at = ${now} - 1, expires_at = ${now} + $3::bigint
         where id = $1`,
        [id, attempts, expiresInMs],
      );
    await database.query(
      `update ${world.schema}.kinds set retry_after_ms = 5000, changed_by = 'operator' where name = 'order'`,
    );
    await leave(ids.young, 1, 12_000);
    await leave(ids.promo, 1, 80_000_000);
    await leave(ids.late, 1, -1);
    await leave(ids.fifth, 5, 3_000_000);
    const states = async () =>
      Promise.all(
        Object.values(ids).map(async (id) => {
          const { state, runAfter, attempts } = (await world.notify.delivery(id))!;
          return { state, runAfter, attempts };
        }),
      );
    await until(async () => (await states()).every(({ state }) => state !== 'sending'), { boundMs: 5_000 });
    const settled = await states();
    expect(settled.map(({ state }) => state)).toEqual(['waiting', 'ambiguous', 'expired', 'failed']);
    // One more that is left after that tells when the next sweep has been.
    const next = await make('promo', 'next');
    await leave(next, 1, 80_000_000);
    await until(async () => (await world.notify.delivery(next))!.state === 'ambiguous');
    expect(await states()).toEqual(settled);
    await database.query(`update ${world.schema}.kinds set retry_after_ms = 50 where name = 'order'`);
  });

  it('N17: in the caller’s transaction: nothing before the commit, one call after it, nothing after a rollback', async () => {
    const to = [mail()];
    const address = to[0]!.address;
    const send = (transaction: Parameters<Parameters<Database['transaction']>[0]>[0]) =>
      world.notify.send('order', { user: 'n17', key: 'k', ...order, to }, { transaction });
    await expect(
      database.transaction(async (transaction) => {
        await send(transaction);
        throw new Error('rolled back');
      }),
    ).rejects.toThrow('rolled back');
    let calledBefore = -1;
    const outcome = await database.transaction(async (transaction) => {
      const accepted = await send(transaction);
      await transaction.query('select pg_sleep(0.3)');
      calledBefore = email.calls(address).length;
      return accepted;
    });
    const committedAtMs = performance.now();
    expect(outcome).toMatchObject({ kind: 'accepted', duplicate: false });
    await untilEnded(world.notify, [outcome.deliveries[0]!.id]);
    expect(calledBefore).toBe(0);
    expect(email.calls(address)).toHaveLength(1);
    expect(email.calls(address)[0]!.startedAtMs - committedAtMs).toBeLessThan(within(2_000));
  });

  it('N22: a code that waits is never sent once a newer one is canceled for or takes its place', async () => {
    const to = [phone()];
    sms.answers.set(to[0]!.address, [ambiguous, { kind: 'sent' }]);
    await database.query(
      `update ${world.schema}.kinds set retry_after_ms = 60000, changed_by = 'operator' where name = 'otp'`,
    );
    await world.notify.changeKind('otp', { deadline: '10m' });
    const first = await world.notify.send('otp', { user: 'n22', key: 'one', data: { code: '111111' }, to });
    await until(async () => sms.calls(to[0]!.address).length === 1);
    await until(async () => (await world.notify.delivery(first.deliveries[0]!.id))?.state === 'waiting');
    const { canceled } = await world.notify.cancel({ user: 'n22', kind: 'otp', key: 'one' });
    expect(canceled).toEqual([first.deliveries[0]!.id]);
    const second = await world.notify.send('otp', { user: 'n22', key: 'two', data: { code: '222222' }, to });
    await untilEnded(world.notify, [second.deliveries[0]!.id]);
    expect(sms.calls(to[0]!.address).map(({ content }) => content['text'])).toEqual([
      'Your code is 111111',
      'Your code is 222222',
    ]);
    expect(await world.notify.delivery(first.deliveries[0]!.id)).toMatchObject({
      state: 'suppressed',
      reason: 'canceled',
    });
  });

  it('a message of ours that is refused fails at once and retires nobody', async () => {
    const to = [mail()];
    email.answers.set(to[0]!.address, [refused, { kind: 'sent' }]);
    const one = await world.notify.send('order', { user: 'r', key: '1', ...order, to });
    await untilEnded(world.notify, [one.deliveries[0]!.id]);
    const two = await world.notify.send('order', { user: 'r', key: '2', ...order, to });
    await untilEnded(world.notify, [two.deliveries[0]!.id]);
    expect((await world.notify.delivery(one.deliveries[0]!.id))?.state).toBe('failed');
    expect((await world.notify.delivery(two.deliveries[0]!.id))?.state).toBe('sent');
  });

  it('N36: the code of a secret kind is nowhere once its delivery has ended', async () => {
    const to = [phone()];
    const outcome = await world.notify.send('otp', { user: 'n36', key: 'k', data: { code: '482913' }, to });
    await untilEnded(world.notify, [outcome.deliveries[0]!.id]);
    const tables = ['notifications', 'deliveries', 'history', 'receipts', 'provider_messages'];
    for (const table of tables) {
      const { rows } = await database.query(`select t::text as line from ${world.schema}.${table} t`);
      expect(rows.filter(({ line }) => String(line).includes('482913'))).toEqual([]);
    }
    const { rows } = await database.query<{ salt: string | null }>(
      `select salt from ${world.schema}.notifications where id = $1`,
      [outcome.id],
    );
    expect(rows[0]?.salt).toBeNull();
  });

  it.each([
    ['key', { key: 'x\r\nBcc: b@example.test' }],
    ['to[0].address', { to: [{ channel: 'email', address: 'a@example.test\r\nBcc: b@example.test' }] }],
    ['to[0].address', { to: [{ channel: 'email', address: 'A <a@example.test>, b@example.test' }] }],
    ['order.email.subject', { data: { number: '1\r\nBcc: b@example.test' } }],
  ])('N34: %s with a second header in it is refused by name', async (field, change) => {
    const request = { user: 'n34', key: 'k', ...order, to: [mail()], ...change };
    await expect(world.notify.send('order', request as never)).rejects.toMatchObject({ field });
  });
});
