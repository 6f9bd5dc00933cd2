/** Workers of this process while their server is killed, slow, half-open or read-only. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { openPostgres, type PostgresOptions } from '../../src/database/index.js';
import {
  createQueue,
  createWorker,
  type Queue,
  type Worker,
  type WorkerOptions,
} from '../../src/queue/index.js';
import { createPostgresQueueStore } from '../../src/queue/postgres/index.js';
import { type PostgresServer, startPostgresServer, startProxy } from '../../src/testing/index.js';
import { testServers } from '../database/test-databases.js';
import { disturbedStore, gate, type LogLine, pause, recordingLog } from './worker/harness.js';
import { until } from '../../src/testing/until.js';
import { within } from '../limits.js';

const unhandled: unknown[] = [];
process.on('unhandledRejection', (reason) => unhandled.push(reason));

describe.skipIf(testServers().length === 0)('a worker and its server (needs a PostgreSQL server)', () => {
  let server: PostgresServer;
  const ends: (() => Promise<void>)[] = [];

  beforeAll(async () => {
    server = await startPostgresServer();
  });
  afterAll(() => server.stop());
  afterEach(async () => {
    for (const end of ends.splice(0).toReversed()) await end();
    if (unhandled.length > 0) throw new Error('unhandled rejection', { cause: unhandled.splice(0)[0] });
  });

  /** A started queue on a database of its own, seen through a proxy; `direct` is another way to the same database. */
  async function open(options: Partial<PostgresOptions> = {}) {
    const { log, lines } = recordingLog();
    const url = await server.createDatabase();
    const proxy = await startProxy({ target: { host: '127.0.0.1', port: server.port } });
    ends.push(() => proxy.stop());
    const through = await openQueue(proxy.urlOf(url), options);
    const direct = await openQueue(url);
    return { proxy, log, lines, url, queue: through.queue, direct: direct.queue, database: direct.database };
  }

  async function openQueue(connectionString: string, options: Partial<PostgresOptions> = {}) {
    const database = await openPostgres({ ...options, connectionString });
    const queue = createQueue({ store: createPostgresQueueStore({ database }) });
    await queue.start();
    ends.push(async () => {
      await queue.stop();
      await database.close();
    });
    return { queue, database };
  }

  async function start(options: WorkerOptions): Promise<Worker> {
    const worker = createWorker({ retry: { delayMs: 0 }, ...options });
    ends.push(() => worker.stop({ deadlineMs: 1_000 }));
    await worker.start();
    return worker;
  }

  const messages = (count: number, prefix = 'm') =>
    Array.from({ length: count }, (_, index) => ({ id: `${prefix}${index}`, payload: {} }));
  const ended = async (queue: Queue, state: 'completed' | 'errored'): Promise<number> =>
    (await queue.list('q', { state, limit: 1_000 })).messages.length;
  const errorLines = (lines: readonly LogLine[]): LogLine[] => lines.filter(({ level }) => level === 'error');

  test('an idle worker process sends fewer than 5 statements a second', async () => {
    const { queue, database } = await open();
    await start({ queue, queues: ['q', 'r', 's'], handler: () => {} });
    const count = async (): Promise<number> => {
      const { rows } = await database.query<{ sent: string }>(
        `select (xact_commit + xact_rollback)::text as sent from pg_stat_database where datname = current_database()`,
      );
      return Number(rows[0]?.sent);
    };
    await pause(2_000);
    const before = await count();
    await pause(6_000);
    const perSecond = ((await count()) - before) / 6;
    expect(perSecond).toBeGreaterThan(0.5);
    // Two queues of this process keep house: the one behind the proxy and the direct one, which sends 1.1 a second.
    expect(perSecond).toBeLessThan(5 + 1.2);
  });

  test('Q16: replies that come seconds late make no storm of calls, and the rate is back soon after', async () => {
    const { proxy, direct, queue } = await open();
    const { store, calls } = disturbedStore(queue.store);
    await direct.enqueue('q', messages(8_000));
    const running = new Map<string, number>();
    let handled = 0;
    let twice = 0;
    await start({
      queue: { store },
      queues: ['q'],
      slots: 20,
      prefetch: false,
      handler: async ({ id }) => {
        if (running.has(id)) twice += 1;
        running.set(id, 1);
        await pause(20);
        running.delete(id);
        handled += 1;
      },
    });
    await until(() => handled > 200);
    const rateOf = async (ms: number): Promise<number> => {
      const [from, startedAt] = [handled, performance.now()];
      await pause(ms);
      return (handled - from) / (performance.now() - startedAt);
    };
    const before = await rateOf(700);
    proxy.delayReplies(3_000);
    let inFlightMost = 0;
    for (const untilMs = performance.now() + 6_000; performance.now() < untilMs; await pause(20)) {
      inFlightMost = Math.max(
        inFlightMost,
        calls.filter(({ ended, operation }) => !ended && operation !== 'watch').length,
      );
    }
    expect(inFlightMost).toBeLessThanOrEqual(20 + 5);
    proxy.heal();
    const healedAt = performance.now();
    await until(async () => (await rateOf(500)) > 0.8 * before, { boundMs: 10_000 });
    expect(performance.now() - healedAt).toBeLessThan(10_000);
    await until(async () => (await direct.depth('q')).pending === 0, { boundMs: 30_000 });
    expect(twice).toBe(0);
  });

  test('Q17: after the server was killed and came back a message starts within 2 s, and the running one ends', async () => {
    const { log, lines, queue, direct } = await open();
    const hold = gate();
    const startedAt = new Map<string, number>();
    await start({
      queue,
      queues: ['q'],
      log,
      handler: async ({ id }) => {
        startedAt.set(id, performance.now());
        if (id === 'm0') await hold.opened;
      },
    });
    await direct.enqueue('q', messages(1));
    await until(() => startedAt.has('m0'));
    await server.kill();
    await pause(4_000);
    hold.open();
    const outageLines = errorLines(lines).length;
    expect(outageLines).toBeGreaterThanOrEqual(2);
    expect(outageLines).toBeLessThanOrEqual(7);
    await server.restart();
    const readyAt = performance.now();
    await until(async () => (await direct.enqueue('q', messages(1, 'after')).catch(() => [])).length === 1);
    await until(() => startedAt.has('after0'));
    expect(startedAt.get('after0')! - readyAt).toBeLessThan(within(2_000));
    await until(async () => (await ended(direct, 'completed')) === 2);
    expect((await direct.get('q', 'm0'))?.attempts).toBeLessThanOrEqual(2);
  });

  test('Q19: a half-open listening connection delays a message by 1 s at most, and is replaced', async () => {
    const { proxy, queue, direct, database } = await open({
      heartbeatIntervalMs: 500,
      heartbeatTimeoutMs: 500,
    });
    const startedAt = new Map<string, number>();
    await start({ queue, queues: ['q'], handler: ({ id }) => void startedAt.set(id, performance.now()) });
    const pickUpMs = async (id: string): Promise<number> => {
      const sentAt = performance.now();
      await direct.enqueue('q', [{ id, payload: {} }]);
      await until(() => startedAt.has(id));
      return startedAt.get(id)! - sentAt;
    };
    await pause(300);
    expect(await pickUpMs('before')).toBeLessThan(within(200));
    expect(proxy.goHalfOpen({ sent: 'listen' }) + proxy.goHalfOpen({ sent: 'LISTEN' })).toBeGreaterThan(0);
    expect(await pickUpMs('during')).toBeLessThan(within(1_100));
    await pause(2_500);
    const after = [await pickUpMs('after1'), await pickUpMs('after2'), await pickUpMs('after3')];
    expect(Math.min(...after)).toBeLessThan(within(200));

    await database.query(
      `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and query ilike 'listen%'`,
    );
    expect(await pickUpMs('cut')).toBeLessThan(within(1_100));
    await pause(1_500);
    expect(Math.min(await pickUpMs('again1'), await pickUpMs('again2'))).toBeLessThan(within(200));
  });

  test('Q20: sessions ended and a database that is read-only for a while leave every message terminal', async () => {
    const { queue, direct, database, url } = await open();
    await direct.enqueue('q', messages(10));
    const name = new URL(url).pathname.slice(1);
    const running = new Set<string>();
    const hold = gate();
    const handler: WorkerOptions['handler'] = async ({ id }) => {
      running.add(id);
      await hold.opened;
      running.delete(id);
    };
    await start({ queue, queues: ['q'], slots: 5, leaseMs: 1_500, handler });
    await start({ queue, queues: ['q'], slots: 5, leaseMs: 1_500, handler });
    await until(() => running.size === 10);
    await database.script(`alter database "${name}" set default_transaction_read_only = on`);
    const endSessions = `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}' and pid <> pg_backend_pid()`;
    await database.query(endSessions);
    await pause(1_000);
    hold.open();
    await pause(3_000);
    const admin = await openPostgres({ connectionString: server.url });
    await admin.script(`alter database "${name}" reset default_transaction_read_only`);
    await admin.query(endSessions);
    await admin.close();
    await until(async () => (await ended(direct, 'completed').catch(() => 0)) === 10, { boundMs: 20_000 });
    const { messages: all } = await direct.list('q', { state: 'completed' });
    for (const { attempts, attemptsMax, version } of all) {
      expect(attempts).toBeLessThanOrEqual(attemptsMax);
      expect(version).toBeLessThan(20);
    }
  });

  test('Q21: a process that fills 2,000 queues and serves 200 of them holds no more connections than for two', async () => {
    const url = await server.createDatabase();
    const { queue } = await openQueue(url);
    const admin = await openPostgres({ connectionString: server.url });
    ends.push(() => admin.close());
    const name = new URL(url).pathname.slice(1);
    const queues = Array.from({ length: 200 }, (_, index) => `q${index}`);
    let handled = 0;
    const startedAt = performance.now();
    await start({ queue, queues, slots: 20, handler: () => void (handled += 1) });
    await queue.enqueue('q150', messages(1));
    await until(() => handled === 1);
    expect(performance.now() - startedAt).toBeLessThan(within(5_000));
    for (let from = 0; from < 2_000; from += 50) {
      await Promise.all(
        Array.from({ length: 50 }, (_, index) => queue.enqueue(`q${from + index}`, messages(1))),
      );
    }
    await until(() => handled === 200, { boundMs: 30_000 });
    const { rows } = await admin.query<{ count: string }>(
      'select count(*)::text as count from pg_stat_activity where datname = $1',
      [name],
    );
    expect(Number(rows[0]?.count)).toBeLessThanOrEqual(11);
  });

  test('Q22: the slot of a canceled message is used again and the others go on at the speed of before', async () => {
    const { queue, direct } = await open();
    await direct.configure('q', { retentionMs: { completed: 0, canceled: 0, errored: 0 } });
    for (let from = 0; from < 20_000; from += 1_000) await direct.enqueue('q', messages(1_000, `w${from}-`));
    let side = 0;
    let handled = 0;
    const aborted: string[] = [];
    const ids: string[] = [];
    const worker = await start({
      queue,
      queues: ['q'],
      slots: 5,
      leaseMs: 1_200,
      prefetch: false,
      handler: async ({ id }, { signal }) => {
        side += 1;
        ids.push(id);
        if (ids.length === 1) {
          await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
          aborted.push(signal.reason.code);
        } else await pause(5);
        side -= 1;
        handled += 1;
      },
    });
    await until(() => handled > 50);
    await direct.cancel('q', [ids[0]!]);
    await until(() => aborted.length === 1, { boundMs: 5_000 });
    expect(['message-canceled', 'lease-lost']).toContain(aborted[0]);
    const from = handled;
    let most = 0;
    for (const untilMs = performance.now() + 1_500; performance.now() < untilMs; await pause(2))
      most = Math.max(most, side);
    expect(most).toBe(5);
    expect(handled - from).toBeGreaterThan(100);
    expect(worker.state().running).toBeLessThanOrEqual(5);
  });

  test('Q23: delayed messages start within a second of their time though all connections were cut once', async () => {
    const { proxy, queue, direct } = await open();
    const startedAt = new Map<string, number>();
    await start({ queue, queues: ['q'], handler: ({ id }) => void startedAt.set(id, performance.now()) });
    const sentAt = performance.now();
    await direct.enqueue('q', [
      { id: 'm1', payload: {}, delayMs: 2_000 },
      { id: 'm2', payload: {}, delayMs: 4_000 },
    ]);
    await pause(1_000);
    expect(proxy.cut()).toBeGreaterThan(0);
    await until(() => startedAt.size === 2);
    for (const [id, dueMs] of [
      ['m1', 2_000],
      ['m2', 4_000],
    ] as const) {
      expect(startedAt.get(id)! - sentAt).toBeGreaterThanOrEqual(dueMs - 20);
      expect(startedAt.get(id)! - sentAt).toBeLessThan(within(dueMs + 1_200));
    }
  });

  test('Q51: stop ends by its deadline while the server is down', async () => {
    const { queue, direct } = await open();
    const worker = await start({ queue, queues: ['q'], handler: () => new Promise(() => {}) });
    await direct.enqueue('q', messages(3));
    await until(() => worker.state().running === 3);
    await server.kill();
    const startedAt = performance.now();
    await Promise.all([worker.stop({ deadlineMs: 1_000 }), worker.stop({ deadlineMs: 1_000 })]);
    expect(performance.now() - startedAt).toBeLessThan(within(1_200));
    await server.restart();
  });

  test('Q55: a listener that takes 100 ms an event neither delays the worker nor grows the heap by what it missed', async () => {
    const { queue, direct } = await open();
    const seen = new Map<string, number[]>();
    queue.onEvent(async ({ id, version }) => {
      seen.set(id, [...(seen.get(id) ?? []), version]);
      await pause(100);
    });
    const result = 'x'.repeat(20_000);
    let handled = 0;
    for (let from = 0; from < 5_000; from += 500) await direct.enqueue('q', messages(500, `b${from}-`));
    const heapBefore = heapUsed();
    await start({ queue, queues: ['q'], slots: 50, handler: () => ((handled += 1), `${result}${handled}`) });
    await until(() => handled === 5_000, { boundMs: 50_000 });
    await until(async () => (await direct.depth('q')).running === 0);
    expect(heapUsed() - heapBefore).toBeLessThan(50 * 1_048_576);
  });
});

function heapUsed(): number {
  setFlagsFromString('--expose-gc');
  const collect: () => void = runInNewContext('gc');
  collect();
  return process.memoryUsage().heapUsed;
}
