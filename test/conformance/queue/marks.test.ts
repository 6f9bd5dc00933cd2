/**
 * The mark that spares a dequeue dead rows: while it stands, whatever becomes pending below it is handed out at once, and what
 * could not say so is found within a second. The mark is set by hand; plans.test.ts shows when a dequeue sets it.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Database } from '../../../src/database/index.js';
import { testDatabases } from '../../database/test-databases.js';
import { type OpenedQueue, openQueue } from './open-store.js';

describe.each(testDatabases())('a mark on $name', ({ open }) => {
  let database: Database;
  let opened: OpenedQueue;
  /** A queue for each test, with a mark of its own. */
  let name = '';
  let queues = 0;
  beforeAll(async () => {
    database = await open();
    opened = await openQueue(database);
  });
  beforeEach(() => {
    queues += 1;
    name = `q${queues}`;
  });
  afterAll(async () => {
    await database.close();
  });

  const put = (id: string, more = {}) =>
    opened.queue.enqueue(name, [{ id, payload: 1, priority: 1, ...more }]);
  const takeOne = async (options = {}) => (await opened.queue.dequeue(name, options))[0]!;
  /** As a dequeue sets it that has met many dead rows, at the message `front`. */
  const setMark = async () => {
    await put('front', { priority: 1_000 });
    const { rows } = await database.query<{ front: string }>(
      `select m.ctid::text as front from ${opened.schema}.messages m join ${opened.schema}.queues q on q.no = m.queue_no
       where q.name = $1 and m.id = 'front'`,
      [name],
    );
    await database.query(
      `select ${opened.schema}.set_mark(q, $1, $2::tid, true) from ${opened.schema}.queues q where q.name = $3`,
      [opened.clock.storeNow(), rows[0]!.front, name],
    );
  };
  const setAt = async () => {
    const { rows } = await database.query<{ at: string }>(
      `select k.at from ${opened.schema}.marks k join ${opened.schema}.queues q on q.no = k.queue_no where q.name = $1`,
      [name],
    );
    return rows.map(({ at }) => Number(at));
  };

  const ways: Record<string, () => Promise<() => Promise<unknown>>> = {
    enqueue: async () => () => put('m'),
    'enqueue, the second of a batch': async () => () =>
      opened.queue.enqueue(name, [
        { id: 'later', payload: 1, priority: 2_000 },
        { id: 'm', payload: 1, priority: -5 },
      ]),
    'enqueue beside delayed ones': async () => () =>
      opened.queue.enqueue(name, [
        { id: 'delayed', payload: 1, priority: -9, delayMs: 60_000 },
        { id: 'm', payload: 1, priority: 1, metadata: { k: 'v' } },
      ]),
    release: async () => {
      await put('m');
      const lease = await takeOne();
      return () => opened.queue.release(name, [lease]);
    },
    retry: async () => {
      await put('m', { metadata: { k: 'v' } });
      const lease = await takeOne();
      return () => opened.queue.fail(name, [{ ...lease, error: 'x', retryDelayMs: 0 }]);
    },
    expiry: async () => {
      await put('m');
      await takeOne({ leaseMs: 500 });
      return async () => opened.clock.advance(500);
    },
    'coming due': async () => {
      await put('m', { delayMs: 500 });
      return async () => opened.clock.advance(500);
    },
    'a delay that was given while the mark stood': async () => async () => {
      await put('m', { delayMs: 500 });
      opened.clock.advance(500);
    },
    'another priority': async () => {
      await put('m', { priority: 2_000 });
      return () => opened.queue.change(name, [{ id: 'm', priority: 1 }]);
    },
    'another time': async () => {
      await put('m', { delayMs: 60_000 });
      return () => opened.queue.change(name, [{ id: 'm', visibleAt: opened.clock.now() }]);
    },
    requeue: async () => {
      await put('m');
      await opened.queue.fail(name, [{ ...(await takeOne()), error: 'x' }]);
      return () => opened.queue.requeue(name, ['m']);
    },
  };

  test.each(Object.entries(ways))('hides nothing that becomes pending by %s', async (_, prepare) => {
    const act = await prepare();
    await setMark();
    const before = await setAt();
    expect(before).toEqual([opened.clock.now()]);
    await act();
    expect(await takeOne()).toMatchObject({ id: 'm' });
    expect(await takeOne()).toMatchObject({ id: 'front' });
    // It stood all the while.
    expect(await setAt()).toEqual(before);
  });

  test('is set aside by one dequeue a second, which finds what could not say that it is below', async () => {
    await setMark();
    await put('m');
    // As of a transaction that was open when the mark was set: it saw none.
    await database.query(`delete from ${opened.schema}.dips`);
    opened.clock.advance(1_000);
    expect(await takeOne()).toMatchObject({ id: 'm' });
    expect(await takeOne()).toMatchObject({ id: 'front' });
  });
});
