/** Cases that need several sessions or two engines: one PostgreSQL server. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Database } from '../../src/database/index.js';
import { createPostgresNotifyStore } from '../../src/notify/postgres/index.js';
import { testServers } from '../database/test-databases.js';
import {
  addsUp,
  ambiguous,
  email,
  openWorld,
  quickKinds,
  scriptedProvider,
  silence,
  untilEnded,
} from './world.js';
import { until } from '../../src/testing/until.js';

const [server] = testServers();

describe.skipIf(server === undefined)('several sessions (needs a PostgreSQL server)', () => {
  let database: Database;
  beforeAll(async () => {
    database = await server!.open({ poolMax: 12 });
  });
  afterAll(() => database.close());

  it('N01: repeats wait for the first one, and find it', async () => {
    const provider = scriptedProvider('email');
    const world = await openWorld({ database, providers: [provider], kinds: quickKinds });
    const request = { user: 'u', key: 'k', data: { number: 1 }, to: [email] };
    let opened = (): void => {};
    const held = new Promise<void>((resolve) => (opened = resolve));
    const first = database.transaction(async (transaction) => {
      const outcome = await world.notify.send('order', request, { transaction });
      opened();
      await transaction.query('select pg_sleep(0.5)');
      return outcome;
    });
    await held;
    const [one, two, three] = await Promise.all([
      first,
      world.notify.send('order', request),
      world.notify.send('order', request),
    ]);
    expect([one.kind, two.kind, three.kind]).toEqual(['accepted', 'duplicate', 'duplicate']);
    expect(new Set([one.id, two.id, three.id]).size).toBe(1);
    const worker = world.notify.worker();
    await worker.start();
    await untilEnded(world.notify, [one.deliveries[0]!.id]);
    expect(provider.calls).toHaveLength(1);
    await worker.stop();
    await world.stop();
  });

  it('of 200 sends at once under 20 keys, 20 are accepted and called', async () => {
    const provider = scriptedProvider('email');
    const world = await openWorld({ database, providers: [provider], kinds: quickKinds });
    const worker = world.notify.worker();
    await worker.start();
    const outcomes = await Promise.all(
      Array.from({ length: 200 }, (_, index) =>
        world.notify.send('promo', { user: 'u', key: `k${index % 20}`, data: { what: 'x' }, to: [email] }),
      ),
    );
    expect(outcomes.filter(({ kind }) => kind === 'accepted')).toHaveLength(20);
    expect(outcomes.filter(({ kind }) => kind === 'conflict')).toHaveLength(0);
    await until(async () => (await world.notify.ledger()).waiting === 0);
    expect(provider.calls).toHaveLength(20);
    expect(addsUp(await world.notify.ledger(), 20)).toBe(true);
    await worker.stop();
    await world.stop();
  });

  it('N08: two workers: no second call while the first attempt is inside its time', async () => {
    const provider = scriptedProvider('email', [silence, { kind: 'sent' }], { timeoutMs: 600 });
    const worlds = [];
    const workers = [];
    for (let index = 0; index < 2; index += 1) {
      const world = await openWorld({
        database,
        providers: [provider],
        kinds: quickKinds,
        suffix: `n08_${process.pid}`,
      });
      worlds.push(world);
      workers.push(world.notify.worker({ leaseMs: 100 }));
    }
    for (const worker of workers) await worker.start();
    const { deliveries } = await worlds[0]!.notify.send('order', {
      user: 'u',
      key: 'k',
      data: { number: 1 },
      to: [email],
    });
    await untilEnded(worlds[0]!.notify, [deliveries[0]!.id]);
    const [first, second] = provider.calls;
    expect(provider.calls).toHaveLength(2);
    expect(second!.startedAtMs - first!.startedAtMs).toBeGreaterThan(600);
    expect((await worlds[0]!.notify.delivery(deliveries[0]!.id))?.state).toBe('sent');
    for (const worker of workers) await worker.stop();
    for (const world of worlds) await world.stop();
  });

  it('N08: of many that ask for a delivery at once one gets it, and nobody while that one may be sending', async () => {
    const world = await openWorld({ database, providers: [scriptedProvider('email')], kinds: quickKinds });
    const store = createPostgresNotifyStore({ database, schema: world.schema.replaceAll('"', '') });
    const { deliveries } = await world.notify.send('order', {
      user: 'u',
      key: 'k',
      data: { number: 1 },
      to: [email],
    });
    const { id } = deliveries[0]!;
    const ask = (now?: number) =>
      store.claim(database, {
        id,
        provider: 'p',
        alternative: undefined,
        timeoutMs: 60_000,
        marginMs: 5_000,
        now,
      });
    const claims = await Promise.all(Array.from({ length: 10 }, () => ask()));
    expect(claims.map(({ kind }) => kind).sort()).toEqual([
      'claimed',
      ...Array.from({ length: 9 }, () => 'later'),
    ]);
    expect(await ask(Date.now() + 64_000)).toMatchObject({ kind: 'later' });
    const outcome = { kind: 'ambiguous', detail: 'x' } as const;
    const answer = { id, provider: 'p', outcome, jitter: 0, atOnce: false, sweepMs: 1_000, now: undefined };
    expect(await store.settle(database, { ...answer, attempt: 2 })).toMatchObject({
      moved: false,
      state: 'sending',
    });
    expect(await store.settle(database, { ...answer, attempt: 1 })).toMatchObject({
      moved: true,
      state: 'waiting',
    });
    expect(await store.settle(database, { ...answer, attempt: 1 })).toMatchObject({
      moved: false,
      state: 'waiting',
    });
    const late = { ...answer, attempt: 1, outcome: { kind: 'sent' } as const };
    expect(await store.settle(database, late)).toMatchObject({ moved: true, state: 'sent' });
    await world.stop();
  });

  it('N23: 200 calls in flight hold no connection: the door stays open on a pool of 10', async () => {
    const small = await server!.open({ poolMax: 10, acquireTimeoutMs: 2_000 });
    let running = 0;
    let most = 0;
    let open = (): void => {};
    const opened = new Promise<void>((resolve) => (open = resolve));
    const provider = scriptedProvider(
      'email',
      [
        async () => {
          running += 1;
          most = Math.max(most, running);
          await opened;
          running -= 1;
          return { kind: 'sent' };
        },
      ],
      { timeoutMs: 60_000 },
    );
    const world = await openWorld({ database: small, providers: [provider], kinds: quickKinds });
    const worker = world.notify.worker({ slots: 200, floors: false });
    await worker.start();
    const request = (key: string) => ({ user: 'u', key, data: { number: 1 }, to: [email] });
    await world.notify.sendMany(
      'order',
      Array.from({ length: 200 }, (_, index) => request(`a${index}`)),
    );
    await until(() => running === 200);
    const { rows } = await small.query<{ open: string }>(
      `select count(*) as open from pg_stat_activity where datname = current_database() and state like 'idle in transaction%'`,
    );
    expect(Number(rows[0]?.open)).toBe(0);
    await Promise.all(
      Array.from({ length: 100 }, (_, index) => world.notify.send('order', request(`b${index}`))),
    );
    expect(most).toBe(200);
    open();
    await until(async () => (await world.notify.ledger()).sent === 300);
    await worker.stop();
    await world.stop();
    await small.close();
  });

  it('a worker that stops lets its calls end and writes their answers down', async () => {
    const provider = scriptedProvider('email', [
      () => new Promise((resolve) => setTimeout(() => resolve({ kind: 'sent' }), 200)),
    ]);
    const world = await openWorld({ database, providers: [provider], kinds: quickKinds });
    const worker = world.notify.worker();
    await worker.start();
    await world.notify.send('promo', { user: 'u', key: 'k', data: { what: 'x' }, to: [email] });
    await until(() => provider.calls.length === 1);
    await worker.stop();
    expect(await world.notify.ledger()).toMatchObject({ sent: 1, ambiguous: 0 });
    await world.stop();
  });

  it('a wake-up that the queue has lost is replaced', async () => {
    const provider = scriptedProvider('email', [ambiguous, { kind: 'sent' }]);
    const world = await openWorld({ database, providers: [provider], kinds: quickKinds });
    const { deliveries } = await world.notify.send('order', {
      user: 'u',
      key: 'k',
      data: { number: 1 },
      to: [email],
    });
    expect(await world.queue.purge('notify-email', 'pending')).toBe(1);
    const worker = world.notify.worker();
    await worker.start();
    await untilEnded(world.notify, [deliveries[0]!.id]);
    expect((await world.notify.delivery(deliveries[0]!.id))?.state).toBe('sent');
    await worker.stop();
    await world.stop();
  });

  it('a digest that is being closed while its user is erased leaves nothing of the user', async () => {
    const world = await openWorld({ database, providers: [scriptedProvider('email')], kinds: quickKinds });
    const store = createPostgresNotifyStore({ database, schema: world.schema.replaceAll('"', '') });
    const digest = { user: 'race', kind: 'order', key: 'null', now: undefined };
    await store.joinDigest(database, { ...digest, id: 'd', event: 'e', data: '{}', windowMs: 1 });
    let closed = (): void => {};
    const isClosed = new Promise<void>((resolve) => (closed = resolve));
    const closing = database.transaction(async (transaction) => {
      expect(await store.closeDigest(transaction, { id: 'd', now: Date.now() + 60_000 })).toBeDefined();
      closed();
      const waits = 'select 1 from pg_locks where not granted';
      await until(async () => (await transaction.query(waits)).rowCount > 0);
      const request = { user: 'race', key: 'digest:d', data: { number: 1 }, to: [email] };
      await world.notify.send('order', request, { transaction });
    });
    await isClosed;
    const erasing = world.notify.people.erase('race');
    await closing;
    await erasing;
    expect(await world.notify.deliveries({ user: 'race' })).toEqual([]);
    expect((await world.notify.ledger()).accepted).toBe(0);
    await world.stop();
  });
});
