/**
 * Keeps the leases of everything this worker holds, waiting, running or not yet settled, with one call a queue for all.
 * Guarantees: a message is extended before half of its lease is over while the store answers; a holder whose lease is
 * lost, canceled or has run out by the local clock without an answer is told by its signal.
 */
import type { HeadgateError } from '../../errors.js';
import { queueError } from '../errors.js';
import type { LeaseOutcome, QueueStore } from '../store.js';
import type { Clock } from '../../clock.js';
import type { CallGate } from './calls.js';
import type { Held } from './held.js';

/** However long the lease: a cancellation is learned by an extension. */
const extendMsMax = 60_000;
const leasesPerCall = 1_000;

export interface LeasesOptions {
  readonly store: Pick<QueueStore, 'extend'>;
  readonly leaseMs: number;
  readonly clock: Clock;
  readonly gate: CallGate;
  /** The store has said that the message is no longer this worker's. */
  readonly onLost: (held: Held, kind: 'lease-lost' | 'canceled') => void;
}

export class Leases {
  readonly #options: LeasesOptions;
  readonly #held = new Set<Held>();
  readonly #extending = new Set<Held>();
  readonly #extendMs: number;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: LeasesOptions) {
    this.#options = options;
    this.#extendMs = Math.min(extendMsMax, options.leaseMs / 3);
  }

  start(): void {
    this.#timer = setInterval(() => this.tick(), Math.max(1, Math.floor(this.#extendMs / 2)));
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  get size(): number {
    return this.#held.size;
  }

  add(held: Held): void {
    this.#held.add(held);
  }

  remove(held: Held): void {
    this.#held.delete(held);
  }

  [Symbol.iterator](): IterableIterator<Held> {
    return this.#held.values();
  }

  /** Tells the handler when the lease has run out by the local clock; the store is still asked what it says. */
  checkLapsed(held: Held): void {
    if (this.#options.clock.monotonicMs() - held.leasedAtMs < this.#options.leaseMs) return;
    held.execution?.abort(lossError(held, 'lease-lost'));
  }

  /** As soon as one lease is a third old, extends it and with it all that are a sixth old, so that they stay together. */
  tick(): void {
    const nowMs = this.#options.clock.monotonicMs();
    const byQueue = new Map<string, Held[]>();
    let due = false;
    for (const held of this.#held) {
      this.checkLapsed(held);
      const ageMs = nowMs - held.leasedAtMs;
      if (ageMs < this.#extendMs / 2 || held.phase === 'ended' || this.#extending.has(held)) continue;
      due ||= ageMs >= this.#extendMs - 1;
      const { queue } = held.message;
      const helds = byQueue.get(queue);
      if (helds === undefined) byQueue.set(queue, [held]);
      else helds.push(held);
    }
    if (!due) return;
    for (const [queue, helds] of byQueue) {
      for (let start = 0; start < helds.length && this.#options.gate.mayCall(); start += leasesPerCall) {
        void this.#extend(queue, helds.slice(start, start + leasesPerCall));
      }
    }
  }

  async #extend(queue: string, helds: readonly Held[]): Promise<void> {
    const { store, leaseMs, clock, gate } = this.#options;
    const sentAtMs = clock.monotonicMs();
    const leases = helds.map(({ message: { id, leaseToken } }) => ({ id, leaseToken, leaseMs }));
    for (const held of helds) this.#extending.add(held);
    const result = await gate.run(() => store.extend({ queue, leases, now: clock.storeNow() }));
    for (const [index, held] of helds.entries()) {
      this.#extending.delete(held);
      if (result.ok && this.#held.has(held)) this.#answered(held, result.value[index], sentAtMs);
    }
  }

  /** `busy` and `refused` change nothing: the next tick asks again. */
  #answered(held: Held, outcome: LeaseOutcome | undefined, sentAtMs: number): void {
    if (outcome?.kind === 'done') {
      if (outcome.state === 'running') held.leasedAtMs = sentAtMs;
    } else if (outcome?.kind === 'lease-lost' || outcome?.kind === 'canceled') {
      this.#options.onLost(held, outcome.kind);
    }
  }
}

export function lossError(held: Held, kind: 'lease-lost' | 'canceled'): HeadgateError {
  const { id, queue } = held.message;
  return kind === 'canceled'
    ? queueError('message-canceled', `message "${id}" of queue "${queue}" has been canceled`, {
        ids: { queue, message: id },
      })
    : queueError('lease-lost', `the lease of message "${id}" of queue "${queue}" is lost`, {
        ids: { queue, message: id },
      });
}
