/** One place that counts what the queue answers; names and labels are those of the metrics table. */
import type { Metrics, MetricsBackend } from '../metrics.js';
import type { LeaseOperation } from './lease-calls.js';
import type { LeasedMessage } from './message.js';
import { type QueueMetric, queueMetrics } from './metrics.js';
import type { EnqueueOutcome, LeaseOutcome } from './store.js';

export class QueueCounters {
  readonly #metrics: Metrics<QueueMetric>;

  constructor(backend: MetricsBackend) {
    this.#metrics = backend(queueMetrics);
  }

  enqueued(queue: string, outcomes: readonly EnqueueOutcome[]): void {
    const nameOf = (outcome: EnqueueOutcome) =>
      outcome.kind === 'enqueued' ? (outcome.created ? 'created' : 'known') : outcome.kind;
    for (const [outcome, amount] of countBy(outcomes, nameOf)) {
      this.#metrics.add('headgate_queue_enqueued_total', { queue, outcome }, amount);
    }
  }

  dequeued(queue: string, messages: readonly LeasedMessage[]): void {
    if (messages.length === 0) return this.#metrics.add('headgate_queue_empty_dequeues_total', { queue });
    this.#metrics.add('headgate_queue_dequeued_total', { queue }, messages.length);
    for (const { startedAt, visibleAt } of messages) {
      const waitedMs = Math.max(0, (startedAt ?? visibleAt) - visibleAt);
      this.#metrics.observe('headgate_queue_wait_seconds', { queue }, waitedMs / 1_000);
    }
  }

  settled(queue: string, operation: LeaseOperation, outcomes: readonly LeaseOutcome[]): void {
    for (const [outcome, amount] of countBy(outcomes, ({ kind }) => kind)) {
      this.#metrics.add('headgate_queue_settled_total', { queue, operation, outcome }, amount);
    }
  }

  lag(queue: string, ageMs: number): void {
    this.#metrics.set('headgate_queue_lag_seconds', { queue }, ageMs / 1_000);
  }

  moved(amount: number): void {
    this.#metrics.add('headgate_queue_housekeeping_moved_total', {}, amount);
  }

  housekeepingFailed(): void {
    this.#metrics.add('headgate_queue_housekeeping_failures_total', {});
  }

  eventsDropped(amount: number): void {
    this.#metrics.add('headgate_queue_events_dropped_total', {}, amount);
  }
}

function countBy<T>(items: readonly T[], nameOf: (item: T) => string): Map<string, number> {
  const amounts = new Map<string, number>();
  for (const item of items) amounts.set(nameOf(item), (amounts.get(nameOf(item)) ?? 0) + 1);
  return amounts;
}
