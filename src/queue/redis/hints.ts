/**
 * Hints that something may have become dequeueable: one subscribed connection for all queues of the process. Guarantees: a
 * connection that has gone silent is noticed within two heartbeats and replaced, and every watcher is told once it has been, because
 * hints may have been missed.
 */
import type { Redis } from 'ioredis';
import type { Log } from '../../log.js';

type OnHint = (queue: string) => void;

const heartbeatMs = 2_000;

export class Hints {
  readonly #open: () => Redis;
  readonly #channelsOf: (queue: string) => string[];
  readonly #queueOf: (channel: string) => string;
  readonly #log: Log;
  readonly #watchers = new Map<string, Set<OnHint>>();
  #listener: Redis | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: {
    open: () => Redis;
    channelsOf: (queue: string) => string[];
    queueOf: (channel: string) => string;
    log: Log;
  }) {
    this.#open = options.open;
    this.#channelsOf = options.channelsOf;
    this.#queueOf = options.queueOf;
    this.#log = options.log;
  }

  async watch(queues: readonly string[], onHint: OnHint): Promise<() => Promise<void>> {
    const listener = this.#connect();
    const added = queues.filter((queue) => !this.#watchers.has(queue));
    for (const queue of queues)
      this.#watchers.set(queue, (this.#watchers.get(queue) ?? new Set()).add(onHint));
    try {
      if (added.length > 0) await listener.subscribe(...added.flatMap(this.#channelsOf));
    } catch (error) {
      this.#forget(queues, onHint);
      throw error;
    }
    return async () => {
      const gone = this.#forget(queues, onHint).flatMap(this.#channelsOf);
      if (gone.length > 0 && this.#listener?.status === 'ready') await this.#listener.unsubscribe(...gone);
    };
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#listener?.disconnect();
    this.#listener = undefined;
    this.#watchers.clear();
  }

  /** Answers the queues that nobody watches any more. */
  #forget(queues: readonly string[], onHint: OnHint): string[] {
    return queues.filter((queue) => {
      const watchers = this.#watchers.get(queue);
      watchers?.delete(onHint);
      return watchers?.size === 0 && this.#watchers.delete(queue);
    });
  }

  #connect(): Redis {
    if (this.#listener) return this.#listener;
    const listener = this.#open();
    listener.on('message', (channel: string) => this.#hint(this.#queueOf(channel)));
    // Subscriptions are renewed by the driver; what was published meanwhile is lost.
    listener.on('ready', () => setTimeout(() => this.#hintAll(), 100).unref());
    this.#listener = listener;
    this.#beat(listener);
    return listener;
  }

  #beat(listener: Redis): void {
    this.#timer = setTimeout(() => {
      const isSilent = setTimeout(() => {
        this.#log.warn({}, 'the listener of hints has gone silent; it is replaced');
        listener.disconnect(true);
      }, heartbeatMs);
      const heard = (): void => clearTimeout(isSilent);
      if (listener.status === 'ready') listener.ping().then(heard, heard);
      else heard();
      isSilent.unref();
      if (this.#listener === listener) this.#beat(listener);
    }, heartbeatMs);
    this.#timer.unref();
  }

  #hint(queue: string): void {
    for (const onHint of this.#watchers.get(queue) ?? []) onHint(queue);
  }

  #hintAll(): void {
    for (const queue of this.#watchers.keys()) this.#hint(queue);
  }
}
