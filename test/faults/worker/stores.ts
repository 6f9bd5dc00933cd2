/** The stores that the worker's tests run on. */
import { memoryQueue, type QueueUnderTest } from './harness.js';

export function queuesUnderTest(): QueueUnderTest[] {
  return [memoryQueue];
}
