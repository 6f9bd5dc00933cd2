/** The worker's metrics in one table, bound once to each backend however many workers there are. */
import type { Metrics, MetricsBackend, MetricTable } from '../../metrics.js';

const handlerSeconds = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300];

export const workerMetrics = {
  headgate_worker_messages_total: {
    type: 'counter',
    help: 'Messages that left a worker, by how: completed, failed, released, lease-lost, canceled or refused.',
    labels: ['queue', 'outcome'],
  },
  headgate_worker_handler_seconds: {
    type: 'histogram',
    help: 'Duration of the calls of the handler.',
    labels: ['queue'],
    buckets: handlerSeconds,
  },
  headgate_worker_slots_used: {
    type: 'gauge',
    help: 'Slots in use, by worker (named by its queues) and lane; messages of no lane under the empty name.',
    labels: ['queues', 'lane'],
  },
  headgate_worker_lag_seconds: {
    type: 'gauge',
    help: 'Age of the oldest pending message of a queue or, with the name of a lane, of that lane.',
    labels: ['queue', 'lane'],
  },
  headgate_worker_store_errors_total: {
    type: 'counter',
    help: 'Calls to the store that failed or had no answer in time, by operation.',
    labels: ['operation'],
  },
  headgate_worker_handed_back_total: {
    type: 'counter',
    help: 'Messages fetched in advance that were handed back without being started.',
    labels: ['queue'],
  },
  headgate_worker_overdue_handlers_total: {
    type: 'counter',
    help: 'Handlers that went on after their signal had fired and whose slot was taken from them.',
    labels: [],
  },
} as const satisfies MetricTable;

export type WorkerMetric = keyof typeof workerMetrics;

const bound = new WeakMap<MetricsBackend, Metrics<WorkerMetric>>();

export function metricsOf(backend: MetricsBackend): Metrics<WorkerMetric> {
  const known = bound.get(backend);
  if (known !== undefined) return known;
  const metrics = backend(workerMetrics);
  bound.set(backend, metrics);
  return metrics;
}
