/**
 * One connection that listens and is asked at an interval whether it still answers. Guarantees: `lost` rejects once it
 * was cut or has not answered in time, and resolves when it was ended on purpose; either way the socket is closed.
 */
import type pg from 'pg';
import { cutConnection, mapConnectionError } from './postgres-connection.js';

export interface HeartbeatOptions {
  readonly intervalMs: number;
  readonly timeoutMs: number;
}

interface ConnectionOptions {
  readonly client: pg.Client;
  readonly heartbeat: HeartbeatOptions;
  readonly onNotification: (channel: string, payload: string) => void;
}

export class ListenerConnection {
  readonly #client: pg.Client;
  readonly #heartbeat: HeartbeatOptions;
  readonly #listening = new Set<string>();
  #timer: NodeJS.Timeout | undefined;
  #settle: { resolve(): void; reject(error: unknown): void } | undefined;
  /** Rejects when the connection is lost, resolves after `end`. */
  readonly lost: Promise<void>;

  private constructor({ client, heartbeat, onNotification }: ConnectionOptions) {
    this.#client = client;
    this.#heartbeat = heartbeat;
    this.lost = new Promise((resolve, reject) => {
      this.#settle = { resolve, reject };
    });
    // Whoever opened it may still be busy with something else when it is lost.
    this.lost.catch(() => {});
    client.on('error', (error) => this.#lose(error));
    client.on('end', () => this.#lose(new Error('the server closed the connection')));
    client.on('notification', ({ channel, payload }) => onNotification(channel, payload ?? ''));
  }

  static async open(options: ConnectionOptions): Promise<ListenerConnection> {
    const connection = new ListenerConnection(options);
    try {
      await options.client.connect();
    } catch (error) {
      connection.#lose(error);
      throw mapConnectionError(error);
    }
    connection.#scheduleHeartbeat();
    return connection;
  }

  /** Listens to a channel, if it does not already; false when the connection is lost. */
  async listen(channel: string): Promise<boolean> {
    if (!this.#listening.has(channel)) {
      if (!(await this.#run(`listen "${channel}"`))) return false;
      this.#listening.add(channel);
    }
    return this.#settle !== undefined;
  }

  async unlisten(channel: string): Promise<void> {
    if (this.#listening.delete(channel)) await this.#run(`unlisten "${channel}"`);
  }

  end(): void {
    const settle = this.#close();
    settle?.resolve();
  }

  /** A statement that fails or is not answered in time is the end of the connection. */
  async #run(text: string): Promise<boolean> {
    const statement: pg.QueryConfig & { query_timeout: number } = {
      text,
      query_timeout: this.#heartbeat.timeoutMs,
    };
    try {
      await this.#client.query(statement);
      return true;
    } catch (error) {
      this.#lose(error);
      return false;
    }
  }

  #scheduleHeartbeat(): void {
    this.#timer = setTimeout(async () => {
      if (await this.#run('select 1')) this.#scheduleHeartbeat();
    }, this.#heartbeat.intervalMs);
  }

  #lose(error: unknown): void {
    this.#close()?.reject(mapConnectionError(error));
  }

  #close() {
    const settle = this.#settle;
    this.#settle = undefined;
    clearTimeout(this.#timer);
    if (settle) cutConnection(this.#client);
    return settle;
  }
}
