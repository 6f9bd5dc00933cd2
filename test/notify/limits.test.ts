/** How many of a kind one user, or one address, is sent within a window: refused at the door, with when to come again. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Database } from '../../src/database/index.js';
import { defineKinds, type Destination } from '../../src/notify/index.js';
import { createPostgresNotifyStore } from '../../src/notify/postgres/index.js';
import { ManualClock } from '../../src/testing/index.js';
import { testDatabases } from '../database/test-databases.js';
import { addsUp, kinds, openWorld, programmableProvider, quickKinds, type World } from './world.js';

const limitKinds = defineKinds({
  ...kinds,
  code: {
    ...kinds.otp,
    limits: [
      { per: 'user', count: 3, window: '10m' },
      { per: 'user', count: 4, window: '1d' },
      { per: 'destination', count: 5, window: '1h' },
    ],
  },
  weekly: { ...kinds.promo, limits: [{ per: 'user', count: 1, window: '7d' }] },
});
const minuteMs = 60_000;

describe.each(testDatabases().slice(0, 2))('a limit on $name', (testDatabase) => {
  let database: Database;
  let world: World<typeof limitKinds>;
  const clock = new ManualClock();
  let accepted = 0;
  const providers = () => [
    programmableProvider('sms'),
    programmableProvider('email'),
    programmableProvider('push', { platform: 'fcm' }),
  ];
  beforeAll(async () => {
    database = await testDatabase.open({ ...(testDatabase.hasSessions && { poolMax: 10 }) });
    world = await openWorld({ database, providers: providers(), kinds: limitKinds, clock });
  });
  afterAll(async () => {
    expect(addsUp(await world.notify.ledger(), accepted)).toBe(true);
    await world.stop();
    await database.close();
  });

  const phoneOf = (name: string): Destination => ({
    channel: 'sms',
    address: `+4179${String([...name].reduce((sum, letter) => sum * 31 + letter.charCodeAt(0), 7) % 9_999_999).padStart(7, '0')}`,
  });
  const request = (user: string, key: string, phone = user) => ({
    user,
    key,
    data: { code: '482913' },
    to: [phoneOf(phone)],
  });
  /** `sent`, or in how many milliseconds it may be. */
  const send = async (user: string, key: string, phone = user): Promise<unknown> => {
    try {
      const { kind } = await world.notify.send('code', request(user, key, phone));
      if (kind === 'accepted') accepted += 1;
      return kind;
    } catch (error) {
      const { code, retryAfterMs } = error as { code: string; retryAfterMs: number };
      return code === 'send-limited' ? retryAfterMs : error;
    }
  };

  it('lets as many through as it says, in any stretch of its window, and tells when the next one may come', async () => {
    expect(await send('ann', '1')).toBe('accepted');
    clock.advance(4 * minuteMs);
    expect(await send('ann', '2')).toBe('accepted');
    expect(await send('ann', '3')).toBe('accepted');
    expect(await send('ann', '4')).toBe(6 * minuteMs);
    clock.advance(6 * minuteMs - 1);
    expect(await send('ann', '4')).toBe(1);
    clock.advance(1);
    expect(await send('ann', '4')).toBe('accepted');
    // The other window: four a day.
    clock.advance(20 * minuteMs);
    expect(await send('ann', '5')).toBe(24 * 60 * minuteMs - 30 * minuteMs);
    // What was refused left nothing behind.
    expect(await world.notify.deliveries({ user: 'ann' })).toHaveLength(4);
  });

  it('answers a repeat with the first one, and does not count it', async () => {
    expect(await send('bob', '1')).toBe('accepted');
    for (let repeat = 0; repeat < 5; repeat += 1) expect(await send('bob', '1')).toBe('duplicate');
    expect([await send('bob', '2'), await send('bob', '3')]).toEqual(['accepted', 'accepted']);
    expect(await send('bob', '4')).toBe(10 * minuteMs);
    expect(await send('bob', '1')).toBe('duplicate');
  });

  it('of an address counts whoever sends to it, and other kinds and addresses are not touched', async () => {
    for (const user of ['p1', 'p2', 'p3', 'p4', 'p5'])
      expect(await send(user, 'k', 'pumped')).toBe('accepted');
    expect(await send('p6', 'k', 'pumped')).toBe(60 * minuteMs);
    expect(await send('p6', 'k', 'another')).toBe('accepted');
    const otp = await world.notify.send('otp', request('p6', 'k', 'pumped'));
    accepted += 1;
    expect(otp.kind).toBe('accepted');
  });

  it('counts with the transaction: a rollback gives back, and a refusal leaves the transaction as it was', async () => {
    const rollback = database.transaction(async (transaction) => {
      for (const key of ['1', '2', '3'])
        await world.notify.send('code', request('tom', key), { transaction });
      throw new Error('rolled back');
    });
    await expect(rollback).rejects.toThrow('rolled back');
    await database.transaction(async (transaction) => {
      await world.notify.send('code', request('tom', '1'), { transaction });
      const three = ['2', '3', '4'].map((key) => request('tom', key));
      await expect(world.notify.sendMany('code', three, { transaction })).rejects.toMatchObject({
        code: 'send-limited',
      });
      // None of the three was counted, nor written.
      for (const key of ['2', '3']) await world.notify.send('code', request('tom', key), { transaction });
    });
    accepted += 3;
    expect(await send('tom', '5')).toBe(10 * minuteMs);
    expect(await world.notify.deliveries({ user: 'tom' })).toHaveLength(3);
  });

  it('ends what is over it in a campaign as suppressed, and the campaign goes on', async () => {
    const recipients = ['eve', 'fay', 'gus'].map((user) => ({
      user,
      data: { what: 'x' },
      to: [{ channel: 'push', address: user, details: { platform: 'fcm' } } as const],
    }));
    await world.notify.campaigns.run({ id: 'one', kind: 'weekly', recipients: recipients.slice(0, 2) });
    const second = await world.notify.campaigns.run({ id: 'two', kind: 'weekly', recipients });
    accepted += 5;
    expect(second).toMatchObject({ state: 'streamed', taken: 3, waiting: 1, suppressed: 2 });
    const [eve] = await world.notify.deliveries({ user: 'eve', state: 'suppressed' });
    expect(eve?.reason).toBe('over the limit of its kind');
  });

  it('can be changed by an operator, is forgotten with its user, and purged after its window', async () => {
    for (const key of ['1', '2', '3']) expect(await send('una', key)).toBe('accepted');
    expect(await send('una', '4')).toBe(10 * minuteMs);
    await world.notify.changeKind('code', { limits: [{ per: 'user', count: 4, window: '10m' }] });
    expect(await send('una', '4')).toBe('accepted');
    await world.notify.people.erase('una');
    accepted -= 4;
    const counted = async () =>
      (await database.query(`select subject from ${world.schema}.recent_sends where kind = 'code'`)).rows;
    expect((await counted()).filter(({ subject }) => String(subject) === 'user una')).toEqual([]);
    expect(
      (await counted()).filter(({ subject }) => String(subject) === `sms ${phoneOf('una').address}`),
    ).toEqual([]);
    expect(await counted()).not.toEqual([]);
    clock.advance(25 * 60 * minuteMs);
    const store = createPostgresNotifyStore({ database, schema: world.schema.replaceAll('"', '') });
    await store.purge(database, { limit: 100, receiptsKeptMs: 1_000, now: clock.now() });
    expect(await counted()).toEqual([]);
  });

  it('of many at once through many connections as many get through as it says, and others are not held up', async () => {
    // Two processes' worth: what one engine sends at once it would count together anyway.
    const suffix = `limits_${process.pid}`;
    const engines = [
      await openWorld({ database, providers: providers(), kinds: limitKinds, suffix }),
      await openWorld({ database, providers: providers(), kinds: limitKinds, suffix }),
    ];
    const outcomes = await Promise.all(
      Array.from({ length: 60 }, async (_, index) => {
        const user = index % 2 === 0 ? 'hammered' : `other-${index}`;
        const { notify } = engines[Math.floor(index / 2) % 2]!;
        const sending = notify.send('code', request(user, String(index)));
        return sending.then(
          () => [user, 'accepted'],
          ({ code }: { code: string }) => [user, code],
        );
      }),
    );
    const of = (name: string) =>
      outcomes.filter(([user]) => user!.startsWith(name)).map(([, outcome]) => outcome);
    expect(of('hammered').filter((outcome) => outcome === 'accepted')).toHaveLength(3);
    expect(of('hammered').filter((outcome) => outcome === 'send-limited')).toHaveLength(27);
    expect(new Set(of('other'))).toEqual(new Set(['accepted']));
    for (const engine of engines) await engine.stop();
  });
});

describe('the definition of a limit', () => {
  it.each([
    ['limits[0].per', { per: 'planet', count: 1, window: '1m' }],
    ['limits[0].count', { per: 'user', count: 0, window: '1m' }],
    ['limits[0].window', { per: 'user', count: 1, window: 'soon' }],
  ])('is refused by its name: %s', (field, limit) => {
    const define = () => defineKinds({ otp: { ...quickKinds.otp, limits: [limit] as never } });
    expect(define).toThrow(expect.objectContaining({ field: `kinds.otp.${field}` }));
  });
});
