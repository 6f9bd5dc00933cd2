/**
 * Calls to the store that may fail. Guarantees: no rejection escapes; after a failure the calls of a gate pause with
 * growing, jittered delays of at most one second and then probe one at a time; a call without an answer counts as failed
 * after `callMsMax`; all gates of a worker together write about one error line a second.
 */
import type { Clock } from '../../clock.js';
import { groundError } from '../../errors.js';
import type { Log } from '../../log.js';
import type { Metrics } from '../../metrics.js';
import type { WorkerMetric } from './metrics.js';

const pauseMsFirst = 100;
/** At most a second, so that work goes on within two after the store is back. */
const pauseMsMax = 1_000;
/** Calls given up on whose promise has not ended: a store that never answers must not collect them for ever. */
const abandonedMax = 8;

export type CallResult<T> = { readonly ok: true; readonly value: T } | { readonly ok: false };

export interface CallGateOptions {
  readonly operation: string;
  readonly callMsMax: number;
  readonly clock: Clock;
  readonly random: () => number;
  readonly errors: ErrorLines;
  readonly metrics: Metrics<WorkerMetric>;
  /** Called when a pause is over. */
  readonly onReady: () => void;
}

export class CallGate {
  readonly #options: CallGateOptions;
  readonly #timers = new Set<NodeJS.Timeout>();
  #failures = 0;
  #pausedUntilMs = 0;
  #inFlight = 0;
  #abandoned = 0;
  #closed = false;

  constructor(options: CallGateOptions) {
    this.#options = options;
  }

  mayCall(): boolean {
    if (this.#closed || this.#abandoned >= abandonedMax) return false;
    if (this.#failures === 0) return true;
    return this.#inFlight === 0 && this.#options.clock.monotonicMs() >= this.#pausedUntilMs;
  }

  run<T>(call: () => Promise<T>): Promise<CallResult<T>> {
    this.#inFlight += 1;
    return new Promise((resolve) => {
      let open = true;
      const end = (result: CallResult<T>, error?: unknown): void => {
        if (!open) {
          this.#abandoned -= 1;
          return;
        }
        open = false;
        this.#forget(timer);
        this.#inFlight -= 1;
        if (result.ok) this.#failures = 0;
        else this.#failed(error);
        resolve(result);
      };
      const timer = this.#after(this.#options.callMsMax, () => {
        end(
          { ok: false },
          groundError('database-unavailable', `no answer within ${this.#options.callMsMax} ms`),
        );
        this.#abandoned += 1;
      });
      promiseOf(call).then(
        (value) => end({ ok: true, value }),
        (error: unknown) => end({ ok: false }, error),
      );
    });
  }

  /** Ends timers; calls in flight end whenever the store lets them. */
  close(): void {
    this.#closed = true;
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers.clear();
  }

  #failed(error: unknown): void {
    const { clock, random, errors, metrics, operation, onReady } = this.#options;
    metrics.add('headgate_worker_store_errors_total', { operation });
    errors.write(operation, error);
    if (this.#closed || (this.#failures > 0 && clock.monotonicMs() < this.#pausedUntilMs)) return;
    const boundMs = Math.min(pauseMsMax, pauseMsFirst * 2 ** this.#failures);
    const pauseMs = boundMs * (0.5 + 0.5 * random());
    this.#failures = Math.min(this.#failures + 1, 16);
    this.#pausedUntilMs = clock.monotonicMs() + pauseMs;
    this.#after(pauseMs + 1, onReady);
  }

  #after(delayMs: number, action: () => void): NodeJS.Timeout {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      action();
    }, delayMs);
    this.#timers.add(timer);
    return timer;
  }

  #forget(timer: NodeJS.Timeout): void {
    clearTimeout(timer);
    this.#timers.delete(timer);
  }
}

/** Turns a call that throws at once into one that rejects. */
function promiseOf<T>(call: () => Promise<T>): Promise<T> {
  try {
    return Promise.resolve(call());
  } catch (error) {
    return Promise.reject(error instanceof Error ? error : new Error(String(error)));
  }
}

const lineMsMin = 1_000;

/** Writes failures of the store to the log, about one line a second; what was left out is counted in the next line. */
export class ErrorLines {
  readonly #log: Log;
  readonly #clock: Clock;
  readonly #worker: string;
  #lastAtMs = Number.NEGATIVE_INFINITY;
  #leftOut = 0;

  constructor(options: { readonly log: Log; readonly clock: Clock; readonly worker: string }) {
    this.#log = options.log;
    this.#clock = options.clock;
    this.#worker = options.worker;
  }

  write(operation: string, error: unknown): void {
    const nowMs = this.#clock.monotonicMs();
    if (nowMs - this.#lastAtMs < lineMsMin) {
      this.#leftOut += 1;
      return;
    }
    this.#log.error(
      { worker: this.#worker, operation, error, leftOut: this.#leftOut },
      'a call to the queue store failed; it is repeated',
    );
    this.#lastAtMs = nowMs;
    this.#leftOut = 0;
  }
}
