/**
 * Dequeues that wait: one subscription a queue and one poll for all of them, however many wait. A hint wakes one waiter
 * of each filter, who passes it on when it found something (there may be more); the poll is what can be relied on.
 */
import type { Clock } from '../clock.js';
import type { Log } from '../log.js';
import type { LeasedMessage } from './message.js';
import type { QueueStore } from './store.js';

/** Beyond this the subscription of a queue ends with its last waiter: names of queues may come from anywhere. */
const watchesMax = 1_000;

export interface WaitingDequeue {
  readonly queue: string;
  /** Equal for dequeues that look for the same. */
  readonly filter: string;
  readonly waitMs: number;
  readonly signal: AbortSignal | undefined;
  readonly look: () => Promise<LeasedMessage[]>;
  /** True when nobody shall wait any longer. */
  readonly isOver: () => boolean;
}

interface Waiter {
  /** Equal for waiters with an equal filter: one of them is enough to look. */
  readonly filter: string;
  wake: (() => void) | undefined;
  /** A hint arrived while the waiter was asking. */
  woken: boolean;
}

export class WaitingRoom {
  readonly #store: QueueStore;
  readonly #log: Log;
  readonly #pollMs: number;
  readonly #clock: Clock;
  readonly #waiters = new Map<string, Set<Waiter>>();
  readonly #watches = new Map<string, Promise<() => Promise<void>>>();
  #timer: NodeJS.Timeout | undefined;
  #isPolling = false;

  constructor(options: { store: QueueStore; log: Log; pollMs: number; clock: Clock }) {
    this.#store = options.store;
    this.#log = options.log;
    this.#pollMs = options.pollMs;
    this.#clock = options.clock;
  }

  get isEmpty(): boolean {
    return this.#waiters.size === 0;
  }

  /** Looks, waits for a reason to look again, and passes the wake-up on when it may have left something behind. */
  async dequeue({ queue, filter, waitMs, signal, look, isOver }: WaitingDequeue): Promise<LeasedMessage[]> {
    const endsAtMs = this.#clock.monotonicMs() + waitMs;
    const waiter = this.join(queue, filter);
    try {
      for (;;) {
        // Measured before the look: the last one is not older than the end of the wait.
        const leftMs = endsAtMs - this.#clock.monotonicMs();
        const messages = await look();
        if (messages.length > 0 || leftMs <= 0 || signal?.aborted || isOver()) {
          this.leave(queue, waiter);
          if (messages.length > 0) this.hint(queue);
          return messages;
        }
        await this.wait(waiter, leftMs, signal);
      }
    } finally {
      this.leave(queue, waiter);
    }
  }

  /** Joins before the first look, so that nothing can slip in between. */
  join(queue: string, filter: string): Waiter {
    const waiter: Waiter = { filter, wake: undefined, woken: false };
    const waiters = this.#waiters.get(queue) ?? new Set();
    waiters.add(waiter);
    this.#waiters.set(queue, waiters);
    this.#watch(queue);
    this.#pollSoon();
    return waiter;
  }

  leave(queue: string, waiter: Waiter): void {
    const waiters = this.#waiters.get(queue);
    waiters?.delete(waiter);
    if (waiters?.size === 0) {
      this.#waiters.delete(queue);
      if (this.#watches.size > watchesMax) this.#endWatch(queue).catch(() => undefined);
    }
    if (this.isEmpty) {
      clearTimeout(this.#timer);
      this.#timer = undefined;
    }
  }

  /** Resolves when there is reason to look again, when `ms` have passed, or when `signal` fires. */
  wait(waiter: Waiter, ms: number, signal: AbortSignal | undefined): Promise<void> {
    if (waiter.woken || signal?.aborted) {
      waiter.woken = false;
      return Promise.resolve();
    }
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', done);
        waiter.wake = undefined;
        waiter.woken = false;
        resolve();
      };
      const timer = setTimeout(done, Math.min(ms, 2_147_483_647));
      signal?.addEventListener('abort', done, { once: true });
      waiter.wake = done;
    });
  }

  /** Wakes one waiter of each filter; a waiter that is looking right now looks once more. */
  hint(queue: string): void {
    const filters = new Set<string>();
    for (const waiter of this.#waiters.get(queue) ?? []) {
      if (filters.has(waiter.filter)) continue;
      filters.add(waiter.filter);
      if (waiter.wake) waiter.wake();
      else waiter.woken = true;
    }
  }

  async stop(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (const waiters of this.#waiters.values()) for (const waiter of waiters) waiter.wake?.();
    await Promise.all([...this.#watches.keys()].map((queue) => this.#endWatch(queue)));
  }

  /** A hint that cannot be subscribed to is only slower; the next waiter tries again. */
  #watch(queue: string): void {
    if (this.#watches.has(queue)) return;
    const watch = this.#store.watch([queue], (name) => this.hint(name));
    this.#watches.set(queue, watch);
    watch.catch((error: unknown) => {
      this.#watches.delete(queue);
      this.#log.warn({ error, queue }, 'no wake-ups for a waiting dequeue; polling instead');
    });
  }

  async #endWatch(queue: string): Promise<void> {
    const watch = this.#watches.get(queue);
    this.#watches.delete(queue);
    await (await watch?.catch(() => undefined))?.();
  }

  /** One poll at a time, whoever comes and goes while it is on its way. */
  #pollSoon(): void {
    if (!this.#isPolling) this.#timer ??= setTimeout(() => void this.#poll(), this.#pollMs);
  }

  async #poll(): Promise<void> {
    this.#timer = undefined;
    this.#isPolling = true;
    const queues = [...this.#waiters.keys()];
    try {
      const ready = this.#store.ready
        ? await this.#store.ready({ queues, now: this.#clock.storeNow() })
        : queues;
      for (const queue of ready) this.hint(queue);
    } catch (error) {
      this.#log.warn({ error }, 'a poll for waiting dequeues failed');
    }
    this.#isPolling = false;
    if (!this.isEmpty) this.#pollSoon();
  }
}
