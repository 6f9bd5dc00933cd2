/**
 * Time as an argument. The store's clock decides everything that is promised; a `Clock` only paces the local process
 * (timers, back-off, measuring). Tests hand in a manual clock that drives every store at once.
 */
export interface Clock {
  /** Unix milliseconds; for display and pacing, never for a decision that a store makes. */
  now(): number;
  /** Milliseconds on a clock that never jumps; for durations. */
  monotonicMs(): number;
  /** The time that stores are told to use, or undefined for their own clock. Filled by tests only. */
  storeNow(): number | undefined;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonicMs: () => performance.now(),
  storeNow: () => undefined,
};
