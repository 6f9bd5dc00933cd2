/** N19: however many promotions hang at a slow provider, a code waits for none of them; and without a floor it would. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Database } from '../../src/database/index.js';
import { testServers } from '../database/test-databases.js';
import { within } from '../limits.js';
import { openWorld, quickKinds, scriptedProvider } from './world.js';
import { until } from '../../src/testing/until.js';

const [server] = testServers();
const slots = 20;

describe.skipIf(server === undefined)('a code behind a campaign (needs a PostgreSQL server)', () => {
  let database: Database;
  beforeAll(async () => {
    database = await server!.open();
  });
  afterAll(() => database.close());

  /** A worker all of whose slots that promotions may take hang in a call of theirs until `release`. */
  async function openBusyWorld(floors: boolean) {
    let release = (): void => {};
    const released = new Promise<void>((resolve) => (release = resolve));
    const hang = () => released.then(() => ({ kind: 'sent' }) as const);
    const push = scriptedProvider('push', [hang], { platform: 'fcm', timeoutMs: 120_000 });
    const sms = scriptedProvider('sms');
    const world = await openWorld({ database, providers: [push, sms], kinds: quickKinds });
    const to = [{ channel: 'push', address: 'token', details: { platform: 'fcm' } }] as const;
    const promos = Array.from({ length: 200 }, (_, index) => ({
      user: 'u',
      key: `p${index}`,
      data: { what: 'x' },
      to,
    }));
    await world.notify.sendMany('promo', promos);
    const worker = world.notify.worker({ slots, floors });
    await worker.start();
    // All slots, or all but the floor: the tests look again later.
    await until(() => push.calls.length === (floors ? slots - 1 : slots));
    const sendCode = async (index: number): Promise<void> => {
      const code = [{ channel: 'sms', address: '+41791234567' }] as const;
      await world.notify.send('otp', { user: 'u', key: `o${index}`, data: { code: '1' }, to: code });
    };
    const stop = async (): Promise<void> => {
      release();
      await worker.stop();
      await world.stop();
    };
    return { world, push, sms, sendCode, release, stop };
  }

  it('N19: is called by its floor while every other slot hangs', async () => {
    const { push, sms, sendCode, stop } = await openBusyWorld(true);
    expect(push.calls).toHaveLength(slots - 1);
    for (let index = 0; index < 10; index += 1) {
      const sentAtMs = performance.now();
      await sendCode(index);
      await until(() => sms.calls.length === index + 1);
      expect(performance.now() - sentAtMs).toBeLessThan(within(1_000));
    }
    expect(push.calls).toHaveLength(slots - 1);
    await stop();
  });

  it('waits for a slot of the others without it, so that this can fail', async () => {
    const { world, push, sms, sendCode, release, stop } = await openBusyWorld(false);
    expect(push.calls).toHaveLength(slots);
    await sendCode(0);
    // The sweep looks at what has not been called in time; nobody has taken it by then.
    const waits = () => world.notify.deliveries({ kind: 'otp', state: 'waiting' });
    const sweptAt = async (): Promise<number> => {
      const { rows } = await database.query<{ sweep_at: string }>(
        `select sweep_at from ${world.schema}.deliveries where kind = 'otp'`,
      );
      return Number(rows[0]?.sweep_at);
    };
    const firstLook = await sweptAt();
    await until(async () => (await sweptAt()) > firstLook);
    expect(await waits()).toHaveLength(1);
    expect(sms.calls).toHaveLength(0);
    release();
    await until(() => sms.calls.length === 1);
    await stop();
  });
});
