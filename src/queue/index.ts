export { createQueue } from './queue.js';
export type {
  CompleteLease,
  DequeueOptions,
  EnqueueOptions,
  ListOptions,
  Queue,
  QueueOptions,
  RecurOptions,
} from './queue.js';
export { queueError, queueErrors } from './errors.js';
export { createEventSink, type EventSinkOptions } from './event-sink.js';
export type { EventListener } from './events.js';
export type * from './message.js';
export { queueMetrics, type QueueMetric } from './metrics.js';
export type { Lane } from './lanes.js';
export { limitsDefault, type QueueLimits } from './options.js';
export { NoRetryError, ReleaseError, RetryError, type RetryOptions } from './retry.js';
export type * from './store.js';
export {
  createWorker,
  type BatchHandler,
  type BatchOptions,
  type Handler,
  type HandlerContext,
  type MessageContext,
  type PrefetchOptions,
  type WeightedQueue,
  type Worker,
  workerErrors,
  type WorkerMetric,
  workerMetrics,
  type WorkerOptions,
  type WorkerState,
} from './worker/index.js';
