export { createWorker } from './worker.js';
export type { Worker, WorkerState } from './worker.js';
export type {
  BatchHandler,
  BatchOptions,
  Handler,
  HandlerContext,
  MessageContext,
  PrefetchOptions,
  WeightedQueue,
  WorkerOptions,
} from './options.js';
export { workerErrors } from './errors.js';
export { workerMetrics, type WorkerMetric } from './metrics.js';
