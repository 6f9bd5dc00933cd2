/**
 * Dequeues that wait: one subscription a queue and one poll for all of them, however many wait. A hint wakes one waiter
 * of each filter, who passes it on when it found something (there may be more); the poll is what can be relied on.
 */
import type { Log } from '../log.js';
import type { QueueStore } from './store.js';

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
  readonly #storeNow: () => number | undefined;
  readonly #waiters = new Map<string, Set<Waiter>>();
  readonly #watches = new Map<string, Promise<() => Promise<void>>>();
  #timer: NodeJS.Timeout | undefined;

  constructor(options: { store: QueueStore; log: Log; pollMs: number; storeNow: () => number | undefined }) {
    this.#store = options.store;
    this.#log = options.log;
    this.#pollMs = options.pollMs;
    this.#storeNow = options.storeNow;
  }

  get isEmpty(): boolean {
    return this.#waiters.size === 0;
  }

  /** Joins before the first look, so that nothing can slip in between. */
  join(queue: string, filter: string): Waiter {
    const waiter: Waiter = { filter, wake: undefined, woken: false };
    const waiters = this.#waiters.get(queue) ?? new Set();
    waiters.add(waiter);
    this.#waiters.set(queue, waiters);
    this.#watch(queue);
    this.#timer ??= setTimeout(() => void this.#poll(), this.#pollMs);
    return waiter;
  }

  leave(queue: string, waiter: Waiter): void {
    const waiters = this.#waiters.get(queue);
    waiters?.delete(waiter);
    if (waiters?.size === 0) this.#waiters.delete(queue);
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
    const watches = [...this.#watches.values()];
    this.#watches.clear();
    await Promise.all(watches.map(async (watch) => (await watch.catch(() => undefined))?.()));
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

  async #poll(): Promise<void> {
    const queues = [...this.#waiters.keys()];
    try {
      const ready = this.#store.ready ? await this.#store.ready({ queues, now: this.#storeNow() }) : queues;
      for (const queue of ready) this.hint(queue);
    } catch (error) {
      this.#log.warn({ error }, 'a poll for waiting dequeues failed');
    }
    this.#timer = this.isEmpty ? undefined : setTimeout(() => void this.#poll(), this.#pollMs);
  }
}
