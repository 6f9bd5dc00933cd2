/** The relay's metrics. */
import type { MetricTable } from '../../metrics.js';

export const outboxMetrics = {
  headgate_outbox_relayed_total: {
    type: 'counter',
    help: 'Messages moved from the outbox to the store, by outcome.',
    labels: ['queue', 'outcome'],
  },
  headgate_outbox_failures_total: {
    type: 'counter',
    help: 'Rounds of the relay that failed and are repeated.',
    labels: [],
  },
  headgate_outbox_lag_seconds: {
    type: 'gauge',
    help: 'Age of the oldest message in the outbox.',
    labels: ['queue'],
  },
} as const satisfies MetricTable;
