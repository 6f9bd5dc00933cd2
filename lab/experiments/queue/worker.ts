/**
 * What the worker itself costs: CPU time a message with a store that answers at once and keeps nothing, at 1, 10 and 100
 * slots. What is left of a core at the target rate belongs to driver, store and handler.
 */
import { createWorker, type LeasedMessage, type QueueStore } from '../../../src/queue/index.js';
import { configurationDefault } from '../../../src/queue/store.js';
import type { Experiment, ExperimentContext, Figure, Report } from '../../experiment.js';

/** Two times what graphile-worker reached on two cores: the rate that the postgres store is to reach. */
const ratePerSecond = 51_600;
/** A fifth of a core at that rate. */
const microsecondsMost = 4;

/** Gives out `count` messages and takes every completion. */
function emptyStore(count: number): { readonly store: QueueStore; readonly calls: () => number } {
  let given = 0;
  let calls = 0;
  const message = (index: number, requestId: string): LeasedMessage => ({
    queue: 'q',
    id: String(index),
    payload: {},
    metadata: {},
    priority: index,
    state: 'running',
    attempts: 1,
    attemptsMax: 3,
    visibleAt: 0,
    leaseUntil: 0,
    version: 2,
    enqueuedAt: 0,
    startedAt: 0,
    finishedAt: undefined,
    result: undefined,
    error: undefined,
    trace: undefined,
    leaseToken: `${requestId}.${index}`,
  });
  const store: Partial<QueueStore> = {
    async dequeue(request) {
      calls += 1;
      const size = Math.min(request.count, count - given);
      given += size;
      return Array.from({ length: size }, (_, index) => message(given - size + index, request.requestId));
    },
    complete: async ({ leases }) =>
      leases.map(({ id }) => ({ kind: 'done', id, state: 'completed', version: 3 })),
    async settleAndDequeue({ queue, complete, dequeue, now }) {
      const completed = await store.complete!({ queue, leases: complete, now });
      return { completed, messages: await store.dequeue!(dequeue) };
    },
    configuration: async () => configurationDefault,
    watch: async () => async () => {},
  };
  return { store: store as QueueStore, calls: () => calls };
}

async function measure(
  slots: number,
  count: number,
): Promise<{ readonly microseconds: number; readonly perCall: number }> {
  const { store, calls } = emptyStore(count);
  let handled = 0;
  let allHandled = (): void => {};
  const all = new Promise<void>((resolve) => {
    allHandled = resolve;
  });
  const worker = createWorker({
    queue: { store },
    queues: ['q'],
    slots,
    handler: async () => {
      handled += 1;
      if (handled === count) allHandled();
    },
  });
  const before = process.cpuUsage();
  await worker.start();
  await all;
  await worker.stop();
  const { user, system } = process.cpuUsage(before);
  return { microseconds: (user + system) / count, perCall: count / calls() };
}

async function run({ quick }: ExperimentContext): Promise<Report> {
  const count = quick ? 300_000 : 2_000_000;
  await measure(100, 100_000);
  const rows: Figure[][] = [];
  const figures: Record<string, Figure> = {};
  let most = 0;
  for (const slots of [1, 10, 100]) {
    const { microseconds, perCall } = await measure(slots, count);
    most = Math.max(most, microseconds);
    rows.push([slots, microseconds, Math.round(1_000_000 / microseconds), Math.round(perCall)]);
    figures[`CPU µs a message, ${slots} slots`] = microseconds;
  }
  return {
    tables: [{ columns: ['slots', 'CPU µs a message', 'a second on one core', 'messages a call'], rows }],
    figures,
    reference: {
      'to reach': `at most ${microsecondsMost} µs: a fifth of a core at ${ratePerSecond.toLocaleString('en')}/s`,
    },
    durability: 'none: the store keeps nothing',
    holds: most <= microsecondsMost,
    verdict: `the worker costs at most ${most.toFixed(2)} µs of CPU a message, its test store included`,
  };
}

export const worker: Experiment = {
  name: 'worker',
  shows: 'what the worker itself costs a message, with a store that answers at once',
  run,
};
