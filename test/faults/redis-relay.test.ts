/** The relay by itself: its order, its claim, its stop, what it puts aside and what it counts, beside a store that answers as a test wants. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Database } from '../../src/database/index.js';
import type { Metrics, MetricsBackend } from '../../src/metrics.js';
import { createMemoryQueueStore } from '../../src/queue/memory/index.js';
import {
  createOutbox,
  createRelay,
  type Outbox,
  type Relay,
  type RelayOptions,
} from '../../src/queue/outbox/index.js';
import type { MessageToStore } from '../../src/queue/store.js';
import { until } from '../../src/testing/until.js';
import { testDatabases } from '../database/test-databases.js';

const never = 3_600_000;
let runs = 0;

/** Counts as the last or the sum of what was said. */
function recorder(): { metrics: MetricsBackend; last: Map<string, number>; sums: Map<string, number> } {
  const last = new Map<string, number>();
  const sums = new Map<string, number>();
  const keyOf = (name: string, labels: object): string => [name, ...Object.values(labels)].join(' ');
  const metrics: Metrics = {
    add: (name, labels, amount = 1) => {
      const key = keyOf(name, labels);
      sums.set(key, (sums.get(key) ?? 0) + amount);
    },
    set: (name, labels, value) => void last.set(keyOf(name, labels), value),
    observe: () => {},
  };
  return { metrics: () => metrics, last, sums };
}

