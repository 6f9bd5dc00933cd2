/**
 * Learns when something may have become dequeueable. Guarantees: hints of the store are followed at once; polling is the
 * truth and comes every 900 ms at most, in one statement for all queues where the store can; a watch that cannot be set up
 * is tried again.
 */
import type { Clock } from '../../clock.js';
import type { QueueStore } from '../store.js';
import type { CallGate } from './calls.js';
import type { Source } from './sources.js';

const pollMsMax = 900;

export interface WaitingOptions {
  readonly store: Pick<QueueStore, 'watch' | 'ready'>;
  readonly sources: readonly Source[];
  readonly clock: Clock;
  readonly random: () => number;
  readonly watchGate: CallGate;
  readonly pollGate: CallGate;
  readonly wake: () => void;
}

export class Waiting {
  readonly #options: WaitingOptions;
  readonly #sources: ReadonlyMap<string, Source>;
  #pollTimer: NodeJS.Timeout | undefined;
  #unwatch: (() => Promise<void>) | undefined;
  #watching = false;
  #stopped = false;

  constructor(options: WaitingOptions) {
    this.#options = options;
    this.#sources = new Map(options.sources.map((source) => [source.queue, source]));
  }

  start(): void {
    if (this.#asksForAll()) {
      for (const source of this.#options.sources) source.state = 'empty';
      void this.#poll();
    }
    this.#schedulePoll();
    void this.watch();
  }

  /** Called again when the pause after a failure is over. */
  async watch(): Promise<void> {
    const { store, watchGate } = this.#options;
    if (this.#watching || this.#stopped || !watchGate.mayCall()) return;
    this.#watching = true;
    const onHint = (queue: string): void => {
      if (!this.#stopped) this.hint(queue);
    };
    const result = await watchGate.run(() => store.watch([...this.#sources.keys()], onHint));
    this.#watching = result.ok;
    if (!result.ok) return;
    if (this.#stopped) await ignoreFailure(result.value());
    else this.#unwatch = result.value;
  }

  hint(queue: string): void {
    this.#sources.get(queue)?.hint();
    this.#options.wake();
  }

  /** No more hints or polls. Resolves when the store has ended the watch, or cannot. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#pollTimer);
    const unwatch = this.#unwatch;
    this.#unwatch = undefined;
    if (unwatch !== undefined) await ignoreFailure(unwatch());
  }

  #schedulePoll(): void {
    const pollMs = pollMsMax * (0.8 + 0.2 * this.#options.random());
    this.#pollTimer = setTimeout(() => {
      this.#schedulePoll();
      if (this.#asksForAll()) void this.#poll();
      else this.#hintAll(this.#sources.keys());
    }, pollMs);
  }

  #asksForAll(): boolean {
    return this.#options.store.ready !== undefined && this.#sources.size > 1;
  }

  async #poll(): Promise<void> {
    const { store, clock, pollGate } = this.#options;
    if (!pollGate.mayCall()) return;
    const queues = [...this.#sources.keys()];
    const result = await pollGate.run(
      async () => (await store.ready?.({ queues, now: clock.storeNow() })) ?? queues,
    );
    if (result.ok && !this.#stopped) this.#hintAll(result.value);
  }

  #hintAll(queues: Iterable<string>): void {
    for (const queue of queues) this.#sources.get(queue)?.hint();
    this.#options.wake();
  }
}

async function ignoreFailure(ending: Promise<void>): Promise<void> {
  await ending.catch(() => {});
}
