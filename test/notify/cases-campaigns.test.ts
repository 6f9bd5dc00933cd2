/** Campaigns: a stream of recipients that is begun again, paused, resumed and canceled, on each kind of database. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Database } from '../../src/database/index.js';
import { defineKinds, type Recipient } from '../../src/notify/index.js';
import type { Component } from '../../src/lifecycle.js';
import { ManualClock } from '../../src/testing/index.js';
import { testDatabases } from '../database/test-databases.js';
import { kinds, openWorld, programmableProvider, type World } from './world.js';
import { until } from '../../src/testing/until.js';

const campaignKinds = defineKinds({ ...kinds, flash: { ...kinds.promo, deadline: '2s' } });

describe.each(testDatabases().slice(0, 2))('campaigns on $name', (testDatabase) => {
  let database: Database;
  let world: World<typeof campaignKinds>;
  let worker: Component;
  const push = programmableProvider('push', { platform: 'fcm' });
  const tomorrow = () => Date.now() + 86_400_000;

  beforeAll(async () => {
    database = await testDatabase.open();
    world = await openWorld({ database, providers: [push], kinds: campaignKinds });
    worker = world.notify.worker({ slots: 20 });
    await worker.start();
  });
  afterAll(async () => {
    await worker.stop();
    await world.stop();
    await database.close();
  });

  it('a campaign streamed twice, paused and resumed, sends each recipient one', async () => {
    const { campaigns } = world.notify;
    const recipients = Array.from(
      { length: 120 },
      (_, index): Recipient => ({
        user: `c${index}`,
        data: { what: 'x' },
        to: [{ channel: 'push', address: `c-${index}`, details: { platform: 'fcm' } }],
      }),
    );
    const stopped = new AbortController();
    const first = campaigns.run({
      id: 'spring',
      kind: 'promo',
      recipients,
      batchSize: 20,
      signal: stopped.signal,
      onProgress: () => stopped.abort(new Error('stopped')),
    });
    await expect(first).rejects.toThrow('stopped');
    expect(await campaigns.pause('spring')).toMatchObject({ state: 'paused', taken: 20 });
    const askedAt = async () =>
      (
        await database.query<{ at: string }>(
          `select changed_at as at from ${world.schema}.campaigns where id = 'spring'`,
        )
      ).rows[0]!.at;
    const pausedAt = await askedAt();
    const second = campaigns.run({ id: 'spring', kind: 'promo', recipients, batchSize: 50 });
    // It has asked for its first batch, and was refused.
    await until(async () => (await askedAt()) !== pausedAt);
    expect((await campaigns.progress('spring')).taken).toBe(20);
    await campaigns.resume('spring');
    expect(await second).toMatchObject({ state: 'streamed', taken: 120 });
    await until(async () => (await campaigns.progress('spring')).sent === 120, { boundMs: 30_000 });
    expect(recipients.every(({ to }) => push.calls(to![0]!.address).length === 1)).toBe(true);
  });

  it('the deadline of a campaign stands still while it is paused', async () => {
    const clock = new ManualClock();
    const own = await openWorld({ database, providers: [push], kinds: campaignKinds, clock });
    const { campaigns } = own.notify;
    const sendAt = clock.now() + 2_500;
    const recipientOf = (name: string): Recipient => ({
      user: name,
      data: { what: 'x' },
      to: [{ channel: 'push', address: name, details: { platform: 'fcm' } }],
      sendAt,
    });
    const recipients = Array.from({ length: 5 }, (_, index) => recipientOf(`f-${index}`));
    await campaigns.run({ id: 'flash', kind: 'flash', recipients });
    await campaigns.pause('flash');
    const alone = await own.notify.send('flash', { ...recipientOf('alone'), key: 'k' });
    clock.advance(10_000);
    const ownWorker = own.notify.worker({ slots: 5, floors: false });
    await ownWorker.start();
    // The one of no campaign tells when the worker has looked at what is past its deadline.
    await until(async () => (await own.notify.delivery(alone.deliveries[0]!.id))?.state === 'expired');
    expect(await campaigns.progress('flash')).toMatchObject({ state: 'paused', waiting: 5, expired: 0 });
    await campaigns.resume('flash');
    // As late as their wake-ups may be.
    clock.advance(2_001);
    await until(async () => (await campaigns.progress('flash')).sent === 5, { boundMs: 30_000 });
    await ownWorker.stop();
    await own.stop();
  });

  it('are listed newest first, in pages, also those that began in the same millisecond', async () => {
    const clock = new ManualClock();
    const own = await openWorld({ database, providers: [push], kinds: campaignKinds, clock });
    const { campaigns } = own.notify;
    for (const id of ['a', 'b', 'c', 'd', 'e']) {
      await campaigns.run({ id, kind: 'promo', recipients: [] });
      if (id === 'c') clock.advance(1);
    }
    await campaigns.pause('b');
    const pages: string[][] = [];
    for (let before: string | undefined; ; before = pages.at(-1)?.at(-1)) {
      const page = await campaigns.list({ before, limit: 2 });
      if (page.length === 0) break;
      pages.push(page.map(({ id }) => id));
    }
    expect(pages).toEqual([['e', 'd'], ['c', 'b'], ['a']]);
    expect(await campaigns.list({ state: 'paused' })).toEqual([
      { id: 'b', kind: 'promo', state: 'paused', taken: 0, createdAt: clock.now() - 1 },
    ]);
    await expect(campaigns.list({ limit: 0 })).rejects.toMatchObject({ field: 'limit' });
    await own.stop();
  });

  it('a canceled campaign ends what waits', async () => {
    const { campaigns } = world.notify;
    const recipients = Array.from(
      { length: 30 },
      (_, index): Recipient => ({
        user: `x${index}`,
        data: { what: 'x' },
        to: [{ channel: 'push', address: `x-${index}`, details: { platform: 'fcm' } }],
        sendAt: tomorrow(),
      }),
    );
    await campaigns.run({ id: 'canceled', kind: 'promo', recipients });
    expect(await campaigns.cancel('canceled')).toMatchObject({
      state: 'canceled',
      suppressed: 30,
      waiting: 0,
    });
  });
});
