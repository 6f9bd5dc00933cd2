/** Options of the queue: validated once, then read-only. */
import { invalidInput } from '../errors.js';

export interface QueueLimits {
  /** UTF-8 bytes of a payload's JSON. Default 32,768. */
  readonly payloadBytesMax: number;
  /** UTF-8 bytes of a result's JSON. Default 32,768. */
  readonly resultBytesMax: number;
  /** Messages or leases handed to the store in one call; longer lists are cut into steps. Default 1,000. */
  readonly batchMax: number;
  /** How often a waiting dequeue asks by itself, in milliseconds. Default 900, at most that: the promise is 1 s. */
  readonly pollMs: number;
  /** Events kept for listeners that have not taken them yet; more are dropped and counted. Default 10,000. */
  readonly eventsMax: number;
}

export const limitsDefault: QueueLimits = {
  payloadBytesMax: 32_768,
  resultBytesMax: 32_768,
  batchMax: 1_000,
  pollMs: 900,
  eventsMax: 10_000,
};

const upperBounds: Readonly<Record<keyof QueueLimits, number>> = {
  payloadBytesMax: 16 * 1_048_576,
  resultBytesMax: 16 * 1_048_576,
  batchMax: 10_000,
  pollMs: 900,
  eventsMax: 1_000_000,
};

export function parseLimits(limits: Partial<QueueLimits> = {}): QueueLimits {
  const parsed = { ...limitsDefault, ...limits };
  for (const [name, max] of Object.entries(upperBounds)) {
    const value = parsed[name as keyof QueueLimits];
    if (!Number.isSafeInteger(value) || value < 1 || value > max) {
      throw invalidInput(`limits.${name}`, value, `a whole number from 1 to ${max}`);
    }
  }
  return Object.freeze(parsed);
}
