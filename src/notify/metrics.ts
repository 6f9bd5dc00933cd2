/** The metrics of notifications in one table; docs/reference/metrics.md is made from it. Kinds and providers are few. */
import type { MetricTable } from '../metrics.js';

const seconds = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3_600];

export const notifyMetrics = {
  headgate_notify_sends_total: {
    type: 'counter',
    help: 'Calls of send, by outcome: accepted, duplicate, conflict, limited.',
    labels: ['kind', 'outcome'],
  },
  headgate_notify_deliveries_total: {
    type: 'counter',
    help: 'Deliveries accepted.',
    labels: ['kind', 'channel'],
  },
  headgate_notify_attempts_total: {
    type: 'counter',
    help: 'Calls of a provider, by what is known afterwards: sent, refused, not-accepted, ambiguous.',
    labels: ['kind', 'provider', 'outcome'],
  },
  headgate_notify_attempt_seconds: {
    type: 'histogram',
    help: 'Time of one call of a provider.',
    labels: ['provider'],
    buckets: seconds,
  },
  headgate_notify_wait_seconds: {
    type: 'histogram',
    help: 'Time from being due to the call of the provider.',
    labels: ['kind'],
    buckets: seconds,
  },
  headgate_notify_finished_total: {
    type: 'counter',
    help: 'Deliveries that have ended, by state.',
    labels: ['kind', 'state'],
  },
  headgate_notify_swept_total: {
    type: 'counter',
    help: 'Deliveries that the sweep has settled or woken again.',
    labels: ['result'],
  },
  headgate_notify_receipts_total: {
    type: 'counter',
    help: 'Receipts taken, by whether a delivery was found.',
    labels: ['provider', 'outcome'],
  },
  headgate_notify_knowing_duplicates_total: {
    type: 'counter',
    help: 'Attempts after an unknown outcome with another provider, outside the first one’s protection.',
    labels: ['kind'],
  },
  headgate_notify_breaker_open: {
    type: 'gauge',
    help: '1 while the circuit breaker of a provider is open.',
    labels: ['provider'],
  },
} as const satisfies MetricTable;

export type NotifyMetric = keyof typeof notifyMetrics;
