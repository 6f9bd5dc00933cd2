/**
 * Hands a store's changes to listeners. Guarantees: never delays an answer (delivery is a later turn of the event
 * loop), bounded memory (the oldest are dropped and counted; a gap in a message's versions shows it), and a listener
 * that throws harms nobody.
 */
import type { Log } from '../log.js';
import type { MessageEvent } from './message.js';

const silenceMs = 1_000;

export type EventListener = (event: MessageEvent) => void | Promise<void>;

interface Subscription {
  readonly listener: EventListener;
  readonly waiting: MessageEvent[];
  delivering: boolean;
}

export class EventDispatcher {
  readonly #subscriptions = new Set<Subscription>();
  readonly #eventsMax: number;
  readonly #log: Log;
  readonly #onDropped: (count: number) => void;
  /** Since the log was told. */
  #failures = 0;
  #silentUntilMs = 0;

  constructor(options: { eventsMax: number; log: Log; onDropped: (count: number) => void }) {
    this.#eventsMax = options.eventsMax;
    this.#log = options.log;
    this.#onDropped = options.onDropped;
  }

  get hasListeners(): boolean {
    return this.#subscriptions.size > 0;
  }

  subscribe(listener: EventListener): () => void {
    const subscription: Subscription = { listener, waiting: [], delivering: false };
    this.#subscriptions.add(subscription);
    return () => {
      this.#subscriptions.delete(subscription);
      subscription.waiting.length = 0;
    };
  }

  publish(events: readonly MessageEvent[]): void {
    for (const subscription of this.#subscriptions) {
      subscription.waiting.push(...events);
      const surplus = subscription.waiting.length - this.#eventsMax;
      if (surplus > 0) {
        subscription.waiting.splice(0, surplus);
        this.#onDropped(surplus);
      }
      if (subscription.delivering) continue;
      subscription.delivering = true;
      setImmediate(() => void this.#deliver(subscription));
    }
  }

  /** Once a second at most: a listener that fails does so at every event. */
  #tell(error: unknown, { queue, id }: MessageEvent): void {
    this.#failures += 1;
    if (performance.now() < this.#silentUntilMs) return;
    this.#log.warn(
      { error, queue, message: id, failures: this.#failures },
      'a listener of queue events failed',
    );
    this.#failures = 0;
    this.#silentUntilMs = performance.now() + silenceMs;
  }

  /** One event after the other: a slow listener fills its own buffer and nobody else's. */
  async #deliver(subscription: Subscription): Promise<void> {
    for (;;) {
      const batch = subscription.waiting.splice(0, 100);
      if (batch.length === 0) break;
      for (const event of batch) {
        if (!this.#subscriptions.has(subscription)) return;
        try {
          await subscription.listener(event);
        } catch (error) {
          this.#tell(error, event);
        }
      }
    }
    subscription.delivering = false;
  }
}
