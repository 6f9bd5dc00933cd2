export type { RedisConfirmation } from './confirmation.js';
export type { RedisDurabilityReport, ServerSettings } from './durability.js';
export type { RedisDurability, RedisQueueStoreOptions } from './options.js';
export { redisQueueErrors } from './errors.js';
export { createRedisQueueStore, type RedisQueueStore } from './store.js';
