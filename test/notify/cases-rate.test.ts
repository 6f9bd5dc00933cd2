/** N20: the reserved share of a provider's rate, and what happens without it. By a clock that is moved by hand. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Database } from '../../src/database/index.js';
import type { NotifyStore } from '../../src/notify/index.js';
import { createPostgresNotifyStore } from '../../src/notify/postgres/index.js';
import { ManualClock } from '../../src/testing/index.js';
import { testDatabases } from '../database/test-databases.js';
import { openWorld, programmableProvider, type World } from './world.js';

describe.each(testDatabases().slice(0, 2))('N20: a rate shared with promotions on $name', (testDatabase) => {
  let database: Database;
  let world: World;
  let store: NotifyStore;
  const clock = new ManualClock();
  const perSecond = 10;
  const names = ['reserved', 'shared', 'idle'];
  beforeAll(async () => {
    database = await testDatabase.open();
    const providers = names.map((name) => programmableProvider('sms', { name }));
    world = await openWorld({ database, providers, clock });
    store = createPostgresNotifyStore({ database, schema: world.schema.replaceAll('"', '') });
  });
  afterAll(async () => {
    await world.stop();
    await database.close();
  });

  const take = async (name: string, urgent: boolean, reserved: number): Promise<number> => {
    const request = { name, wanted: 2, urgent, perSecond, reserved, capacityMs: 200, now: clock.now() };
    return (await store.takeTokens(database, request)).granted;
  };

  /** Promotions ask first at every moment of 7 s; answers what codes and promotions get. */
  async function sevenSeconds(
    name: string,
    reserved: number,
  ): Promise<{ codes: number; promotions: number }> {
    let codes = 0;
    let promotions = 0;
    for (let step = 0; step < 140; step += 1) {
      clock.advance(50);
      promotions += await take(name, false, reserved);
      codes += await take(name, true, reserved);
    }
    return { codes, promotions };
  }

  it('20 codes are called within 7 s though promotions ask first every time, and the rate holds', async () => {
    const { codes, promotions } = await sevenSeconds('reserved', 3);
    expect(codes).toBeGreaterThanOrEqual(20);
    expect(codes + promotions).toBeLessThanOrEqual(perSecond * 7 + perSecond / 5);
  });

  it('without the reserve they get nothing, so that this can fail', async () => {
    const { codes, promotions } = await sevenSeconds('shared', 0);
    expect(codes).toBe(0);
    expect(promotions).toBeGreaterThanOrEqual(perSecond * 7 - 2);
  });

  it('promotions never touch the reserve, and codes may take the common share too', async () => {
    clock.advance(10_000);
    let promotions = 0;
    for (let ask = 0; ask < 5; ask += 1) promotions += await take('idle', false, 3);
    expect(promotions).toBe(1);
    expect(await take('idle', true, 3)).toBe(1);
    clock.advance(10_000);
    expect(await take('idle', true, 3)).toBe(2);
  });
});
