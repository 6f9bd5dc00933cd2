export { useBuckets } from './buckets.js';
export { apartOperations } from './operations.js';
