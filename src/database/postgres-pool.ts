/**
 * The pool of connections for statements. Guarantees: every wait ends, for a connection (`database-busy`), for an answer
 * (`database-unavailable`) and for the end of the pool; nobody gets a connection that is inside somebody's transaction.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import { groundError } from '../errors.js';
import type { Log } from '../log.js';
import { atMostEvery } from './pacing.js';
import { mapConnectionError } from './postgres-connection.js';
import { ClientSession } from './postgres-session.js';
import type { StatementNames } from './statement-names.js';
import { leftOpen } from './transaction.js';

export interface SessionPoolOptions {
  readonly pool: pg.Pool;
  readonly log: Log;
  readonly acquireTimeoutMs: number;
  readonly queryTimeoutMs: number;
  /** Undefined: nothing is prepared. */
  readonly statementNames: StatementNames | undefined;
}

export class SessionPool {
  readonly #options: SessionPoolOptions;
  readonly #held = new Set<ClientSession>();
  readonly #watchdog: NodeJS.Timeout;
  #calls = 0;
  #closing = false;
  #onIdle: () => void = () => {};

  constructor(options: SessionPoolOptions) {
    this.#options = options;
    // An idle connection that the server cuts is replaced by the pool; without a handler it would end the process.
    // A server that stops cuts all of them at once: one line says it.
    const logLoss = atMostEvery(1_000, (error: Error) =>
      options.log.warn({ error }, 'an idle database connection was lost'),
    );
    options.pool.on('error', logLoss);
    // While a connection is held nobody else hears that it was cut; the statement that waits or follows fails by itself.
    options.pool.on('connect', (client) => client.on('error', () => {}));
    // One timer for all: one for each statement costs a tenth of a short statement.
    this.#watchdog = setInterval(() => this.#cutSilent(), Math.min(1_000, options.queryTimeoutMs / 4));
    this.#watchdog.unref();
  }

  /** Holds a connection while `work` runs. */
  async hold<T>(work: (session: ClientSession) => Promise<T>): Promise<T> {
    if (this.#closing) throw databaseClosed();
    this.#calls += 1;
    try {
      const session = new ClientSession(await this.#acquire(), this.#options.statementNames);
      this.#held.add(session);
      try {
        const result = await work(session);
        if (session.inTransaction) throw discarded(session, leftOpen());
        return result;
      } finally {
        this.#held.delete(session);
        session.release();
      }
    } finally {
      this.#calls -= 1;
      if (this.#calls === 0) this.#onIdle();
    }
  }

  /** Calls that were made before may end; what still holds a connection after the bound of waiting for one is cut off. */
  async close(): Promise<void> {
    this.#closing = true;
    const bound = new AbortController();
    if (this.#calls > 0) {
      await Promise.race([
        new Promise<void>((resolve) => {
          this.#onIdle = resolve;
        }),
        delay(this.#options.acquireTimeoutMs, undefined, { signal: bound.signal }).catch(() => {}),
      ]);
    }
    bound.abort();
    clearInterval(this.#watchdog);
    for (const session of this.#held) {
      session.discard(databaseClosed());
      session.release();
    }
    await this.#options.pool.end();
  }

  async #acquire(): Promise<pg.PoolClient> {
    const { pool, acquireTimeoutMs } = this.#options;
    try {
      return await pool.connect();
    } catch (error) {
      if (error instanceof Error && error.message === 'timeout exceeded when trying to connect') {
        const text = `none of the ${pool.options.max} connections was free within ${acquireTimeoutMs} ms`;
        throw groundError('database-busy', text, { cause: error });
      }
      throw mapConnectionError(error);
    }
  }

  #cutSilent(): void {
    const { queryTimeoutMs } = this.#options;
    const askedBeforeMs = performance.now() - queryTimeoutMs;
    for (const session of this.#held) {
      if (session.askedAtMs === undefined || session.askedAtMs > askedBeforeMs) continue;
      session.discard(new Error(`no answer within ${queryTimeoutMs} ms`));
    }
  }
}

function discarded<E extends Error>(session: ClientSession, error: E): E {
  session.discard(error);
  return error;
}

export function databaseClosed() {
  return groundError('database-closed', 'the database has been closed');
}
