/**
 * What all parts share: errors, and the ports a program binds its own log, metrics and clock to. The parts have doors of
 * their own: headgate/queue, headgate/feed, headgate/notify, headgate/database, headgate/server.
 */
export { type Clock, systemClock } from './clock.js';
export { type ErrorDetails, HeadgateError, isHeadgateError } from './errors.js';
export { type Component, composeComponents } from './lifecycle.js';
export { type Log, type LogFields, silentLog } from './log.js';
export {
  type MetricDefinition,
  type MetricLabels,
  type Metrics,
  type MetricsBackend,
  type MetricTable,
  noMetrics,
} from './metrics.js';
export { version } from './version.js';
