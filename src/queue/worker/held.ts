/**
 * A message in the hands of this worker, and the call of the handler that works on one or several of them.
 *
 *   waiting ─started─► running ─handler ended─► settling ─answered─► ended
 *      └─ handed back ──────────────────────────►┘            ▲
 *      the store said lease-lost or canceled ──────────────────┘ (from every phase)
 */
import type { HeadgateError } from '../../errors.js';
import type { LeasedMessage } from '../message.js';
import type { FollowUp } from '../store.js';

export type HeldPhase = 'waiting' | 'running' | 'settling' | 'ended';

export class Held {
  readonly message: LeasedMessage;
  readonly lane: number;
  /** Monotonic time from which the lease surely runs: the call that gave or extended it was sent then. */
  leasedAtMs: number;
  /** Monotonic time of arrival. */
  readonly fetchedAtMs: number;
  phase: HeldPhase = 'waiting';
  execution: Execution | undefined;
  /** How often the store has said that somebody else holds it this moment. */
  timesBusy = 0;
  /** What the handler wants enqueued together with its completion. */
  followUps: readonly FollowUp[] | undefined;

  constructor(request: {
    readonly message: LeasedMessage;
    readonly lane: number;
    readonly leasedAtMs: number;
    readonly fetchedAtMs: number;
  }) {
    this.message = request.message;
    this.lane = request.lane;
    this.leasedAtMs = request.leasedAtMs;
    this.fetchedAtMs = request.fetchedAtMs;
  }
}

export class Execution {
  readonly helds: readonly Held[];
  readonly lane: number;
  readonly startedAtMs: number;
  timer: NodeJS.Timeout | undefined;
  #controller: AbortController | undefined;
  #reason: HeadgateError | undefined;

  constructor(request: {
    readonly helds: readonly Held[];
    readonly lane: number;
    readonly startedAtMs: number;
  }) {
    this.helds = request.helds;
    this.lane = request.lane;
    this.startedAtMs = request.startedAtMs;
  }

  get queue(): string {
    return this.helds[0]?.message.queue ?? '';
  }

  /** Made when it is first asked for: most handlers of short messages never do. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#reason !== undefined) this.#controller.abort(this.#reason);
    }
    return this.#controller.signal;
  }

  get reason(): HeadgateError | undefined {
    return this.#reason;
  }

  /** The first reason counts. */
  abort(reason: HeadgateError): boolean {
    if (this.#reason !== undefined) return false;
    this.#reason = reason;
    this.#controller?.abort(reason);
    return true;
  }
}
