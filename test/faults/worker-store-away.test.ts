/** A worker whose store fails, hangs or comes back, and one that has nothing to do: how many calls it makes and when. */
import { afterEach, describe, expect, test } from 'vitest';
import { createQueue, createWorker, type Queue, type Worker } from '../../src/queue/index.js';
import { createMemoryQueueStore } from '../../src/queue/memory/index.js';
import {
  atOnce,
  type Disturbance,
  disturbedStore,
  gate,
  pause,
  recordingLog,
  type StoreCall,
} from './worker/harness.js';
import { until } from '../../src/testing/until.js';
import { within } from '../limits.js';

const ends: (() => Promise<void>)[] = [];
const unhandled: unknown[] = [];
process.on('unhandledRejection', (reason) => unhandled.push(reason));

afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end();
  if (unhandled.length > 0) throw new Error('unhandled rejection', { cause: unhandled.splice(0)[0] });
});

async function openDisturbed(disturb: (operation: string, request: StoreCall['request']) => Disturbance) {
  const plain = createQueue({ store: createMemoryQueueStore() });
  await plain.start();
  ends.push(() => plain.stop());
  const { store, calls } = disturbedStore(plain.store, disturb);
  return { plain, queue: { store }, calls };
}

async function start(worker: Worker): Promise<Worker> {
  ends.push(() => worker.stop({ deadlineMs: 300 }));
  await worker.start();
  return worker;
}

const messages = (count: number) =>
  Array.from({ length: count }, (_, index) => ({ id: `m${index}`, payload: {} }));
const completed = async (queue: Queue): Promise<number> =>
  (await queue.list('q', { state: 'completed', limit: 1_000 })).messages.length;

test.each([1, 20])('an idle worker of %i queues makes fewer than 5 calls a second', async (count) => {
  const { queue, calls } = await openDisturbed(() => 'none');
  const queues = Array.from({ length: count }, (_, index) => `q${index}`);
  await start(
    createWorker({ queue, queues, handler: () => {}, metrics: () => ({ add() {}, set() {}, observe() {} }) }),
  );
  await pause(200);
  const before = calls.length;
  await pause(4_000);
  const asked = calls.slice(before).filter(({ operation }) => operation !== 'watch');
  expect(asked.length).toBeGreaterThanOrEqual(4);
  expect(asked.length / 4).toBeLessThan(4);
});

describe('a store that is away', () => {
  test('is asked at growing, differing pauses, one error line a second, and work goes on within two seconds', async () => {
    let away = false;
    const { plain, queue, calls } = await openDisturbed(() => (away ? 'fail' : 'none'));
    const { log, lines } = recordingLog();
    let handled = 0;
    await start(
      createWorker({ queue, queues: ['q'], slots: 20, log, handler: () => void (handled += 1), ...atOnce }),
    );
    away = true;
    const awayAt = performance.now();
    await pause(4_000);
    const during = calls
      .filter(({ atMs, operation }) => atMs > awayAt && operation === 'dequeue')
      .map(({ atMs }) => atMs);
    const pauses = during.slice(1).map((atMs, index) => atMs - during[index]!);
    expect(during.length).toBeGreaterThan(3);
    expect(during.length).toBeLessThan(16);
    expect(Math.max(...pauses)).toBeGreaterThan(2 * Math.min(...pauses));
    expect(new Set(pauses.map((ms) => Math.round(ms))).size).toBeGreaterThan(2);
    const errors = lines.filter(({ level }) => level === 'error');
    expect(errors.length).toBeGreaterThanOrEqual(3);
    expect(errors.length).toBeLessThanOrEqual(6);

    away = false;
    const backAt = performance.now();
    await plain.enqueue('q', messages(100));
    await until(() => handled === 100);
    expect(performance.now() - backAt).toBeLessThan(within(2_000));
  });

  test('loses no slot: after many failures as many handlers run side by side as before', async () => {
    let sent = 0;
    const { plain, queue } = await openDisturbed((operation) => {
      if (operation === 'watch') return 'none';
      sent += 1;
      return sent % 3 === 0 ? 'lose reply' : sent % 7 === 0 ? 'fail' : 'none';
    });
    await plain.enqueue('q', messages(60));
    const open = gate();
    let side = 0;
    const worker = await start(
      createWorker({
        queue,
        queues: ['q'],
        slots: 8,
        ...atOnce,
        handler: async ({ id }) => {
          side += 1;
          if (Number(id.slice(1)) >= 40) await open.opened;
          else await pause(1);
          side -= 1;
        },
      }),
    );
    await until(() => side === 8, { boundMs: 40_000 });
    expect(worker.state()).toMatchObject({ running: 8 });
    open.open();
    await until(async () => (await completed(plain)) === 60, { boundMs: 40_000 });
    const { messages: all } = await plain.list('q', { state: 'completed', limit: 100 });
    expect(all.every(({ attempts }) => attempts === 1)).toBe(true);
  });

  test('may be away when the worker starts', async () => {
    let away = true;
    const { plain, queue } = await openDisturbed(() => (away ? 'fail' : 'none'));
    let handled = 0;
    await start(createWorker({ queue, queues: ['q'], handler: () => void (handled += 1) }));
    await plain.enqueue('q', messages(3));
    await pause(500);
    away = false;
    await until(() => handled === 3, { boundMs: 3_000 });
    expect((await plain.depth('q')).pending).toBe(0);
  });
});

