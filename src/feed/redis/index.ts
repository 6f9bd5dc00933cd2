export type { RedisTimelinesOptions } from './options.js';
export { createRedisTimelines } from './timelines.js';
