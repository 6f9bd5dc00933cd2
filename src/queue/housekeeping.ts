/**
 * Runs a store's bounded housekeeping steps: at once while there is work, at the moment the next message comes due, and
 * every `pollMs` otherwise. Any number of processes may do so side by side; a step that fails is logged and repeated.
 */
import type { Log } from '../log.js';

export interface HousekeepingStep {
  (): Promise<{ readonly moved: number; readonly nextDueMs: number | undefined }>;
}

export class Housekeeping {
  readonly #step: HousekeepingStep;
  readonly #log: Log;
  readonly #pollMs: number;
  readonly #onMoved: (moved: number) => void;
  readonly #onFailure: () => void;
  #timer: NodeJS.Timeout | undefined;
  #timerAtMs = 0;
  #running: Promise<void> | undefined;
  #active = false;

  constructor(options: {
    step: HousekeepingStep;
    log: Log;
    pollMs: number;
    onMoved: (moved: number) => void;
    onFailure: () => void;
  }) {
    this.#step = options.step;
    this.#log = options.log;
    this.#pollMs = options.pollMs;
    this.#onMoved = options.onMoved;
    this.#onFailure = options.onFailure;
  }

  start(): void {
    if (this.#active) return;
    this.#active = true;
    this.#schedule(0);
  }

  /** Something comes due in `ms`: be there in time. */
  dueIn(ms: number): void {
    if (this.#active && !this.#running && performance.now() + ms < this.#timerAtMs) this.#schedule(ms);
  }

  async stop(): Promise<void> {
    this.#active = false;
    clearTimeout(this.#timer);
    await this.#running;
  }

  #schedule(ms: number): void {
    clearTimeout(this.#timer);
    this.#timerAtMs = performance.now() + ms;
    this.#timer = setTimeout(() => {
      this.#running = this.#run().finally(() => {
        this.#running = undefined;
      });
    }, ms);
  }

  async #run(): Promise<void> {
    let pauseMs = this.#pollMs;
    try {
      const { moved, nextDueMs } = await this.#step();
      if (moved > 0) this.#onMoved(moved);
      pauseMs = moved > 0 ? 0 : Math.min(this.#pollMs, Math.max(1, nextDueMs ?? this.#pollMs));
    } catch (error) {
      this.#onFailure();
      this.#log.warn({ error }, 'a housekeeping step of the queue failed; it is repeated');
      pauseMs = this.#pollMs * (0.5 + Math.random() / 2);
    }
    if (this.#active) this.#schedule(pauseMs);
  }
}
