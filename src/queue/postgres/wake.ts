/**
 * Wake-ups: hints that a queue may have something. In this process they are immediate; other processes hear them over
 * NOTIFY, at most once a queue and interval, because every NOTIFY makes commits wait in one line.
 */
import type { Database } from '../../database/index.js';
import type { Log } from '../../log.js';

const intervalMs = 50;

export class Wake {
  readonly #database: Database;
  readonly #channel: string;
  readonly #log: Log;
  readonly #watchers = new Map<string, Set<(queue: string) => void>>();
  readonly #quiet = new Map<string, { again: boolean }>();
  #listening: Promise<() => Promise<void>> | undefined;

  constructor(options: { database: Database; channel: string; log: Log }) {
    this.#database = options.database;
    this.#channel = options.channel;
    this.#log = options.log;
  }

  get channel(): string {
    return this.#channel;
  }

  async watch(queues: readonly string[], onHint: (queue: string) => void): Promise<() => Promise<void>> {
    for (const queue of queues)
      this.#watchers.set(queue, (this.#watchers.get(queue) ?? new Set()).add(onHint));
    this.#listening ??= this.#database.listen(this.#channel, (queue) => this.#hear(queue));
    await this.#listening.catch((error: unknown) => {
      this.#listening = undefined;
      throw error;
    });
    return async () => {
      for (const queue of queues) this.#watchers.get(queue)?.delete(onHint);
    };
  }

  /** Something may have become dequeueable: tells this process at once and the others soon. */
  hint(queue: string): void {
    this.#hear(queue);
    // An embedded database has no other process to tell.
    if (this.#database.driver !== 'pg') return;
    const quiet = this.#quiet.get(queue);
    if (quiet) quiet.again = true;
    else this.#speak(queue);
  }

  async stop(): Promise<void> {
    const listening = this.#listening;
    this.#listening = undefined;
    this.#quiet.clear();
    await (await listening?.catch(() => undefined))?.();
  }

  /** An empty name means that something may have been missed. */
  #hear(queue: string): void {
    const queues = queue === '' ? [...this.#watchers.keys()] : [queue];
    for (const name of queues) for (const watcher of this.#watchers.get(name) ?? []) watcher(name);
  }

  /** Tells the others, then keeps quiet for an interval and tells once more what came up in it. */
  #speak(queue: string): void {
    this.#quiet.set(queue, { again: false });
    this.#notify(queue);
    const listenAgain = () => {
      const again = this.#quiet.get(queue)?.again;
      this.#quiet.delete(queue);
      if (again) this.#speak(queue);
    };
    setTimeout(listenAgain, intervalMs).unref();
  }

  /** Lost without harm: polling finds what nobody was told of. */
  #notify(queue: string): void {
    this.#database.query('select pg_notify($1, $2)', [this.#channel, queue]).catch((error: unknown) => {
      this.#log.debug({ error, queue }, 'a wake-up was not sent');
    });
  }
}
