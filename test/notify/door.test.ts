/** The door and the way of a delivery, on every database. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Database } from '../../src/database/index.js';
import { testDatabases } from '../database/test-databases.js';
import { addsUp, email, notAccepted, openWorld, scriptedProvider, sms } from './world.js';
import { until } from '../../src/testing/until.js';

describe.each(testDatabases())('notifications on $name', (testDatabase) => {
  let database: Database;
  beforeAll(async () => {
    database = await testDatabase.open();
  });
  afterAll(() => database.close());

  it('a notification is sent once, and its key answers with the first one', async () => {
    const provider = scriptedProvider('sms');
    const world = await openWorld({ database, providers: [provider] });
    const worker = world.notify.worker();
    await worker.start();
    const first = await world.notify.send('otp', {
      user: 'u',
      key: 'k',
      data: { code: '482913' },
      to: [sms],
    });
    expect(first).toMatchObject({ kind: 'accepted', duplicate: false, state: 'waiting' });
    await until(async () => (await world.notify.ledger()).sent === 1);
    const again = await world.notify.send('otp', {
      user: 'u',
      key: 'k',
      data: { code: '482913' },
      to: [sms],
    });
    expect(again).toMatchObject({ kind: 'duplicate', id: first.id, duplicate: true, state: 'sent' });
    expect(provider.calls.map(({ content }) => content)).toEqual([{ text: 'Your code is 482913' }]);
    const shown = await world.notify.get(first.id);
    expect((await world.notify.deliveries({ user: 'u', state: 'sent' })).map(({ id }) => id)).toEqual([
      first.deliveries[0]!.id,
    ]);
    expect(await world.notify.deliveries({ user: 'nobody' })).toEqual([]);
    expect(shown?.deliveries[0]?.history.map(({ event }) => event)).toEqual(['accepted', 'sending', 'sent']);
    await worker.stop();
    await world.stop();
  });

  it('other content under a known key is a conflict that changes nothing', async () => {
    const provider = scriptedProvider('email');
    const world = await openWorld({ database, providers: [provider] });
    const request = { user: 'u', key: 'k', to: [email] };
    const first = await world.notify.send('order', { ...request, data: { number: 1, at: 2 } });
    const same = await world.notify.send('order', { ...request, data: { at: 2, number: 1 } });
    const other = await world.notify.send('order', { ...request, data: { number: 2, at: 2 } });
    expect(same).toMatchObject({ kind: 'duplicate', id: first.id });
    expect(other).toMatchObject({ kind: 'conflict', id: first.id, duplicate: false, state: 'waiting' });
    expect(addsUp(await world.notify.ledger(), 1)).toBe(true);
    await world.stop();
  });

  it('what was not accepted comes back and spends no attempt, also when it is sent at most once', async () => {
    const provider = scriptedProvider('email', [notAccepted, notAccepted, { kind: 'sent' }]);
    const world = await openWorld({ database, providers: [provider] });
    const worker = world.notify.worker();
    await worker.start();
    const { deliveries } = await world.notify.send('promo', {
      user: 'u',
      key: 'k',
      data: { what: 'boots' },
      to: [email],
    });
    await until(async () => (await world.notify.ledger()).sent === 1);
    expect(await world.notify.delivery(deliveries[0]!.id)).toMatchObject({ state: 'sent', attempts: 1 });
    expect(provider.calls).toHaveLength(3);
    await worker.stop();
    await world.stop();
  });
});
