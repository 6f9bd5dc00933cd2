/** A clock that tests move by hand: it drives every store at once, while timers keep real time. */
import type { Clock } from '../clock.js';

export class ManualClock implements Clock {
  #now: number;

  /** Default: 1,760,000,000,000, a moment in October 2025. */
  constructor(now = 1_760_000_000_000) {
    this.#now = now;
  }

  now(): number {
    return this.#now;
  }

  monotonicMs(): number {
    return performance.now();
  }

  storeNow(): number {
    return this.#now;
  }

  advance(ms: number): void {
    this.#now += ms;
  }

  set(now: number): void {
    this.#now = now;
  }
}
