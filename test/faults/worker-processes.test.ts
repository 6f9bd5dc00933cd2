/** Workers as processes of their own on a real server: killed, blocked, with a wrong clock. */
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import type { Database } from '../../src/database/index.js';
import { createQueue, type Queue } from '../../src/queue/index.js';
import { createPostgresQueueStore } from '../../src/queue/postgres/index.js';
import { testServers } from '../database/test-databases.js';
import { pause } from './worker/harness.js';
import { until } from '../../src/testing/until.js';
import { killAll, WorkerProcess } from './worker/processes.js';
import { within } from '../limits.js';

describe.each(testServers().slice(0, 1))('worker processes on $name', (server) => {
  let database: Database | undefined;
  const queues: Queue[] = [];
  let schemas = 0;

  afterEach(async () => {
    await killAll();
    for (const queue of queues.splice(0)) await queue.stop();
  });
  afterAll(async () => {
    await database?.close();
  });

  /** A queue of this process, and what a worker process on it is told. */
  async function open() {
    database ??= await server.open();
    schemas += 1;
    const schema = `processes_${schemas}`;
    const queue = createQueue({ store: createPostgresQueueStore({ database, schema }) });
    queues.push(queue);
    await queue.start();
    return { queue, at: { url: await server.url(), schema } };
  }

  const messages = (count: number, more: { attemptsMax?: number; delayMs?: number } = {}, prefix = 'm') =>
    Array.from({ length: count }, (_, index) => ({ id: `${prefix}${index}`, payload: {}, ...more }));

  test('Q01: a handler that blocks its event loop past the lease loses the message, which runs once elsewhere', async () => {
    const { queue, at } = await open();
    const options = { slots: 1, leaseMs: 1_000 };
    // Long enough for the other process to come up: else the first takes its message again.
    const a = await WorkerProcess.start({ ...at, handler: { kind: 'block', ms: 6_000 }, options });
    await queue.enqueue('q', messages(1));
    await until(() => a.of('started').length === 1);
    const b = await WorkerProcess.start({ ...at, handler: { kind: 'wait', ms: 10 }, options });
    await until(() => b.of('ended').length === 1 && a.of('ended').length === 1);
    await until(async () => (await queue.get('q', 'm0'))?.state === 'completed');

    expect(b.of('started')).toMatchObject([{ id: 'm0', attempts: 2 }]);
    expect(a.of('aborted')).toMatchObject([{ code: 'lease-lost' }]);
    const apartMs = b.of('started')[0]!.atMs - a.of('started')[0]!.atMs;
    expect(apartMs).toBeGreaterThanOrEqual(950);
    expect(apartMs).toBeLessThan(within(2_500));
    await a.stop();
    await b.stop();
    expect(await queue.get('q', 'm0')).toMatchObject({ state: 'completed', attempts: 2 });
    const history = await queue.history('q', 'm0');
    expect(history.map(({ version }) => version)).toEqual(history.map((_, index) => index + 1));
  });

  test('Q05: a handler longer than its lease runs once, and an idle worker beside it gets nothing', async () => {
    const { queue, at } = await open();
    const options = { leaseMs: 900 };
    const a = await WorkerProcess.start({ ...at, handler: { kind: 'wait', ms: 3_200 }, options });
    await queue.enqueue('q', messages(1));
    await until(() => a.of('started').length === 1);
    const b = await WorkerProcess.start({ ...at, handler: { kind: 'wait', ms: 1 }, options });
    await until(async () => (await queue.get('q', 'm0'))?.state === 'completed');
    expect(b.of('started')).toEqual([]);
    expect(a.of('aborted')).toEqual([]);
    expect(await queue.get('q', 'm0')).toMatchObject({ attempts: 1 });
  });

  test('Q06: the messages of a killed worker each run once more elsewhere, and those on their last attempt end', async () => {
    const { queue, at } = await open();
    const options = { slots: 100, leaseMs: 2_000 };
    await queue.enqueue('q', [
      ...messages(90, { attemptsMax: 3 }),
      ...messages(10, { attemptsMax: 1 }, 'last'),
    ]);
    const a = await WorkerProcess.start({ ...at, handler: { kind: 'hang' }, options });
    await until(() => a.of('started').length === 100);
    await a.kill();
    const killedAt = performance.now();
    const b = await WorkerProcess.start({ ...at, handler: { kind: 'wait', ms: 1 }, options });
    await until(() => b.of('ended').length === 90);
    expect(performance.now() - killedAt).toBeLessThan(within(5_000));
    await until(async () => (await queue.list('q', { state: 'errored' })).messages.length === 10, {
      boundMs: 3_000,
    });
    await until(async () => (await queue.list('q', { state: 'completed' })).messages.length === 90);
    expect(new Set(b.of('started').map(({ id }) => id)).size).toBe(90);
    expect(b.of('started').every(({ attempts }) => attempts === 2)).toBe(true);
    expect(await queue.depth('q')).toMatchObject({ pending: 0, running: 0, invisible: 0 });
    expect(await queue.get('q', 'last3')).toMatchObject({ state: 'errored', attempts: 1 });
  });

  test('Q07: a new process of the same name does not keep the leases of the dead one alive', async () => {
    const { queue, at } = await open();
    const options = { slots: 10, leaseMs: 2_000, name: 'w1' };
    await queue.enqueue('q', messages(5));
    const dead = await WorkerProcess.start({
      ...at,
      handler: { kind: 'hang' },
      options: { ...options, slots: 5 },
    });
    await until(() => dead.of('started').length === 5);
    const startedAt = dead.of('started')[0]!.atMs;
    await dead.kill();
    const again = await WorkerProcess.start({ ...at, handler: { kind: 'hang' }, options });
    await queue.enqueue('q', messages(2, {}, 'new'));
    await until(() => again.of('started').length === 7);
    const old = again.of('started').filter(({ id }) => id.startsWith('m'));
    expect(old.map(({ attempts }) => attempts)).toEqual([2, 2, 2, 2, 2]);
    expect(old[0]!.atMs - startedAt).toBeLessThan(within(4_000));
    await pause(2_500);
    expect(again.of('aborted')).toEqual([]);
    expect(await queue.get('q', 'new0')).toMatchObject({ state: 'running', attempts: 1 });
  });

  test('Q09: whatever the clocks of the processes say, the time of the store decides', async () => {
    const { queue, at } = await open();
    const minutes = 60_000;
    const shared = { ...at, options: { slots: 4, leaseMs: 1_500 } };
    const wrong = await Promise.all([
      WorkerProcess.start({ ...shared, handler: { kind: 'hang' }, clockShiftMs: 5 * minutes }),
      WorkerProcess.start({ ...shared, handler: { kind: 'hang' }, clockShiftMs: -5 * minutes }),
    ]);
    const sentAt = performance.now();
    const storeTime = Date.now();
    await queue.enqueue('q', messages(8, { delayMs: 1_200 }));
    await until(() => wrong.flatMap((worker) => worker.of('started')).length === 8);
    const first = wrong.flatMap((worker) => worker.of('started')).map(({ atMs }) => atMs - sentAt);
    expect(Math.min(...first)).toBeGreaterThanOrEqual(1_150);
    expect(Math.max(...first)).toBeLessThan(within(3_200));
    for (const worker of wrong) await worker.kill();
    const good = await WorkerProcess.start({
      ...shared,
      handler: { kind: 'wait', ms: 5 },
      clockJump: { afterMs: 1_000, byMs: -10 * minutes },
    });
    await until(async () => (await queue.list('q', { state: 'completed' })).messages.length === 8);
    expect(good.of('started').every(({ attempts }) => attempts === 2)).toBe(true);
    const { messages: ended } = await queue.list('q', { state: 'completed' });
    for (const { enqueuedAt, startedAt, finishedAt } of ended) {
      expect(Math.abs(enqueuedAt - storeTime)).toBeLessThan(1_000);
      expect(startedAt! - enqueuedAt).toBeGreaterThanOrEqual(1_200);
      expect(finishedAt!).toBeGreaterThanOrEqual(startedAt!);
      expect(finishedAt! - storeTime).toBeLessThan(60_000);
    }
    expect(await queue.oldest('q')).toBeUndefined();
  });

  test('Q51: a worker process that is told to stop ends by itself', async () => {
    const { queue, at } = await open();
    const worker = await WorkerProcess.start({ ...at, handler: { kind: 'wait', ms: 300 }, options: {} });
    await queue.enqueue('q', messages(1));
    await until(() => worker.of('started').length === 1);
    await worker.stop();
    expect(await queue.get('q', 'm0')).toMatchObject({ state: 'completed', attempts: 1 });
  });
});
