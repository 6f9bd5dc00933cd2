/** What a listener of events sees of a worker's messages. */
import { expect, test } from 'vitest';
import { createQueue, createWorker, type MessageEvent } from '../../src/queue/index.js';
import { createMemoryQueueStore } from '../../src/queue/memory/index.js';
import { atOnce, gate } from './worker/harness.js';
import { until } from '../../src/testing/until.js';

const messages = (count: number) =>
  Array.from({ length: count }, (_, index) => ({ id: `m${index}`, payload: {} }));

test('Q53: the highest version of shuffled and doubled events is what the store says, and versions have no gap', async () => {
  const queue = createQueue({ store: createMemoryQueueStore() });
  await queue.start();
  const events: MessageEvent[] = [];
  queue.onEvent((event) => void events.push(event));
  await queue.enqueue('q', messages(1_000));
  const workers = Array.from({ length: 20 }, () =>
    createWorker({
      queue,
      queues: ['q'],
      slots: 2,
      ...atOnce,
      handler: ({ id, attempts }) => {
        if (Number(id.slice(1)) % 10 === 0 && attempts === 1) throw new Error('once more');
      },
    }),
  );
  for (const worker of workers) await worker.start();
  await until(async () => {
    const { pending, running } = await queue.depth('q');
    return pending + running === 0;
  });
  for (const worker of workers) await worker.stop();
  await until(() => events.filter(({ to }) => to === 'completed').length === 1_000);

  const shuffled = [...events, ...events].sort(() => Math.random() - 0.5);
  const picture = new Map<string, MessageEvent>();
  for (const event of shuffled) {
    if (event.version > (picture.get(event.id)?.version ?? 0)) picture.set(event.id, event);
  }
  for (const { id } of messages(1_000)) {
    const stored = await queue.get('q', id);
    expect(picture.get(id)).toMatchObject({
      to: stored?.state,
      version: stored?.version,
      attempt: stored?.attempts,
    });
    const versions = events.filter((event) => event.id === id).map(({ version }) => version);
    expect(versions.toSorted((a, b) => a - b)).toEqual(versions.map((_, index) => index + 1));
  }
  await queue.stop();
});

test('lag in seconds and slots in use are shown by queue and lane', async () => {
  const queue = createQueue({ store: createMemoryQueueStore() });
  await queue.start();
  const shown = new Map<string, number>();
  const hold = gate();
  const worker = createWorker({
    queue,
    queues: ['q'],
    slots: 2,
    lanes: [{ name: 'otp', where: { kind: 'otp' }, floor: 1 }],
    metrics: () => ({
      add() {},
      observe() {},
      set: (name: string, labels, value) =>
        void shown.set(`${name} ${labels['queue'] ?? labels['queues']} ${labels['lane']}`, value),
    }),
    handler: () => hold.opened,
  });
  await worker.start();
  await queue.enqueue('q', messages(3));
  await queue.enqueue('q', [{ payload: {}, metadata: { kind: 'otp' } }]);
  await until(() => (shown.get('headgate_worker_lag_seconds q ') ?? 0) > 0.5);
  await until(() => shown.get('headgate_worker_slots_used q otp') === 1);
  expect(shown.get('headgate_worker_lag_seconds q ')).toBeLessThan(30);
  expect(shown.get('headgate_worker_slots_used q ')).toBe(1);
  hold.open();
  await worker.stop();
  await queue.stop();
});

test('what a worker takes and ends is counted with what callers take and end', async () => {
  const counts = new Map<string, number>();
  const metrics = () => ({
    set() {},
    observe() {},
    add: (name: string, labels: Readonly<Record<string, string>>, amount = 1) => {
      const key = [name, labels['operation'], labels['outcome']].filter(Boolean).join(' ');
      counts.set(key, (counts.get(key) ?? 0) + amount);
    },
  });
  const queue = createQueue({ store: createMemoryQueueStore(), metrics });
  await queue.start();
  await queue.enqueue(
    'q',
    messages(30).map((message) => ({ ...message, attemptsMax: 1 })),
  );
  await queue.complete('q', await queue.dequeue('q', { count: 5 }));
  const worker = createWorker({
    queue,
    queues: ['q'],
    metrics,
    handler: ({ id }) => {
      if (Number(id.slice(1)) % 2 === 1) throw new Error('odd');
    },
  });
  await worker.start();
  await until(async () => (await queue.depth('q')).pending + (await queue.depth('q')).running === 0);
  await worker.stop();
  // m0 to m4 by a caller; of m5 to m29 the twelve even ones by the worker.
  expect(counts.get('headgate_queue_settled_total complete done')).toBe(5 + 12);
  expect(counts.get('headgate_queue_settled_total fail done')).toBe(13);
  expect(counts.get('headgate_queue_dequeued_total')).toBe(30);
  await queue.stop();
});
