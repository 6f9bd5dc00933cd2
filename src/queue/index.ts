export { createQueue } from './queue.js';
export type {
  CompleteLease,
  DequeueOptions,
  EnqueueOptions,
  ListOptions,
  Queue,
  QueueOptions,
} from './queue.js';
export { queueError, queueErrors } from './errors.js';
export type { EventListener } from './events.js';
export type * from './message.js';
export { queueMetrics, type QueueMetric } from './metrics.js';
export { limitsDefault, type QueueLimits } from './options.js';
export type * from './store.js';
