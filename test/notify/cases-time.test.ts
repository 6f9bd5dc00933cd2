/** N30: quiet hours by a clock that is moved by hand, on the days when clocks change and on those around them. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Database } from '../../src/database/index.js';
import { ManualClock } from '../../src/testing/index.js';
import { testDatabases } from '../database/test-databases.js';
import { email, openWorld, programmableProvider, sms, type World } from './world.js';
import { until } from '../../src/testing/until.js';

const hourMs = 3_600_000;
/** The first day on which the clock goes forward, and the first on which it goes back; Kathmandu's never does. */
const changes: Readonly<Record<string, readonly string[]>> = {
  'Europe/Berlin': ['2026-03-29', '2026-10-25'],
  'America/New_York': ['2026-03-08', '2026-11-01'],
  'Australia/Lord_Howe': ['2026-04-05', '2026-10-04'],
  'Asia/Kathmandu': ['2026-03-29', '2026-10-25'],
};

describe.each(testDatabases().slice(0, 2))('N30: quiet hours on $name', (testDatabase) => {
  let database: Database;
  let world: World;
  const clock = new ManualClock();
  const providers = [programmableProvider('email'), programmableProvider('sms')] as const;
  beforeAll(async () => {
    database = await testDatabase.open();
    world = await openWorld({ database, providers, clock });
  });
  afterAll(async () => {
    await world.stop();
    await database.close();
  });

  const localTime = (at: number, timeZone: string): string =>
    new Intl.DateTimeFormat('sv-SE', { timeZone, dateStyle: 'short', timeStyle: 'short' }).format(at);
  const runAfterOf = async (id: string): Promise<number> => (await world.notify.delivery(id))!.runAfter;

  it.each(Object.entries(changes))(
    'in %s hold until 07:00 of the local day, and a code passes',
    async (timeZone, days) => {
      await world.notify.people.put(timeZone, { timeZone, quietHours: { from: '22:00', until: '07:00' } });
      for (const day of days) {
        for (const around of [-1, 0, 1]) {
          const midnight = Date.parse(`${day}T00:00:00Z`) + around * 24 * hourMs;
          // Through the whole day: whatever the offset, some of these are at night.
          for (let hour = 0; hour < 24; hour += 3) {
            const now = midnight + hour * hourMs;
            clock.set(now);
            const key = `${timeZone} ${now}`;
            const order = { user: timeZone, key, data: { number: 1 }, to: [email] };
            const held = await runAfterOf((await world.notify.send('order', order)).deliveries[0]!.id);
            const code = { user: timeZone, key, data: { code: '1' }, to: [sms] };
            expect(await runAfterOf((await world.notify.send('otp', code)).deliveries[0]!.id)).toBe(now);
            const local = localTime(now, timeZone).slice(11);
            const isNight = local >= '22:00' || local < '07:00';
            expect([key, held > now]).toEqual([key, isNight]);
            if (!isNight) continue;
            expect(localTime(held, timeZone).slice(11)).toBe('07:00');
            // Never a night too far: a night is at most 9 h and the hour that is set back.
            expect(held - now).toBeLessThanOrEqual(10 * hourMs);
          }
        }
      }
    },
  );

  // The worker polls by real time: once is enough.
  it.skipIf(!testDatabase.hasSessions)(
    'let go within a minute of their end (by real time: on the servers is enough)',
    async () => {
      const now = Date.parse('2026-10-25T02:00:00Z');
      clock.set(now);
      await world.notify.people.put('one', {
        timeZone: 'Europe/Berlin',
        quietHours: { from: '22:00', until: '07:00' },
      });
      const to = [{ channel: 'email', address: 'one@example.test' } as const];
      await world.notify.send('order', { user: 'one', key: 'k', data: { number: 1 }, to });
      const worker = world.notify.worker({ slots: 2, floors: false });
      await worker.start();
      const end = Date.parse('2026-10-25T06:00:00Z');
      clock.set(end - 60_000);
      const marker = await world.notify.send('otp', {
        user: 'two',
        key: 'k',
        data: { code: '1' },
        to: [sms],
      });
      await until(async () => (await world.notify.delivery(marker.deliveries[0]!.id))?.state === 'sent');
      expect(providers[0].calls('one@example.test')).toHaveLength(0);
      clock.set(end + 30_000);
      await until(() => providers[0].calls('one@example.test').length === 1);
      await worker.stop();
    },
  );

  it('hold what was accepted by day and comes to its turn at night, and its history says why', async () => {
    clock.set(Date.parse('2026-11-20T12:00:00Z'));
    const address = 'turn@example.test';
    const to = [{ channel: 'email', address } as const];
    const { deliveries, id: notification } = await world.notify.send('order', {
      user: 'turn',
      key: 'k',
      data: { number: 1 },
      to,
    });
    const { id } = deliveries[0]!;
    const { expiresAt } = (await world.notify.delivery(id))!;
    const quietHours = { from: '12:00', until: '14:00' };
    await world.notify.people.put('turn', { timeZone: 'UTC', quietHours });
    clock.advance(60_000);
    const worker = world.notify.worker({ slots: 2, floors: false });
    await worker.start();
    await until(async () => (await world.notify.delivery(id))!.runAfter > clock.now());
    const end = Date.parse('2026-11-20T14:00:00Z');
    expect(await world.notify.delivery(id)).toMatchObject({
      state: 'waiting',
      attempts: 0,
      runAfter: end,
      // By as much as it was held.
      expiresAt: expiresAt + end - clock.now(),
    });
    expect(providers[0].calls(address)).toHaveLength(0);
    clock.set(end);
    await until(() => providers[0].calls(address).length === 1);
    await until(async () => (await world.notify.delivery(id))!.state === 'sent');
    await worker.stop();
    const history = (await world.notify.get(notification))!.deliveries[0]!.history;
    expect(history.map(({ event, detail }) => [event, detail])).toEqual([
      ['accepted', undefined],
      ['sending', undefined],
      ['held', 'quiet hours'],
      ['sending', undefined],
      ['sent', undefined],
    ]);
  });
});
