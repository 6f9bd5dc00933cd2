/** The retry rule, by the store's clock alone: what a dead process left behind, and when what was declined comes back. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Database } from '../../src/database/index.js';
import type { AttemptOutcome, NotifyStore } from '../../src/notify/index.js';
import { createPostgresNotifyStore } from '../../src/notify/postgres/index.js';
import { ManualClock } from '../../src/testing/index.js';
import { testDatabases } from '../database/test-databases.js';
import { ambiguous, email, openWorld, scriptedProvider, sms, type World } from './world.js';

describe.each(testDatabases())('the retry rule on $name', (testDatabase) => {
  let database: Database;
  let world: World;
  let store: NotifyStore;
  const clock = new ManualClock();

  beforeAll(async () => {
    database = await testDatabase.open();
    const providers = [scriptedProvider('sms'), scriptedProvider('email')];
    world = await openWorld({ database, providers, clock });
    store = createPostgresNotifyStore({ database, schema: world.schema.replaceAll('"', '') });
  });
  afterAll(async () => {
    await world.stop();
    await database.close();
  });

  async function send(kind: 'otp' | 'order' | 'promo', key: string): Promise<string> {
    const data = { code: '1', number: 1, what: 'x' };
    const to = [kind === 'otp' ? sms : email];
    const outcome = await world.notify.send(kind as 'order', { user: 'u', key, data, to });
    return outcome.deliveries[0]!.id;
  }
  const claim = (id: string) =>
    store.claim(database, {
      id,
      provider: 'p',
      alternative: undefined,
      timeoutMs: 1_000,
      marginMs: 1_000,
      now: clock.now(),
    });
  const settle = (id: string, attempt: number, outcome: AttemptOutcome, jitter = 0) =>
    store.settle(database, {
      id,
      attempt,
      provider: 'p',
      outcome,
      jitter,
      atOnce: false,
      sweepMs: 60_000,
      now: clock.now(),
    });
  const sweep = () =>
    store.settleLost(database, { limit: 100, jitter: 0, sweepMs: 60_000, now: clock.now() });

  it('N15: of an otp 3 s old, a promo, an otp past its 15 s and an order at its 5th of 5, the first goes back and three end', async () => {
    const fifth = await send('order', 'fifth');
    for (let attempt = 1; attempt < 5; attempt += 1) {
      expect(await claim(fifth)).toMatchObject({ kind: 'claimed', attempt });
      const settled = await settle(fifth, attempt, ambiguous);
      expect(settled).toMatchObject({ state: 'waiting' });
      clock.advance(settled.retryInMs ?? 0);
    }
    const late = await send('otp', 'late');
    clock.advance(13_000);
    const young = await send('otp', 'young');
    const promo = await send('promo', 'promo');
    for (const id of [fifth, late, young, promo]) expect(await claim(id)).toMatchObject({ kind: 'claimed' });
    expect(await sweep()).toEqual([]);
    clock.advance(3_000);
    await sweep();
    const states = async () =>
      Promise.all([young, promo, late, fifth].map(async (id) => (await store.delivery(database, id))?.state));
    expect(await states()).toEqual(['waiting', 'ambiguous', 'expired', 'failed']);
    expect((await store.delivery(database, young))?.runAfter).toBe(clock.now() + 2_000);
    expect(await sweep()).toEqual([]);
    expect(await states()).toEqual(['waiting', 'ambiguous', 'expired', 'failed']);
  });

  it('N40: after a Retry-After of 30 s nothing comes back before it, and the returns are spread over more than 10 s', async () => {
    const outcome: AttemptOutcome = { kind: 'not-accepted', detail: 'http 429', retryAfterMs: 30_000 };
    const returns: (number | undefined)[] = [];
    for (const jitter of [0, 0.5, 1]) {
      const id = await send('promo', `jitter-${jitter}`);
      await claim(id);
      returns.push((await settle(id, 1, outcome, jitter)).retryInMs);
    }
    expect(returns).toEqual([30_000, 36_000, 42_000]);
  });

  it('the pause after an unknown outcome doubles; what would come after the deadline ends at once', async () => {
    const order = await send('order', 'doubling');
    const pauses: (number | undefined)[] = [];
    for (let attempt = 1; attempt <= 3; attempt += 1) {
      await claim(order);
      const { retryInMs } = await settle(order, attempt, ambiguous);
      pauses.push(retryInMs);
      clock.advance(retryInMs ?? 0);
    }
    expect(pauses).toEqual([5_000, 10_000, 20_000]);
    const otp = await send('otp', 'no time');
    clock.advance(14_000);
    await claim(otp);
    expect(await settle(otp, 1, ambiguous)).toMatchObject({ state: 'expired', retryInMs: undefined });
  });
});
