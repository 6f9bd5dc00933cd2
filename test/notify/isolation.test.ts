/** N19: however many promotions wait at a slow provider, a code waits for none of them; and without a floor it would. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Database } from '../../src/database/index.js';
import { testServers } from '../database/test-databases.js';
import { openWorld, quickKinds, scriptedProvider, until } from './world.js';
import { within } from '../limits.js';

const [server] = testServers();

describe.skipIf(server === undefined)('a code behind a campaign', () => {
  let database: Database;
  beforeAll(async () => {
    database = await server!.open();
  });
  afterAll(() => database.close());

  /** The longest wait of a code in milliseconds, while every shared slot hangs in a promotion's call of 2 s. */
  async function longestWait(floors: boolean): Promise<number> {
    const push = scriptedProvider(
      'push',
      [() => new Promise((resolve) => setTimeout(() => resolve({ kind: 'sent' }), 2_000))],
      { platform: 'fcm', timeoutMs: 30_000 },
    );
    const sms = scriptedProvider('sms', [
      () => new Promise((resolve) => setTimeout(() => resolve({ kind: 'sent' }), 50)),
    ]);
    const world = await openWorld({ database, providers: [push, sms], kinds: quickKinds });
    const to = [{ channel: 'push', address: 'token', details: { platform: 'fcm' } }] as const;
    const promos = Array.from({ length: 200 }, (_, index) => ({
      user: 'u',
      key: `p${index}`,
      data: { what: 'x' },
      to,
    }));
    await world.notify.sendMany('promo', promos);
    const worker = world.notify.worker({ slots: 20, floors });
    await worker.start();
    await until(() => push.calls.length >= 19);
    const sentAt = new Map<string, number>();
    for (let index = 0; index < 10; index += 1) {
      const { deliveries } = await world.notify.send('otp', {
        user: 'u',
        key: `o${index}`,
        data: { code: '1' },
        to: [{ channel: 'sms', address: '+41791234567' }],
      });
      sentAt.set(deliveries[0]!.id, performance.now());
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    await until(() => sms.calls.length === 10);
    await worker.stop({ deadlineMs: 0 });
    await world.stop();
    return Math.max(...sms.calls.map(({ reference, startedAtMs }) => startedAtMs - sentAt.get(reference)!));
  }

  it('N19: waits under a second with its floor', async () => {
    expect(await longestWait(true)).toBeLessThan(within(1_000));
  });

  it('waits for a slow call without it, so that this can fail', async () => {
    expect(await longestWait(false)).toBeGreaterThan(1_000);
  });
});
