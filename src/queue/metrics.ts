/** The queue's metrics in one table; docs/reference/metrics.md is made from it. Queue names are few by nature, ids are not. */
import type { MetricTable } from '../metrics.js';

const waitSeconds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800];

export const queueMetrics = {
  headgate_queue_enqueued_total: {
    type: 'counter',
    help: 'Messages enqueued, by outcome.',
    labels: ['queue', 'outcome'],
  },
  headgate_queue_dequeued_total: {
    type: 'counter',
    help: 'Messages handed out with a lease.',
    labels: ['queue'],
  },
  headgate_queue_empty_dequeues_total: {
    type: 'counter',
    help: 'Dequeue calls that found nothing.',
    labels: ['queue'],
  },
  headgate_queue_settled_total: {
    type: 'counter',
    help: 'Answers to extend, complete, fail and release, by outcome.',
    labels: ['queue', 'operation', 'outcome'],
  },
  headgate_queue_housekeeping_moved_total: {
    type: 'counter',
    help: 'Messages moved by housekeeping: due, expired, collected.',
    labels: [],
  },
  headgate_queue_housekeeping_failures_total: {
    type: 'counter',
    help: 'Housekeeping steps that failed.',
    labels: [],
  },
  headgate_queue_events_dropped_total: {
    type: 'counter',
    help: 'Events dropped because a listener was too slow.',
    labels: [],
  },
  headgate_queue_sink_events_total: {
    type: 'counter',
    help: 'Events of an event sink, by outcome: delivered or dropped.',
    labels: ['outcome'],
  },
  headgate_queue_sink_failures_total: {
    type: 'counter',
    help: 'Batches that an event sink could not deliver and sends again.',
    labels: [],
  },
  headgate_queue_wait_seconds: {
    type: 'histogram',
    help: 'Time from becoming visible to the dequeue.',
    labels: ['queue'],
    buckets: waitSeconds,
  },
  headgate_queue_lag_seconds: {
    type: 'gauge',
    help: 'Age of the oldest pending message.',
    labels: ['queue'],
  },
} as const satisfies MetricTable;

export type QueueMetric = keyof typeof queueMetrics;