describe('a store that does not answer', () => {
  test('has few calls on their way, however many slots there are', async () => {
    let silent = false;
    const { plain, queue, calls } = await openDisturbed(() => (silent ? 'hang' : 'none'));
    await plain.enqueue('q', messages(500));
    const open = gate();
    const worker = await start(
      createWorker({
        queue,
        queues: ['q'],
        slots: 20,
        leaseMs: 1_500,
        prefetch: false,
        handler: () => open.opened,
      }),
    );
    await until(() => worker.state().running === 20);
    silent = true;
    open.open();
    await pause(3_000);
    expect(calls.filter(({ ended }) => !ended).length).toBeLessThanOrEqual(20);
  });

  test('Q51b: does not keep stop from ending by its deadline', async () => {
    const { queue } = await openDisturbed(() => 'hang');
    const worker = createWorker({ queue, queues: ['q'], handler: () => {} });
    await worker.start();
    await pause(50);
    const startedAt = performance.now();
    await Promise.all([worker.stop({ deadlineMs: 600 }), worker.stop({ deadlineMs: 600 })]);
    expect(performance.now() - startedAt).toBeLessThan(within(700));
    expect(worker.state().phase).toBe('stopped');
  });

  test('makes a handler whose lease has run out by the local clock learn it', async () => {
    let silent = false;
    const { plain, queue } = await openDisturbed((operation) =>
      silent && operation === 'extend' ? 'hang' : 'none',
    );
    await plain.enqueue('q', messages(1));
    const codes: string[] = [];
    await start(
      createWorker({
        queue,
        queues: ['q'],
        leaseMs: 400,
        handler: (_message, { signal }) =>
          new Promise((resolve) => {
            silent = true;
            signal.addEventListener('abort', () => {
              codes.push(signal.reason.code);
              silent = false;
              resolve();
            });
          }),
      }),
    );
    await until(() => codes.length > 0);
    expect(codes[0]).toBe('lease-lost');
  });
});

test('a settlement that always fails holds no other back', async () => {
  const { plain, queue } = await openDisturbed((operation, request) => {
    const leases = (request['leases'] ?? request['complete'] ?? []) as readonly { id: string }[];
    return Array.isArray(leases) && leases.some(({ id }) => id === 'm17') && operation !== 'extend'
      ? 'fail'
      : 'none';
  });
  await plain.enqueue('q', messages(40));
  await start(createWorker({ queue, queues: ['q'], slots: 40, handler: () => {} }));
  await until(async () => (await completed(plain)) === 39, { boundMs: 40_000 });
  expect((await plain.get('q', 'm17'))?.state).toBe('running');
});

test.each([
  [1, 60],
  [4, 700],
])(
  'settlements that the store calls busy %i times are repeated together, and alone when it lasts',
  async (times, callsMax) => {
    const { plain, queue, calls } = await openDisturbed(() => 'none');
    const asked = new Map<string, number>();
    const store = new Proxy(queue.store, {
      get(target, operation: string) {
        const member: unknown = Reflect.get(target, operation);
        if (operation === 'settleAndDequeue') return undefined;
        if (operation !== 'complete') return member;
        return async (request: Parameters<typeof target.complete>[0]) => {
          const isBusy = ({ id }: { readonly id: string }): boolean => {
            asked.set(id, (asked.get(id) ?? 0) + 1);
            return asked.get(id)! <= times && (request.leases.length > 1 || times === 1);
          };
          const busy = new Set(request.leases.filter(isBusy).map(({ id }) => id));
          const free = request.leases.filter(({ id }) => !busy.has(id));
          const outcomes = free.length === 0 ? [] : await target.complete({ ...request, leases: free });
          return request.leases.map(({ id }) =>
            busy.has(id) ? ({ kind: 'busy', id } as const) : outcomes.find((outcome) => outcome.id === id)!,
          );
        };
      },
    });
    await plain.enqueue('q', messages(500));
    await start(createWorker({ queue: { store }, queues: ['q'], slots: 500, handler: () => {} }));
    await until(async () => (await completed(plain)) === 500, { boundMs: 20_000 });
    expect(calls.filter(({ operation }) => operation === 'complete').length).toBeLessThan(callsMax);
  },
);
