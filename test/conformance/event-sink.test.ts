/** What an event sink carries out of the process, on every store that can be opened here. */
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import {
  createEventSink,
  type EventSinkOptions,
  type MessageEvent,
  type Queue,
} from '../../src/queue/index.js';
import type { MetricsBackend } from '../../src/metrics.js';
import { gate } from '../faults/worker/harness.js';
import { until } from '../../src/testing/until.js';
import { queuesUnderTest } from '../faults/worker/stores.js';

describe.each(queuesUnderTest())('an event sink on $name', ({ open, close }) => {
  let queue: Queue;
  let sink: ReturnType<typeof createEventSink> | undefined;
  let counts: Record<string, number>;
  const metrics: MetricsBackend = () => ({
    add: (name, { outcome = '' }, amount = 1) =>
      (counts[`${name}${outcome}`] = (counts[`${name}${outcome}`] ?? 0) + amount),
    set: () => {},
    observe: () => {},
  });

  afterEach(async () => {
    await sink?.stop({ deadlineMs: 0 });
    await queue.stop();
  });
  afterAll(close);

  async function startSink(
    options: Partial<EventSinkOptions> & Pick<EventSinkOptions, 'deliver'>,
  ): Promise<void> {
    counts = {};
    queue = await open();
    sink = createEventSink({ queue, metrics, retryDelayMs: 5, ...options });
    await sink.start();
  }
  const versionsOf = (events: readonly MessageEvent[], wanted = 'a') =>
    events.filter(({ id }) => id === wanted).map(({ version }) => version);

  test('every change comes in order, in batches, and a batch that was not taken comes again', async () => {
    const taken: MessageEvent[] = [];
    const sizes: number[] = [];
    await startSink({
      batchMax: 2,
      deliver: async (events) => {
        sizes.push(events.length);
        if (sizes.length === 2) throw new Error('away');
        taken.push(...events);
      },
    });
    await queue.enqueue(
      'q',
      ['a', 'b', 'c'].map((id) => ({ id, payload: 1, metadata: { region: 'eu' } })),
    );
    const messages = await queue.dequeue('q', { count: 3 });
    await queue.complete('q', messages);
    await until(() => taken.length === 9);
    expect(Math.max(...sizes)).toBe(2);
    for (const id of ['a', 'b', 'c']) expect(versionsOf(taken, id)).toEqual([1, 2, 3]);
    expect(taken.at(0)).toMatchObject({ queue: 'q', id: 'a', to: 'pending', metadata: { region: 'eu' } });
    expect(counts).toMatchObject({
      headgate_queue_sink_events_totaldelivered: 9,
      headgate_queue_sink_failures_total: 1,
    });
  });

  test('a change that nobody in this process has made is put in before the next one, from history', async () => {
    const taken: MessageEvent[] = [];
    await startSink({ deliver: async (events) => void taken.push(...events) });
    await queue.enqueue('q', [{ id: 'a', payload: 1 }]);
    await queue.dequeue('q', { leaseMs: 30 });
    // The lease expires: a step of the store itself, whoever takes it.
    const [again] = await queue.dequeue('q', { waitMs: 10_000 });
    await queue.complete('q', [again!]);
    await until(() => taken.at(-1)?.to === 'completed');
    expect(versionsOf(taken)).toEqual([1, 2, 3, 4, 5]);
    expect(taken.map(({ to }) => to)).toEqual(['pending', 'running', 'pending', 'running', 'completed']);
  });

  test('what is dropped while nothing is taken is counted, and comes from history with the next change', async () => {
    const taken: MessageEvent[] = [];
    const open = gate();
    await startSink({
      eventsMax: 2,
      batchMax: 1,
      deliver: async (events) => {
        await open.opened;
        taken.push(...events);
      },
    });
    await queue.enqueue('q', [{ id: 'first', payload: 1 }]);
    await queue.enqueue('q', [{ id: 'a', payload: 1, priority: 1 }]);
    for (let round = 0; round < 3; round += 1) await queue.release('q', await queue.dequeue('q'));
    await until(() => (counts['headgate_queue_sink_events_totaldropped'] ?? 0) >= 4);
    open.open();
    await until(() => versionsOf(taken).includes(7));
    expect(versionsOf(taken)).toEqual([1, 2, 3, 4, 5, 6, 7]);
  });

  test('stop hands over what waits, and ends by its deadline where nothing is taken', async () => {
    const taken: MessageEvent[] = [];
    await startSink({ deliver: async (events) => void taken.push(...events) });
    const bare = createEventSink({ queue, metrics, deliver: () => Promise.reject(new Error('away')) });
    await bare.start();
    await queue.enqueue('q', [{ id: 'a', payload: 1 }]);
    await until(() => (counts['headgate_queue_sink_failures_total'] ?? 0) > 0);
    await sink!.stop();
    expect(versionsOf(taken)).toEqual([1]);
    await bare.stop({ deadlineMs: 20 });
    await until(() => counts['headgate_queue_sink_events_totaldropped'] === 1);
  });
});

test('an event sink refuses bounds that are none, by name', () => {
  const queue = { onEvent: () => () => {}, history: async () => [] };
  const deliver = async () => {};
  for (const field of ['batchMax', 'eventsMax', 'retryDelayMs']) {
    expect(() => createEventSink({ queue, deliver, [field]: 0 })).toThrow(
      expect.objectContaining({ field }) as Error,
    );
  }
});
