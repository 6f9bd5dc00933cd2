/** What an operation on the large tables is, its usual bounds, and what all of them begin with. */
import type { DequeueRequest, LeaseRef, QueueStore } from '../../../../src/queue/index.js';
import { largeId } from '../large-tables.js';

/** Numbers of the first message of each kind in the queue `q`. */
export interface LargeQueue {
  readonly ended: number;
  readonly errored: number;
  readonly canceled: number;
  readonly completed: number;
  readonly future: number;
  readonly waiting: number;
  readonly last: number;
  /** Of the first value of `x` that is idle. */
  readonly idle: number;
}

export interface Bounds {
  readonly rows: number;
  readonly pages: number;
}

export type Operation = readonly [
  name: string,
  bounds: Bounds,
  prepare: (store: QueueStore, at: LargeQueue) => Promise<() => Promise<unknown>>,
];

export const one: Bounds = { rows: 60, pages: 300 };
/** A page of running or of future messages may have to walk the others, which stand in the same index. */
export const behindRunning: Bounds = { rows: 10_100, pages: 12_000 };
export const hundred: Bounds = { rows: 1_000, pages: 8_000 };

let made = 0;
export const next = (): number => (made += 1);
export const rest = { queue: 'q', now: undefined };
export const message = (id: string, metadata: Record<string, string> = { kind: 'a', tenant: 't5' }) => ({
  id,
  payload: '1',
  metadata,
  priority: undefined,
  delayMs: undefined,
  attemptsMax: undefined,
  leaseMs: undefined,
  uniqueWhileLive: false,
  trace: undefined,
});
export const request = (count: number, given: Partial<DequeueRequest> = {}): DequeueRequest => ({
  ...rest,
  count,
  where: {},
  leaseMs: 3_600_000,
  requestId: `request-${next()}`,
  worker: undefined,
  ...given,
});
export const held = async (
  store: QueueStore,
  count: number,
  given: Partial<DequeueRequest> = {},
): Promise<LeaseRef[]> =>
  (await store.dequeue(request(count, given))).map(({ id, leaseToken }) => ({ id, leaseToken }));
export const results = (leases: readonly LeaseRef[]) => leases.map((lease) => ({ ...lease, result: '1' }));
export const ids = (...seqs: number[]) => seqs.map(largeId);
