/** What a worker promises, on every store that can be opened here. */
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import {
  createQueue,
  createWorker,
  type LeasedMessage,
  NoRetryError,
  type Queue,
  ReleaseError,
  RetryError,
  type Worker,
  type WorkerOptions,
} from '../../src/queue/index.js';
import { atOnce, disturbedStore, gate, pause } from '../faults/worker/harness.js';
import { until } from '../../src/testing/until.js';
import { queuesUnderTest } from '../faults/worker/stores.js';
import { within } from '../limits.js';

describe.each(queuesUnderTest())('a worker on $name', ({ open, close }) => {
  let queue: Queue | undefined;
  const workers: Worker[] = [];

  afterEach(async () => {
    await Promise.all(workers.splice(0).map((worker) => worker.stop({ deadlineMs: 500 })));
    await queue?.stop();
    queue = undefined;
  });

  afterAll(close);

  async function openQueue(): Promise<Queue> {
    queue = await open();
    return queue;
  }

  async function startWorker(options: Partial<WorkerOptions> & { readonly queue: Queue }): Promise<Worker> {
    const worker = createWorker({ queues: ['q'], ...atOnce, ...options });
    workers.push(worker);
    await worker.start();
    return worker;
  }

  const ids = (count: number, prefix = 'm'): string[] =>
    Array.from({ length: count }, (_, index) => `${prefix}${index}`);
  const plain = (count: number, prefix = 'm') => ids(count, prefix).map((id) => ({ id, payload: {} }));

  describe('handlers', () => {
    test("the handler's value is the message's result", async () => {
      const queue = await openQueue();
      await queue.enqueue('q', [{ id: 'a', payload: { n: 20 } }]);
      await startWorker({ queue, handler: ({ payload }) => ({ twice: (payload as { n: number }).n * 2 }) });
      await until(async () => (await queue.get('q', 'a'))?.state === 'completed');
      expect(await queue.get('q', 'a')).toMatchObject({ result: { twice: 40 }, attempts: 1 });
    });

    test('a handler that throws is called again until the attempts are spent, and the error is kept', async () => {
      const queue = await openQueue();
      await queue.enqueue('q', [{ id: 'a', payload: {}, attemptsMax: 3 }]);
      const attempts: number[] = [];
      await startWorker({
        queue,
        handler: async ({ attempts: attempt }) => {
          attempts.push(attempt);
          throw new TypeError(`no ${attempt}`);
        },
      });
      await until(async () => (await queue.get('q', 'a'))?.state === 'errored');
      expect(attempts).toEqual([1, 2, 3]);
      expect((await queue.get('q', 'a'))?.error).toMatch(/^TypeError: no 3/);
    });

    test('an error that forbids a retry ends the message at once', async () => {
      const queue = await openQueue();
      await queue.enqueue('q', [{ id: 'a', payload: {}, attemptsMax: 3 }]);
      await startWorker({
        queue,
        handler: () => {
          throw new NoRetryError('bad address');
        },
      });
      await until(async () => (await queue.get('q', 'a'))?.state === 'errored');
      expect(await queue.get('q', 'a')).toMatchObject({ attempts: 1 });
    });

    test('a handler may ask for its own delay, and may give back without a spent attempt', async () => {
      const queue = await openQueue();
      await queue.enqueue('q', plain(2));
      await startWorker({
        queue,
        handler: ({ id }) => {
          throw id === 'm0'
            ? new RetryError('later', { retryDelayMs: 60_000 })
            : new ReleaseError('closed', { delayMs: 60_000 });
        },
      });
      await until(async () => (await queue.depth('q')).invisible === 2);
      expect(await queue.get('q', 'm0')).toMatchObject({ state: 'invisible', attempts: 1 });
      expect(await queue.get('q', 'm1')).toMatchObject({ state: 'invisible', attempts: 0 });
    });

    test('follow-ups are enqueued with the completion, and not with a failure', async () => {
      const queue = await openQueue();
      await queue.enqueue('q', [
        { id: 'good', payload: {} },
        { id: 'bad', payload: {}, attemptsMax: 1 },
      ]);
      await startWorker({
        queue,
        handler: ({ id }, { followUp }) => {
          followUp('next', { id: `after-${id}`, payload: { id } });
          followUp('last', { id: `long-after-${id}`, payload: 2 });
          if (id === 'bad') throw new Error('no');
        },
      });
      await until(async () => (await queue.get('q', 'bad'))?.state === 'errored');
      await until(async () => (await queue.get('q', 'good'))?.state === 'completed');
      expect(await queue.get('next', 'after-good')).toMatchObject({
        state: 'pending',
        payload: { id: 'good' },
      });
      expect(await queue.get('last', 'long-after-good')).toMatchObject({ state: 'pending', payload: 2 });
      expect(await queue.get('next', 'after-bad')).toBeUndefined();
    });

    test('a result that cannot be kept makes the message errored, and says why', async () => {
      const queue = await openQueue();
      await queue.enqueue('q', plain(2));
      await startWorker({
        queue,
        handler: ({ id }) => (id === 'm0' ? 'x'.repeat(40_000) : (10n as unknown as string)),
      });
      await until(async () => (await queue.list('q', { state: 'errored' })).messages.length === 2);
      expect((await queue.get('q', 'm0'))?.error).toMatch(/result.*32768/);
      expect((await queue.get('q', 'm1'))?.error).toMatch(/result.*BigInt/);
    });

    test('a batch handler takes several messages in one slot, and an Error in the place of a result fails that one', async () => {
      const queue = await openQueue();
      await queue.enqueue(
        'q',
        plain(50).map((message) => ({ ...message, attemptsMax: 1 })),
      );
      const sizes: number[] = [];
      let side = 0;
      let sideMost = 0;
      await startWorker({
        queue,
        slots: 2,
        batch: {
          sizeMax: 20,
          handler: async (messages) => {
            sizes.push(messages.length);
            side += 1;
            sideMost = Math.max(sideMost, side);
            await pause(5);
            side -= 1;
            return messages.map(({ id }) => (id === 'm7' ? new Error('not this one') : id));
          },
        },
      });
      await until(async () => (await queue.list('q', { state: 'completed' })).messages.length === 49);
      expect(await queue.get('q', 'm7')).toMatchObject({
        state: 'errored',
        error: expect.stringContaining('not this one'),
      });
      expect(await queue.get('q', 'm8')).toMatchObject({ state: 'completed', result: 'm8' });
      expect(Math.max(...sizes)).toBe(20);
      expect(sideMost).toBeLessThanOrEqual(2);
    });

    test('a handler past its time limit is told, and its message fails by that name', async () => {
      const queue = await openQueue();
      await queue.enqueue('q', [{ id: 'a', payload: {}, attemptsMax: 1 }]);
      const reasons: unknown[] = [];
      await startWorker({
        queue,
        handlerMsMax: 30,
        handler: (_message, { signal }) =>
          new Promise((_resolve, reject) => {
            signal.addEventListener('abort', () => {
              reasons.push(signal.reason.code);
              reject(new Error('aborted'));
            });
          }),
      });
      await until(async () => (await queue.get('q', 'a'))?.state === 'errored');
      expect(reasons).toEqual(['handler-time-limit']);
      expect((await queue.get('q', 'a'))?.error).toMatch(/ran for more than 30 ms/);
    });

    test('a canceled message tells its handler at the next extension', async () => {
      const queue = await openQueue();
      await queue.enqueue('q', plain(1));
      const codes: string[] = [];
      const started = gate();
      const worker = await startWorker({
        queue,
        leaseMs: 600,
        handler: (_message, { signal }) =>
          new Promise((resolve) => {
            signal.addEventListener('abort', () => {
              codes.push(signal.reason.code);
              resolve();
            });
            started.open();
          }),
      });
      await started.opened;
      await queue.cancel('q', ['m0']);
      await until(() => codes.length === 1);
      expect(codes).toEqual(['message-canceled']);
      await until(() => worker.state().running === 0);
      expect(await queue.get('q', 'm0')).toMatchObject({ state: 'canceled' });
    });
  });

  describe('slots and order', () => {
    test('no more handlers run side by side than there are slots, and the most urgent start first', async () => {
      const queue = await openQueue();
      await queue.enqueue(
        'q',
        ids(40).map((id, index) => ({ id, payload: {}, priority: 100 - index })),
      );
      const started: string[] = [];
      let side = 0;
      let sideMost = 0;
      await startWorker({
        queue,
        slots: 4,
        handler: async ({ id }) => {
          started.push(id);
          side += 1;
          sideMost = Math.max(sideMost, side);
          await pause(5);
          side -= 1;
        },
      });
      await until(() => started.length === 40);
      expect(sideMost).toBe(4);
      expect(started).toEqual(ids(40).toReversed());
    });

    test('a message that is enqueued while the worker waits starts at once', async () => {
      const queue = await openQueue();
      const startedAt: number[] = [];
      await startWorker({ queue, handler: () => void startedAt.push(performance.now()) });
      await pause(300);
      const sentAt = performance.now();
      await queue.enqueue('q', plain(1));
      await until(() => startedAt.length === 1);
      expect(startedAt[0]! - sentAt).toBeLessThan(within(1_000));
    });

    test('a delayed message starts within a second of its time with nothing enqueued in between', async () => {
      const queue = await openQueue();
      const startedAt: number[] = [];
      await startWorker({ queue, handler: () => void startedAt.push(performance.now()) });
      const sentAt = performance.now();
      await queue.enqueue('q', [{ payload: {}, delayMs: 700 }]);
      await until(() => startedAt.length === 1);
      expect(startedAt[0]! - sentAt).toBeGreaterThanOrEqual(690);
      expect(startedAt[0]! - sentAt).toBeLessThan(within(1_900));
    });

    test('several queues are served in turn and in proportion to their weights', async () => {
      const queue = await openQueue();
      await queue.enqueue('a', plain(60, 'a'));
      await queue.enqueue('b', plain(60, 'b'));
      const served: string[] = [];
      await startWorker({
        queue,
        queues: [{ queue: 'a', weight: 3 }, 'b'],
        slots: 4,
        prefetch: false,
        handler: async (message) => {
          served.push(message.queue);
          await pause(2);
        },
      });
      await until(() => served.length === 120);
      const early = served.slice(0, 60).filter((name) => name === 'a').length;
      expect(early).toBeGreaterThanOrEqual(40);
      expect(early).toBeLessThanOrEqual(50);
    });

    test('Q35: messages of one exclusivity value run one at a time, in order, whatever the slots', async () => {
      const queue = await openQueue();
      await queue.configure('q', { type: { kind: 'exclusive', key: 'user' } });
      await queue.enqueue(
        'q',
        plain(12).map((message) => ({ ...message, metadata: { user: 'u' } })),
      );
      const started: string[] = [];
      let side = 0;
      let sideMost = 0;
      await startWorker({
        queue,
        slots: 10,
        handler: async ({ id }) => {
          started.push(id);
          side += 1;
          sideMost = Math.max(sideMost, side);
          await pause(50);
          side -= 1;
        },
      });
      await until(async () => (await queue.list('q', { state: 'completed' })).messages.length === 12);
      expect(sideMost).toBe(1);
      expect(started).toEqual(ids(12));
    });
  });

  describe('lanes', () => {
    test('a lane keeps its floor while everything else is taken by other messages', async () => {
      const queue = await openQueue();
      await queue.enqueue('q', plain(100, 'bulk'));
      const release = gate();
      const started: string[] = [];
      await startWorker({
        queue,
        slots: 4,
        lanes: [{ name: 'otp', where: { kind: 'otp' }, floor: 1 }],
        handler: async ({ id }) => {
          started.push(id);
          if (id.startsWith('bulk')) await release.opened;
        },
      });
      await until(() => started.length === 3);
      await queue.enqueue(
        'q',
        plain(5, 'otp').map((message) => ({ ...message, metadata: { kind: 'otp' }, priority: 9e15 })),
      );
      await until(() => started.length === 8);
      expect(started.slice(3).sort()).toEqual(ids(5, 'otp'));
      release.open();
    });

    test('a lane borrows shared slots, and others never get its floor', async () => {
      const queue = await openQueue();
      const otp = plain(4, 'otp').map((message) => ({ ...message, metadata: { kind: 'otp' } }));
      await queue.enqueue('q', otp);
      const release = gate();
      const side = { otp: 0, bulk: 0 };
      let bulkMost = 0;
      let ended = 0;
      await startWorker({
        queue,
        slots: 4,
        lanes: [{ name: 'otp', where: { kind: 'otp' }, floor: 1 }],
        handler: async ({ id }) => {
          const kind = id.startsWith('otp') ? 'otp' : 'bulk';
          side[kind] += 1;
          bulkMost = Math.max(bulkMost, side.bulk);
          await (kind === 'otp' ? release.opened : pause(5));
          side[kind] -= 1;
          ended += 1;
        },
      });
      await until(() => side.otp === 4);
      await queue.enqueue('q', plain(20, 'bulk'));
      release.open();
      await until(() => ended === 24);
      expect(bulkMost).toBe(3);
    });

    test('Q38: a lane of one tenant starts its message past thousands of others', async () => {
      const queue = await openQueue();
      await queue.configure('q', { type: { kind: 'exclusive', key: 'value' } });
      const of = (tenant: string, value: string) => ({ id: value, payload: {}, metadata: { tenant, value } });
      await queue.enqueue(
        'q',
        ids(2_000, 'v').map((value) => of('t1', value)),
      );
      const hold = gate();
      const startedAt = new Map<string, number>();
      await startWorker({
        queue,
        slots: 4,
        lanes: [{ name: 't5', where: { tenant: 't5' }, floor: 1 }],
        handler: async ({ id }) => {
          startedAt.set(id, performance.now());
          await hold.opened;
        },
      });
      await until(() => startedAt.size === 3);
      const sentAt = performance.now();
      await queue.enqueue(
        'q',
        ids(11, 't').map((id, index) => of(`t${index}`, id)),
      );
      await until(() => startedAt.has('t5'));
      expect(startedAt.get('t5')! - sentAt).toBeLessThan(within(1_000));
      hold.open();
    });

    test('floors that leave no shared slot are refused by start, which names them', async () => {
      const queue = await openQueue();
      const worker = createWorker({
        queue,
        queues: ['q'],
        slots: 3,
        handler: () => {},
        lanes: [{ name: 'otp', where: { kind: 'otp' }, floor: 3 }],
      });
      await expect(worker.start()).rejects.toMatchObject({
        code: 'invalid-input',
        field: 'lanes',
        expected: /at most 2/,
      });
    });
  });

  describe('what is held in advance', () => {
    test('under load messages are fetched in advance, and each is handled once', async () => {
      const queue = await openQueue();
      await queue.enqueue('q', plain(6_000));
      const seen = new Set<string>();
      let twice = 0;
      let waitingMost = 0;
      const worker = await startWorker({
        queue,
        slots: 10,
        prefetch: { messagesMax: 1_000 },
        handler: async ({ id }) => {
          if (seen.has(id)) twice += 1;
          seen.add(id);
          waitingMost = Math.max(waitingMost, worker.state().waiting);
        },
      });
      await until(() => seen.size === 6_000);
      await until(() => worker.state().unsettled === 0);
      expect(twice).toBe(0);
      expect(waitingMost).toBeGreaterThan(20);
      expect(waitingMost).toBeLessThanOrEqual(1_010);
      const { messages } = await queue.list('q', { state: 'completed', limit: 1_000 });
      expect(messages.every(({ attempts, version }) => attempts === 1 && version === 3)).toBe(true);
    });

    test('nothing is fetched in advance from an exclusive queue', async () => {
      const queue = await openQueue();
      await queue.configure('q', { type: { kind: 'exclusive', key: 'user' } });
      await queue.enqueue(
        'q',
        ids(3_000).map((id) => ({ id, payload: {}, metadata: { user: id } })),
      );
      let handled = 0;
      let waitingMost = 0;
      const worker = await startWorker({
        queue,
        slots: 10,
        handler: async () => {
          handled += 1;
          waitingMost = Math.max(waitingMost, worker.state().waiting);
        },
      });
      await until(() => handled === 3_000, { boundMs: 40_000 });
      expect(waitingMost).toBeLessThan(10);
    });

    test('what was fetched in advance and cannot start soon goes back with its attempt', async () => {
      const queue = await openQueue();
      await queue.enqueue('q', plain(4_000));
      const hold = gate();
      let handled = 0;
      const worker = await startWorker({
        queue,
        slots: 10,
        handler: async () => {
          handled += 1;
          if (handled > 1_500) await hold.opened;
        },
      });
      await until(() => handled === 1_510);
      await until(() => worker.state().waiting === 0 && worker.state().unsettled === 0);
      expect(await queue.depth('q')).toMatchObject({ running: 10, pending: 4_000 - 1_510 });
      const { messages } = await queue.list('q', { state: 'pending', limit: 1_000 });
      expect(messages.every(({ attempts }) => attempts === 0)).toBe(true);
      hold.open();
    });

    test('what was fetched in advance does not start once the worker is stopping, and goes back with its attempt', async () => {
      const queue = await openQueue();
      await queue.enqueue('q', plain(4_000));
      let handled = 0;
      let handledBefore = 0;
      let stopping: Promise<void> | undefined;
      const worker = await startWorker({
        queue,
        slots: 10,
        handler: async () => {
          handled += 1;
          if (stopping !== undefined || handled <= 500 || worker.state().waiting <= 20) return;
          handledBefore = handled;
          stopping = worker.stop({ deadlineMs: 20_000 });
        },
      });
      await until(() => stopping !== undefined);
      await stopping;
      expect(handled).toBe(handledBefore);
      expect(await queue.depth('q')).toMatchObject({ running: 0, pending: 4_000 - handled });
      const { messages } = await queue.list('q', { state: 'pending', limit: 1_000 });
      expect(messages.every(({ attempts }) => attempts === 0)).toBe(true);
    });

    test('a message on its last attempt is never held in advance', async () => {
      const queue = await openQueue();
      await queue.enqueue('q', plain(2_000));
      await queue.enqueue(
        'q',
        plain(300, 'last').map((message) => ({ ...message, attemptsMax: 1 })),
      );
      const hold = gate();
      let handled = 0;
      const worker = await startWorker({
        queue,
        slots: 5,
        handler: async ({ attemptsMax }) => {
          handled += 1;
          if (attemptsMax === 1) await hold.opened;
        },
      });
      await until(() => handled === 2_005);
      await until(() => worker.state().unsettled === 0);
      expect(await queue.depth('q')).toMatchObject({ running: 5, pending: 295 });
      hold.open();
      await until(() => handled === 2_300);
      await until(async () => (await queue.depth('q')).running === 0);
      expect((await queue.list('q', { state: 'errored' })).messages).toEqual([]);
    });
  });

  describe('lost calls', () => {
    test('a dequeue whose reply was lost is repeated under its requestId and strands nothing', async () => {
      const inner = await openQueue();
      let lost = 0;
      const { store, calls } = disturbedStore(inner.store, (operation) => {
        if (operation !== 'dequeue' || lost >= 2) return 'none';
        lost += 1;
        return 'lose reply';
      });
      await inner.enqueue('q', plain(3));
      const seen: LeasedMessage[] = [];
      await startWorker({
        queue: { ...inner, store } as Queue,
        slots: 2,
        handler: (message) => void seen.push(message),
      });
      await until(async () => (await inner.list('q', { state: 'completed' })).messages.length === 3);
      expect(seen.map(({ attempts }) => attempts)).toEqual([1, 1, 1]);
      const requestIds = calls
        .filter(({ operation }) => operation === 'dequeue')
        .map(({ request }) => request['requestId']);
      expect(new Set(requestIds.slice(0, 3)).size).toBe(1);
    });

    test('settlements wait while the store is away and are repeated until it has answered', async () => {
      const inner = await openQueue();
      let away = false;
      const { store } = disturbedStore(inner.store, (operation) =>
        away && ['complete', 'fail', 'settleAndDequeue', 'dequeue'].includes(operation)
          ? 'lose reply'
          : 'none',
      );
      await inner.enqueue(
        'q',
        plain(20).map((message) => ({ ...message, attemptsMax: 2 })),
      );
      const goOn = gate();
      const worker = await startWorker({
        queue: { ...inner, store } as Queue,
        slots: 20,
        handler: async ({ id, attempts }) => {
          await goOn.opened;
          if (id === 'm3' && attempts === 1) throw new Error('once more');
          return id;
        },
      });
      await until(() => worker.state().running === 20);
      away = true;
      goOn.open();
      await until(() => worker.state().running === 0);
      await pause(300);
      expect(worker.state().unsettled).toBeGreaterThan(0);
      away = false;
      await until(async () => (await inner.list('q', { state: 'completed' })).messages.length === 20);
      expect(await inner.get('q', 'm3')).toMatchObject({ attempts: 2, result: 'm3' });
      expect(await inner.get('q', 'm4')).toMatchObject({ attempts: 1, version: 3 });
    });
  });

  describe('start and stop', () => {
    test('start and stop may be called twice and in any order', async () => {
      const queue = await openQueue();
      let handled = 0;
      const worker = createWorker({ queue, queues: ['q'], handler: () => void (handled += 1) });
      await worker.stop();
      await Promise.all([worker.start(), worker.start()]);
      await queue.enqueue('q', plain(1));
      await until(() => handled === 1);
      await Promise.all([worker.stop(), worker.stop()]);
      expect(worker.state().phase).toBe('stopped');
      await queue.enqueue('q', plain(1, 'later'));
      await worker.start();
      await until(() => handled === 2);
      await worker.stop();
    });

    test('Q51a: an idle worker that waits stops within a second', async () => {
      const queue = await openQueue();
      const worker = await startWorker({ queue, handler: () => {} });
      await pause(50);
      const startedAt = performance.now();
      await Promise.all([worker.stop(), worker.stop()]);
      expect(performance.now() - startedAt).toBeLessThan(within(1_000));
    });

    test('stop with no time at all still gives back what runs', async () => {
      const queue = await openQueue();
      await queue.enqueue('q', plain(5));
      const worker = await startWorker({ queue, slots: 5, handler: () => new Promise(() => {}) });
      await until(() => worker.state().running === 5);
      await worker.stop({ deadlineMs: 0 });
      await until(async () => (await queue.depth('q')).pending === 5);
      expect((await queue.list('q', { state: 'pending' })).messages.map(({ attempts }) => attempts)).toEqual(
        Array(5).fill(0),
      );
    });

    test('Q52: stop waits for what ends in time and gives back the rest with the attempt refunded', async () => {
      const queue = await openQueue();
      const kinds = [...Array(25).fill('ends'), ...Array(15).fill('throws'), ...Array(10).fill('long')];
      await queue.enqueue(
        'q',
        kinds.map((kind, index) => ({ id: `${kind}${index}`, payload: { kind } })),
      );
      const reasons: string[] = [];
      const worker = await startWorker({
        queue,
        slots: 50,
        handler: async ({ id }, { signal }) => {
          if (id.startsWith('ends')) return pause(100);
          if (id.startsWith('throws')) {
            await pause(200);
            throw new Error('no');
          }
          signal.addEventListener('abort', () => reasons.push(signal.reason.code));
          return new Promise(() => {});
        },
      });
      await until(() => worker.state().running === 50);
      const startedAt = performance.now();
      await worker.stop({ deadlineMs: 1_000 });
      expect(performance.now() - startedAt).toBeLessThan(1_100);
      expect(reasons).toEqual(Array(10).fill('stopped'));
      expect((await queue.list('q', { state: 'completed' })).messages).toHaveLength(25);
      const { messages } = await queue.list('q', { state: 'pending' });
      const attempts = (kind: string) =>
        messages.filter(({ id }) => id.startsWith(kind)).map((message) => message.attempts);
      expect(attempts('throws')).toEqual(Array(15).fill(1));
      expect(attempts('long')).toEqual(Array(10).fill(0));
      expect((await queue.depth('q')).running).toBe(0);
    });
  });

  test.each([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, '30s' as unknown as number])(
    'Q08: a lease of %s is refused by name',
    async (leaseMs) => {
      const queue = createQueue({ store: (await openQueue()).store });
      expect(() => createWorker({ queue, queues: ['q'], leaseMs, handler: () => {} })).toThrow(
        expect.objectContaining({ code: 'invalid-input', field: 'leaseMs', value: leaseMs }),
      );
    },
  );

  test.each([2_147_483_648, 31_536_000_000])(
    'Q08: a lease of %s ms ends neither early nor asks often',
    async (leaseMs) => {
      const inner = await openQueue();
      const { store, calls } = disturbedStore(inner.store);
      await inner.enqueue('q', plain(1));
      await startWorker({ queue: { ...inner, store } as Queue, leaseMs, handler: () => pause(500) });
      await until(async () => (await inner.get('q', 'm0'))?.state === 'completed');
      expect(calls.filter(({ operation }) => operation === 'extend').length).toBeLessThanOrEqual(1);
      expect(await inner.get('q', 'm0')).toMatchObject({ attempts: 1 });
    },
  );
});
