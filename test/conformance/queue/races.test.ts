/**
 * Races that other queues were seen to lose, each with two real sessions and one of them held at the bad moment: inside
 * an open transaction, after its statement and before its commit.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { Client } from 'pg';
import type { Database } from '../../../src/database/index.js';
import { testServers } from '../../database/test-databases.js';
import { type OpenedQueue, openQueue } from './open-store.js';

describe.each(testServers())('two sessions on $name', ({ open, url }) => {
  let database: Database;
  let opened: OpenedQueue;
  let other: Client;
  beforeAll(async () => {
    database = await open();
    other = new Client({ connectionString: await url() });
    await other.connect();
  });
  beforeEach(async () => {
    opened = await openQueue(database);
  });
  afterAll(async () => {
    await other.end();
    await database.close();
  });

  const put = (id: string, more = {}) => opened.queue.enqueue('q', [{ id, payload: 1, ...more }]);
  const takeIds = async (count = 10) => (await opened.queue.dequeue('q', { count })).map(({ id }) => id);
  const held = async (work: () => Promise<unknown>) => {
    await other.query('begin');
    await work();
  };
  /** True while some session waits for a lock. */
  const somebodyWaits = async () => {
    const { rows } = await database.query<{ waits: boolean }>(
      "select exists (select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()) as waits",
    );
    return rows[0]!.waits;
  };

  test('an id that another transaction is just enqueuing is created once, whichever way that ends', async () => {
    for (const ending of ['commit', 'rollback']) {
      const message = [{ id: `m-${ending}`, payload: 1 }];
      await put(`made-before-${ending}`);
      await held(() => opened.queue.enqueue('q', message, { transaction: other }));
      const second = opened.queue.enqueue('q', message);
      await expect.poll(somebodyWaits).toBe(true);
      await other.query(ending);
      expect(await second).toMatchObject([{ kind: 'enqueued', created: ending === 'rollback' }]);
      const { messages } = await opened.queue.list('q', { state: 'pending' });
      expect(messages.filter(({ id }) => id === `m-${ending}`)).toHaveLength(1);
    }
  });

  test('an enqueue at the moment of completion does not create the message a second time', async () => {
    await put('m');
    const [lease] = await opened.queue.dequeue('q');
    await held(() => opened.queue.complete('q', [lease!], { transaction: other }));
    expect(await put('m')).toMatchObject([{ created: false, state: 'running' }]);
    await other.query('commit');
    expect(await put('m')).toMatchObject([{ created: false, state: 'completed' }]);
  });

  test("a caller's open transaction holds up nobody: not its queue, its values, its pairs or its depth", async () => {
    await opened.queue.configure('q', { type: { kind: 'exclusive', key: 'user' } });
    const metadata = { user: 'u', kind: 'k' };
    await put('first', { metadata });
    const [first] = await opened.queue.dequeue('q');
    await held(() =>
      opened.queue.enqueue('q', [{ id: 'held', payload: 1, metadata, priority: 0 }], { transaction: other }),
    );
    expect(await opened.queue.complete('q', [first!])).toMatchObject([{ kind: 'done' }]);
    await put('second', { metadata });
    expect(await opened.queue.depth('q', { kind: 'k' })).toMatchObject({ pending: 1, running: 0 });
    const [second] = await opened.queue.dequeue('q');
    expect(second?.id).toBe('second');
    await other.query('commit');
    expect(await opened.queue.depth('q', { kind: 'k' })).toMatchObject({ pending: 1, running: 1 });
    expect(await takeIds()).toEqual([]);
    await opened.queue.complete('q', [second!]);
    expect(await takeIds()).toEqual(['held']);
  });

  test('a value whose next message is enqueued while its running one completes is not stranded', async () => {
    await opened.queue.configure('q', { type: { kind: 'exclusive', key: 'user' } });
    const metadata = { user: 'u' };
    for (const [first, second] of [
      ['commit', 'commit'],
      ['rollback', 'commit'],
    ]) {
      const run = `${first}-${second}`;
      await put(`${run}-1`, { metadata });
      const [lease] = await opened.queue.dequeue('q');
      expect(lease?.id).toBe(`${run}-1`);
      await held(() => opened.queue.complete('q', [lease!], { transaction: other }));
      await put(`${run}-2`, { metadata });
      expect(await takeIds()).toEqual([]);
      await other.query(first!);
      if (first === 'rollback') await opened.queue.complete('q', [lease!]);
      const [next] = await opened.queue.dequeue('q');
      expect(next?.id).toBe(`${run}-2`);
      await opened.queue.complete('q', [next!]);
    }
  });

  test('a message that somebody is settling is busy for others, who neither wait nor lose it', async () => {
    await put('m');
    await put('n');
    const leases = await opened.queue.dequeue('q', { count: 2 });
    await held(() => opened.queue.complete('q', [leases[0]!], { transaction: other }));
    expect((await opened.queue.extend('q', leases)).map(({ kind }) => kind)).toEqual(['busy', 'done']);
    expect((await opened.queue.cancel('q', ['m', 'n'])).map(({ kind }) => kind)).toEqual([
      'busy',
      'canceled',
    ]);
    await other.query('rollback');
    expect(await opened.queue.cancel('q', ['m'])).toMatchObject([{ kind: 'canceled' }]);
  });

  test('Q11: what is answered while a sweep stands still stays true', async () => {
    const { store, queue, clock, schema } = opened;
    for (const [round, act] of [
      async (id: string, lease: { id: string; leaseToken: string }) =>
        (await queue.complete('q', [lease]))[0]!.kind + id,
      async (id: string) => (await queue.cancel('q', [id]))[0]!.kind + id,
    ].entries()) {
      const id = `m${round}`;
      await put(id, { attemptsMax: 5 });
      const [lease] = await queue.dequeue('q', { leaseMs: 1_000 });
      clock.advance(2_000);
      await held(() => other.query(`select * from ${schema}.housekeep($1)`, [clock.storeNow()]));
      // The sweep has moved the message and has not committed: nobody may be told that it was accepted.
      const answer = await act(id, lease!);
      expect(answer).toBe(`busy${id}`);
      await other.query('commit');
      expect(await queue.complete('q', [lease!])).toMatchObject([{ kind: 'lease-lost' }]);
      expect(await queue.get('q', id)).toMatchObject({ state: 'pending', attempts: 1 });
      await store.housekeep({ now: clock.storeNow() });
      await queue.cancel('q', [id]);
    }
  });

  test('Q14: a session that holds the advisory locks of ours it can know stops nobody', async () => {
    const { queue, clock } = opened;
    for (let n = 0; n < 10; n += 1) {
      await put(`lease${n}`);
      await put(`due${n}`, { delayMs: 1_000 });
    }
    await queue.dequeue('q', { count: 10, leaseMs: 1_000 });
    await other.query('begin');
    for (const key of ['q', opened.schema, `headgate migrate ${opened.schema}`]) {
      await other.query(
        'select pg_advisory_xact_lock(hashtextextended($1, 0)), pg_advisory_xact_lock(hashtext($1))',
        [key],
      );
    }
    clock.advance(1_000);
    expect(await takeIds(100)).toHaveLength(20);
    await other.query('rollback');
  });

  test('Q15: one damaged message holds up none of the others, and is named', async () => {
    const { queue, clock, schema, store } = opened;
    const ids = Array.from({ length: 1_000 }, (_, index) => `m${index}`);
    await queue.enqueue(
      'q',
      ids.map((id) => ({ id, payload: 1, delayMs: 1_000 })),
    );
    await put('elsewhere', {});
    await database.script(`
      create function ${schema}.refuse() returns trigger language plpgsql as
        $$ begin if old.id = 'm500' then raise exception 'damaged'; end if; return new; end $$;
      create trigger refuse before update on ${schema}.messages for each row execute function ${schema}.refuse();`);
    clock.advance(1_000);
    await store.housekeep({ now: clock.storeNow() });
    expect(await queue.depth('q')).toMatchObject({ pending: 1_000, invisible: 1 });
    const { rows } = await database.query<{ damaged: string[] }>(
      `select damaged from ${schema}.housekeep($1)`,
      [clock.storeNow()],
    );
    expect(rows[0]!.damaged).toEqual(['q/m500: damaged']);
    await database.script(`drop trigger refuse on ${schema}.messages`);
    clock.advance(61_000);
    await store.housekeep({ now: clock.storeNow() });
    expect(await queue.depth('q')).toMatchObject({ pending: 1_001, invisible: 0 });
  });

  test('a value that disagrees with its messages is found, repaired and counted', async () => {
    const { queue, schema, clock } = opened;
    await queue.configure('q', { type: { kind: 'exclusive', key: 'user' } });
    for (const user of ['a', 'b', 'c']) await put(user, { metadata: { user } });
    const [a] = await queue.dequeue('q');
    await queue.release('q', [a!]);
    await queue.dequeue('q', { where: { none: 'such' } });
    await database.query(
      `update ${schema}.exclusive_values set running_seq = 99, head_priority = null, head_seq = null where value = 'b'`,
    );
    await database.query(`delete from ${schema}.exclusive_values where value = 'c'`);
    expect(await takeIds()).toEqual(['a']);
    const repaired = await database.query<{ repaired: number }>(
      `select repaired from ${schema}.housekeep($1)`,
      [clock.storeNow()],
    );
    expect(repaired.rows[0]!.repaired).toBe(2);
    expect(await takeIds()).toEqual(['b', 'c']);
    for (let step = 0; step < 3; step += 1) {
      const again = await database.query<{ repaired: number }>(
        `select repaired from ${schema}.housekeep($1)`,
        [clock.storeNow()],
      );
      expect(again.rows[0]!.repaired).toBe(0);
    }
  });
});