describe.each(testDatabases().slice(-1))('a relay of the outbox on $name', ({ hasSessions, open }) => {
  let database: Database;
  let schema: string;
  let outbox: Outbox;
  let relays: Relay[];
  /** What the store was given, in its order. */
  let given: MessageToStore[];
  /** Called before the store takes a batch. */
  let before: (messages: readonly MessageToStore[]) => Promise<void>;
  let memory: ReturnType<typeof createMemoryQueueStore>;
  let store: RelayOptions['store'];

  beforeAll(async () => {
    database = await open();
  });
  afterAll(() => database.close());
  beforeEach(async () => {
    schema = `relay_${++runs}`;
    outbox = createOutbox({ database, schema });
    await outbox.start();
    [relays, given, before, memory] = [[], [], async () => {}, createMemoryQueueStore()];
    store = {
      configuration: (queue) => memory.configuration(queue),
      enqueue: async (request) => {
        await before(request.messages);
        given.push(...request.messages);
        return memory.enqueue(request);
      },
    };
  });
  afterEach(() => Promise.all(relays.map((relay) => relay.stop())));

  const messageOf = (id: string, more: Partial<MessageToStore> = {}): MessageToStore => ({
    id,
    payload: '1',
    metadata: {},
    priority: undefined,
    delayMs: undefined,
    attemptsMax: undefined,
    leaseMs: undefined,
    uniqueWhileLive: false,
    trace: undefined,
    ...more,
  });
  const write = (messages: readonly MessageToStore[], more: { now?: number; wake?: boolean } = {}) =>
    database.transaction((transaction) =>
      outbox.enqueue({ queue: 'q', messages, transaction, now: undefined, ...more }),
    );
  const writeIds = (...ids: string[]) => write(ids.map((id) => messageOf(id)));
  async function startRelay(options: Partial<RelayOptions> = {}): Promise<Relay> {
    const relay = createRelay({ database, store, schema, pollMs: 20, ...options });
    relays.push(relay);
    await relay.start();
    return relay;
  }
  const rowsOf = async (table: 'message' | 'refused' | 'relay'): Promise<number> =>
    (await database.query(`select 1 from ${schema}.outbox_${table}`)).rowCount;
  const isEmpty = async (): Promise<boolean> => (await rowsOf('message')) === 0;
  const clock = async (): Promise<number> => {
    const text = 'select floor(extract(epoch from statement_timestamp()) * 1000)::bigint as now';
    return Number((await database.query<{ now: string }>(text)).rows[0]!.now);
  };
  const ids = (): string[] => given.map(({ id }) => id);

  test('moves what one transaction or several wrote in their order, batch after batch, under one claim', async () => {
    await writeIds('a', 'b');
    await writeIds('c');
    await writeIds('d', 'e');
    // Nobody takes over: what is moved after the first batch is moved by who renews its claim.
    await startRelay({ batchMax: 2, takeoverMs: never });
    await until(isEmpty, { boundMs: 10_000 });
    expect(ids()).toEqual(['a', 'b', 'c', 'd', 'e']);
  });

  test.skipIf(!hasSessions)(
    'of two open transactions the one that commits later is moved, too, though it wrote first (needs several sessions)',
    async () => {
      await startRelay();
      const other = await open();
      await other.transaction(async (transaction) => {
        await outbox.enqueue({ queue: 'q', messages: [messageOf('first')], transaction, now: undefined });
        await writeIds('second');
        await until(async () => ids().includes('second'));
        await until(isEmpty);
      });
      await other.close();
      await writeIds('third');
      await until(isEmpty);
      expect(ids()).toEqual(['second', 'first', 'third']);
    },
  );

  test('a relay whose store is slow is waited for by the others and by its stop, and ends with its claim', async () => {
    let letGo = (): void => {};
    let calls = 0;
    before = () => {
      calls += 1;
      return new Promise((resolve) => {
        letGo = resolve;
      });
    };
    await writeIds('a');
    const first = await startRelay({ takeoverMs: never });
    await until(() => calls === 1);
    const second = recorder();
    await startRelay({ takeoverMs: never, metrics: second.metrics });
    // It has looked at the queue, and said how long that waits.
    await until(() => second.last.has('headgate_outbox_lag_seconds q'));
    expect(calls).toBe(1);
    let isStopped = false;
    const stopping = first.stop();
    void stopping.finally(() => {
      isStopped = true;
    });
    const claim = `select held_until from ${schema}.outbox_relay`;
    // More often than a stop has anything to say to the database.
    for (let look = 0; look < 20; look += 1) {
      const { rows } = await database.query<{ held_until: string }>(claim);
      expect(rows).toHaveLength(1);
      expect(Number(rows[0]!.held_until)).toBeLessThanOrEqual((await clock()) + never);
    }
    expect(isStopped).toBe(false);
    before = async () => {};
    letGo();
    await stopping;
    expect(await isEmpty()).toBe(true);
    // Whoever comes need not wait for the claim to run out.
    await writeIds('b');
    await until(isEmpty, { boundMs: 10_000 });
    expect(ids()).toEqual(['a', 'b']);
  });

  test('a message counts from when it was written: its delay, and its priority where it has none', async () => {
    const writtenAt = (await clock()) - 50_000;
    await write([messageOf('m', { delayMs: 60_000 }), messageOf('late', { delayMs: 10 })], {
      now: writtenAt,
    });
    await write([messageOf('named', { priority: 7 })], { now: writtenAt });
    await startRelay();
    await until(isEmpty);
    const [m, late, named] = given;
    expect(m).toMatchObject({ priority: writtenAt });
    expect(m!.delayMs).toBeLessThanOrEqual(10_000);
    expect(late!.delayMs).toBe(0);
    expect(named).toMatchObject({ priority: 7, delayMs: undefined });
  });

  test('what has been enqueued before counts as known, the same id with another payload goes aside', async () => {
    const { metrics, last, sums } = recorder();
    await memory.enqueue({ queue: 'q', messages: [messageOf('a'), messageOf('b')], now: undefined });
    await write([messageOf('a'), messageOf('b', { payload: '2' }), messageOf('c')], {
      now: (await clock()) - 50_000,
    });
    before = async () => {
      throw new Error('away');
    };
    await startRelay({ metrics });
    await until(() => (sums.get('headgate_outbox_failures_total') ?? 0) > 1);
    await until(() => last.has('headgate_outbox_lag_seconds q'));
    expect(last.get('headgate_outbox_lag_seconds q')).toBeGreaterThanOrEqual(50);
    expect(last.get('headgate_outbox_lag_seconds q')).toBeLessThan(5_000);
    before = async () => {};
    await until(() => last.get('headgate_outbox_lag_seconds q') === 0);
    expect(await rowsOf('message')).toBe(0);
    const { rows } = await database.query(`select message, error from ${schema}.outbox_refused`);
    expect(rows).toEqual([
      {
        message: expect.stringContaining('"b"') as string,
        error: 'the id is known with another payload',
      },
    ]);
    for (const outcome of ['known', 'conflict', 'created'])
      expect(sums.get(`headgate_outbox_relayed_total q ${outcome}`)).toBe(1);
  });

  test.each(['completed', 'canceled', 'errored'])(
    'a queue that forgets the ids of its %s messages too soon is left alone',
    async (end) => {
      const day = 86_400_000;
      const retentionMs = { completed: day, canceled: day, errored: day, [end]: day - 1 };
      await memory.configure('q', { retentionMs });
      await writeIds('a');
      const { metrics, last } = recorder();
      await startRelay({ metrics });
      await until(() => last.has('headgate_outbox_lag_seconds q'));
      expect(given).toEqual([]);
    },
  );

  test('a commit wakes the relay, unless it asks for nothing of the kind', async () => {
    await startRelay({ pollMs: never });
    // The round of its start is over when this has been moved.
    await writeIds('a');
    await until(isEmpty);
    await until(async () => (await rowsOf('relay')) === 1);
    const channels: string[] = [];
    const unlisten = await database.listen(schema, (payload) => void channels.push(payload));
    await write([messageOf('quiet')], { wake: false });
    await writeIds('loud');
    await until(isEmpty);
    await until(() => channels.length > 0);
    expect(channels).toEqual(['q']);
    await unlisten();
    expect(ids()).toEqual(['a', 'quiet', 'loud']);
  });
});
