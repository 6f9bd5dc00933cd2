export { createOutbox, type Outbox, type OutboxOptions } from './outbox.js';
export { createRelay, type Relay, type RelayOptions } from './relay.js';
export { outboxMetrics } from './metrics.js';
export type { OutboxLag } from './statements.js';
