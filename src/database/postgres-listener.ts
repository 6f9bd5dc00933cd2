/**
 * The one connection that listens, for all channels of a database. Guarantees: a connection that was cut or has gone
 * silent is noticed within the heartbeat interval plus its timeout and replaced; every handler is then called with an
 * empty payload, because something may have been missed; attempts and log lines are paced.
 *
 *     idle -> connecting -> listening -> (cut or silent) waiting -> connecting -> …
 */
import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import { groundError } from '../errors.js';
import type { Log } from '../log.js';
import { atMostEvery } from './pacing.js';
import { cutConnection } from './postgres-connection.js';
import { type HeartbeatOptions, ListenerConnection } from './postgres-listener-connection.js';

export interface ListenerOptions {
  /** Makes a client that is not connected yet. */
  readonly createClient: () => pg.Client;
  readonly log: Log;
  /** How long `listen` waits until it listens. */
  readonly listenTimeoutMs: number;
  readonly heartbeat: HeartbeatOptions;
}

type Handler = (payload: string) => void;

const retryDelayMinMs = 100;
const retryDelayMaxMs = 5_000;
const logIntervalMs = 10_000;

export class PostgresListener {
  readonly #options: ListenerOptions;
  readonly #handlers = new Map<string, Set<Handler>>();
  readonly #stop = new AbortController();
  #running: Promise<void> | undefined;
  #connection: ListenerConnection | undefined;
  readonly #changed = new Set<() => void>();
  readonly #logLoss: (error: unknown) => void;
  #lastError: unknown;

  constructor(options: ListenerOptions) {
    this.#options = options;
    this.#logLoss = atMostEvery(logIntervalMs, (error: unknown) =>
      options.log.warn({ error }, 'the listening database connection was lost or refused; trying again'),
    );
  }

  /** Resolves when the channel is listened to; throws `database-unavailable` after the bound. */
  async listen(channel: string, handler: Handler): Promise<() => Promise<void>> {
    const own: Handler = (payload) => handler(payload);
    const handlers = this.#handlers.get(channel) ?? new Set();
    this.#handlers.set(channel, handlers.add(own));
    const end = async (): Promise<void> => {
      if (!handlers.delete(own) || handlers.size > 0) return;
      this.#handlers.delete(channel);
      if (this.#handlers.size === 0) this.#connection?.end();
      else await this.#connection?.unlisten(channel);
    };
    this.#running ??= this.#run();
    try {
      await this.#untilListening(channel);
    } catch (error) {
      await end();
      throw error;
    }
    return end;
  }

  async close(): Promise<void> {
    this.#stop.abort();
    this.#handlers.clear();
    this.#connection?.end();
    await this.#running;
  }

  async #untilListening(channel: string): Promise<void> {
    const { signal } = this.#stop;
    const endsAtMs = performance.now() + this.#options.listenTimeoutMs;
    for (;;) {
      if (await this.#connection?.listen(channel)) return;
      if (signal.aborted) throw groundError('database-closed', 'the database has been closed');
      const leftMs = endsAtMs - performance.now();
      if (leftMs <= 0) {
        const text = `no listening connection within ${this.#options.listenTimeoutMs} ms`;
        throw groundError('database-unavailable', text, { cause: this.#lastError });
      }
      await this.#untilChanged(leftMs);
    }
  }

  /** Waits until the connection has come or gone, at most `timeoutMs`. */
  #untilChanged(timeoutMs: number): Promise<void> {
    return new Promise((resolve) => {
      const finish = (): void => {
        clearTimeout(timer);
        this.#changed.delete(finish);
        resolve();
      };
      const timer = setTimeout(finish, timeoutMs);
      this.#changed.add(finish);
    });
  }

  #setConnection(connection: ListenerConnection | undefined): void {
    this.#connection = connection;
    for (const changed of this.#changed) changed();
  }

  /** Keeps a connection as long as there is somebody to call. */
  async #run(): Promise<void> {
    let failures = 0;
    let lost = false;
    while (this.#handlers.size > 0) {
      try {
        const connection = await this.#open();
        for (const channel of this.#handlers.keys()) await connection.listen(channel);
        this.#setConnection(connection);
        failures = 0;
        if (lost) for (const channel of this.#handlers.keys()) this.#call(channel, '');
        await connection.lost;
      } catch (error) {
        this.#lastError = error;
        lost = true;
        failures += 1;
        if (!this.#stop.signal.aborted) this.#logLoss(error);
      }
      this.#setConnection(undefined);
      if (this.#handlers.size > 0) await this.#pause(failures);
    }
    this.#running = undefined;
  }

  async #open(): Promise<ListenerConnection> {
    const client = this.#options.createClient();
    const { signal } = this.#stop;
    const cut = (): void => cutConnection(client);
    signal.addEventListener('abort', cut);
    try {
      const connection = await ListenerConnection.open({
        client,
        heartbeat: this.#options.heartbeat,
        onNotification: (channel, payload) => this.#call(channel, payload),
      });
      // Everybody may have left in the meantime.
      if (this.#handlers.size === 0) connection.end();
      return connection;
    } finally {
      signal.removeEventListener('abort', cut);
    }
  }

  /** Doubles with each failure and differs between processes, so that a server that comes back is not stormed. */
  async #pause(failures: number): Promise<void> {
    const longestMs = Math.min(retryDelayMaxMs, retryDelayMinMs * 2 ** Math.min(failures, 10));
    const { signal } = this.#stop;
    await delay(longestMs * (0.5 + Math.random() / 2), undefined, { signal }).catch(() => {});
  }

  #call(channel: string, payload: string): void {
    for (const handler of this.#handlers.get(channel) ?? []) {
      try {
        handler(payload);
      } catch (error) {
        this.#options.log.error({ channel, error }, 'a notification handler failed');
      }
    }
  }
}
