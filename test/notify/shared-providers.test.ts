/** What all workers know together of a provider: its tokens, its probes, and the kinds that they obey. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Database } from '../../src/database/index.js';
import type { NotifyStore } from '../../src/notify/index.js';
import { createPostgresNotifyStore } from '../../src/notify/postgres/index.js';
import { testDatabases } from '../database/test-databases.js';
import { openWorld, programmableProvider, quickKinds, type World } from './world.js';

describe.each(testDatabases().slice(0, 2))('shared by all workers on $name', (testDatabase) => {
  let database: Database;
  let world: World;
  let store: NotifyStore;
  const names = ['late', 'busy', 'probed'];
  beforeAll(async () => {
    database = await testDatabase.open({ ...(testDatabase.hasSessions && { poolMax: 10 }) });
    const providers = names.map((name) => programmableProvider('sms', { name }));
    world = await openWorld({ database, providers, kinds: quickKinds, suffix: `shared_${process.pid}` });
    store = createPostgresNotifyStore({ database, schema: world.schema.replaceAll('"', '') });
  });
  afterAll(async () => {
    await world.stop();
    await database.close();
  });

  const take = async (name: string, wanted: number, now?: number): Promise<number> =>
    (
      await store.takeTokens(database, {
        name,
        wanted,
        urgent: false,
        perSecond: 100,
        reserved: 0,
        capacityMs: 200,
        now,
      })
    ).granted;

  it('a caller that has waited for the row, with an older time, does not refill the tokens of that time again', async () => {
    const at = 1_790_000_000_000;
    expect(await take('late', 100, at)).toBe(20);
    let granted = 0;
    for (let round = 0; round < 20; round += 1) {
      granted += await take('late', 100, at - 50);
      granted += await take('late', 100, at);
    }
    expect(granted).toBe(0);
    expect(await take('late', 100, at + 100)).toBe(10);
  });

  it('many that ask at once together never get more than the rate', async () => {
    const startedAt = performance.now();
    let granted = 0;
    const ask = async (): Promise<void> => {
      for (let round = 0; round < 20; round += 1) granted += await take('busy', 5);
    };
    await Promise.all(Array.from({ length: 8 }, ask));
    const seconds = (performance.now() - startedAt) / 1_000;
    expect(granted).toBeLessThanOrEqual(Math.ceil(100 * seconds) + 20);
  });

  it('one in all probes a provider whose breaker has been open for its time, once a cool-down', async () => {
    const at = 1_790_000_000_000;
    const report = {
      calls: 5,
      errors: 5,
      unanswered: 5,
      answered: false,
      configuration: undefined,
      pausedMs: undefined,
    };
    const limits = { errors: 50, share: 0.2, windowMs: 60_000, unanswered: 5, coolDownMs: 30_000 };
    const opened = await store.reportProvider(database, { name: 'probed', report, limits, now: at });
    expect(opened).toMatchObject({ justOpened: true, openInMs: 30_000 });
    const probes = async (now: number): Promise<number> => {
      const asked = Array.from({ length: 10 }, () =>
        store.takeProbe(database, { name: 'probed', probeMs: 10_000, now }),
      );
      return (await Promise.all(asked)).filter((mine) => mine).length;
    };
    expect(await probes(at + 29_999)).toBe(0);
    expect(await probes(at + 30_000)).toBe(1);
    expect(await probes(at + 39_999)).toBe(0);
    // The one that took it has died: the next one may.
    expect(await probes(at + 40_000)).toBe(1);
  });

  it('what an operator has changed of a kind stays when a program starts that says otherwise', async () => {
    await world.notify.changeKind('order', { deadline: '2h', attemptsMax: 7 });
    const other = await openWorld({
      database,
      providers: [programmableProvider('sms', { name: 'late' })],
      kinds: quickKinds,
      suffix: `shared_${process.pid}`,
    });
    for (const { notify } of [world, other]) {
      const kinds = await notify.kinds();
      expect(kinds.find(({ name }) => name === 'order')).toMatchObject({
        deadlineMs: 7_200_000,
        attemptsMax: 7,
      });
      expect(kinds.find(({ name }) => name === 'promo')).toMatchObject({ deadlineMs: 86_400_000 });
    }
    await other.stop();
  });
});
