/**
 * A PostgreSQL server behind the database port, over a pool of `pg` connections. Guarantees: `pg` is loaded only here
 * and only when asked for; no wait is without a bound; a connection in an unknown state is not used again.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import { groundError, invalidInput } from '../errors.js';
import { type Log, silentLog } from '../log.js';
import { assertChannel } from './channel.js';
import { cutConnection, mapConnectionError } from './postgres-connection.js';
import type {
  Database,
  DatabaseDurability,
  QueryResult,
  Row,
  Transaction,
  TransactionOptions,
} from './database.js';
import { atMostEvery } from './pacing.js';
import { PostgresListener } from './postgres-listener.js';
import { leftOpen, runTransaction, type Session, TransactionGuard } from './transaction.js';
import { type ClientSessionOptions, ClientSession } from './postgres-session.js';
import { retryStalePlan, StatementNames } from './statement-names.js';
import { decoderOf } from './values.js';

export interface PostgresOptions {
  /** For instance `postgres://user:password@host:5432/database`. */
  connectionString: string;
  /** Connections for statements; one more is opened for `listen`. Default 10. */
  poolMax?: number;
  /** How long a call waits for a free or a new connection; default 10,000 ms. */
  acquireTimeoutMs?: number;
  /** How long a statement waits for its answer before its connection is given up; default 60,000 ms. Scripts: no bound. */
  queryTimeoutMs?: number;
  /**
   * Lets the server keep the plan of each statement text for its connection. Default true; false for PgBouncer older than
   * 1.21 in transaction mode.
   */
  preparedStatements?: boolean;
  /** The watchdog of the listening connection: how often it is asked, default 5,000 ms. */
  heartbeatIntervalMs?: number;
  /** How long it may take to answer, or to be made, before it is replaced; default 5,000 ms. */
  heartbeatTimeoutMs?: number;
  /** Shown in pg_stat_activity; default `headgate`. */
  applicationName?: string;
  log?: Log;
}

const connectionStringPattern = /^postgres(ql)?:\/\//;

/** Makes a pool; connects with the first statement. Throws `driver-missing` when `pg` is not installed. */
export async function openPostgres(options: PostgresOptions): Promise<Database> {
  const driver = await import('pg').then(
    (module) => module.default,
    (cause: unknown) => {
      throw groundError('driver-missing', 'the driver for PostgreSQL is not installed: npm install pg', {
        cause,
      });
    },
  );
  if (!connectionStringPattern.test(options.connectionString)) {
    // Without its value, which holds a password.
    throw invalidInput(
      'connectionString',
      '(not shown)',
      'a URL that begins with postgres:// or postgresql://',
    );
  }
  return new ServerDatabase(driver, options);
}

type SessionWork<T> = (session: Session, discard: (error: unknown) => void) => Promise<T>;

class ServerDatabase implements Database {
  readonly driver = 'pg';
  readonly #pool: pg.Pool;
  readonly #log: Log;
  readonly #guard = new TransactionGuard();
  readonly #listener: PostgresListener;
  readonly #sessionOptions: ClientSessionOptions;
  readonly #poolMax: number;
  readonly #acquireTimeoutMs: number;
  readonly #calls = new Set<Promise<unknown>>();
  readonly #held = new Set<HeldClient>();
  #closing: Promise<void> | undefined;

  constructor(driver: typeof pg, options: PostgresOptions) {
    this.#log = options.log ?? silentLog;
    this.#poolMax = options.poolMax ?? 10;
    this.#acquireTimeoutMs = options.acquireTimeoutMs ?? 10_000;
    this.#sessionOptions = {
      queryTimeoutMs: options.queryTimeoutMs ?? 60_000,
      statementNames: options.preparedStatements === false ? undefined : new StatementNames(),
    };
    const connection: pg.ClientConfig = {
      connectionString: options.connectionString,
      connectionTimeoutMillis: this.#acquireTimeoutMs,
      keepAlive: true,
      keepAliveInitialDelayMillis: 10_000,
      application_name: options.applicationName ?? 'headgate',
      types: { getTypeParser: decoderOf as pg.CustomTypesConfig['getTypeParser'] },
    };
    this.#pool = new driver.Pool({ ...connection, max: this.#poolMax });
    // An idle connection that the server cuts is replaced by the pool; without a handler it would end the process.
    // A server that stops cuts all of them at once: one line says it.
    const logLoss = atMostEvery(1_000, (error: Error) =>
      this.#log.warn({ error }, 'an idle database connection was lost'),
    );
    this.#pool.on('error', logLoss);
    const heartbeat = {
      intervalMs: options.heartbeatIntervalMs ?? 5_000,
      timeoutMs: options.heartbeatTimeoutMs ?? 5_000,
    };
    this.#listener = new PostgresListener({
      createClient: () => new driver.Client({ ...connection, connectionTimeoutMillis: heartbeat.timeoutMs }),
      log: this.#log,
      listenTimeoutMs: this.#acquireTimeoutMs,
      heartbeat,
    });
  }

  async query<R extends Row = Row>(text: string, values?: readonly unknown[]): Promise<QueryResult<R>> {
    this.#guard.assertOutside('query');
    return retryStalePlan(() => this.#withSession((session) => session.query<R>(text, values)));
  }

  async script(text: string): Promise<void> {
    this.#guard.assertOutside('script');
    await this.#withSession(async (session, discard) => {
      try {
        await session.script(text);
      } catch (error) {
        // A script may have begun a transaction before it failed.
        discard(error);
        throw error;
      }
    });
  }

  async transaction<T>(
    work: (transaction: Transaction) => Promise<T>,
    options?: TransactionOptions,
  ): Promise<T> {
    this.#guard.assertOutside('transaction');
    return this.#withSession((session, discard) =>
      runTransaction({ session, guard: this.#guard, log: this.#log, work, options, discard }),
    );
  }

  async listen(channel: string, handler: (payload: string) => void): Promise<() => Promise<void>> {
    this.#guard.assertOutside('listen');
    if (this.#closing) throw databaseClosed();
    assertChannel(channel);
    return this.#listener.listen(channel, handler);
  }

  async durability(): Promise<DatabaseDurability> {
    const { rows } = await this.query<{ fsync: string; synchronous_commit: string }>(
      "select current_setting('fsync') as fsync, current_setting('synchronous_commit') as synchronous_commit",
    );
    const fsync = rows[0]?.fsync === 'on';
    const synchronousCommit = rows[0]?.synchronous_commit ?? 'unknown';
    return { fsync, synchronousCommit, survives: describeSurvival(fsync, synchronousCommit) };
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  /** Calls that were made before may end; what still holds a connection after the bound of waiting for one is cut off. */
  async #close(): Promise<void> {
    const listenerClosed = this.#listener.close();
    const bound = new AbortController();
    await Promise.race([
      Promise.allSettled(this.#calls),
      delay(this.#acquireTimeoutMs, undefined, { signal: bound.signal }).catch(() => {}),
    ]);
    bound.abort();
    for (const held of this.#held) held.giveUp(databaseClosed());
    await Promise.all([listenerClosed, this.#pool.end()]);
  }

  #withSession<T>(work: SessionWork<T>): Promise<T> {
    if (this.#closing) return Promise.reject(databaseClosed());
    const call = this.#holdSession(work);
    this.#calls.add(call);
    const forget = (): void => {
      this.#calls.delete(call);
    };
    call.then(forget, forget);
    return call;
  }

  async #holdSession<T>(work: SessionWork<T>): Promise<T> {
    const held = new HeldClient(await this.#acquire());
    this.#held.add(held);
    const discard = (error: unknown): void => held.discard(error);
    try {
      const result = await work(new ClientSession(held.client, this.#sessionOptions, discard), discard);
      if (held.client.getTransactionStatus() === 'I') return result;
      const error = leftOpen();
      discard(error);
      throw error;
    } finally {
      this.#held.delete(held);
      held.release();
    }
  }

  async #acquire(): Promise<pg.PoolClient> {
    try {
      return await this.#pool.connect();
    } catch (error) {
      if (this.#closing) throw databaseClosed();
      if (error instanceof Error && error.message === 'timeout exceeded when trying to connect') {
        const bound = `${this.#poolMax} connections was free within ${this.#acquireTimeoutMs} ms`;
        throw groundError('database-busy', `none of the ${bound}`, { cause: error });
      }
      throw mapConnectionError(error);
    }
  }
}

/** A pooled connection between its acquisition and its release, which happens once. */
class HeldClient {
  readonly client: pg.PoolClient;
  #broken: Error | undefined;
  #released = false;

  constructor(client: pg.PoolClient) {
    this.client = client;
    // A connection that is cut while it is held says so here; the statement that follows or waits fails by itself.
    client.on('error', this.discard);
  }

  readonly discard = (error: unknown): void => {
    if (this.#released) return;
    this.#broken ??= error instanceof Error ? error : new Error(String(error));
    cutConnection(this.client);
  };

  giveUp(error: Error): void {
    this.discard(error);
    this.release();
  }

  release(): void {
    if (this.#released) return;
    this.#released = true;
    this.client.off('error', this.discard);
    this.client.release(this.#broken);
  }
}

function describeSurvival(fsync: boolean, synchronousCommit: string): string {
  if (!fsync) return 'What was acknowledged survives a killed server, not a power cut: fsync is off.';
  if (synchronousCommit === 'off') {
    return 'The last moments before a crash of the server may be lost though acknowledged: synchronous_commit is off.';
  }
  return 'What was acknowledged survives a crash of the server and a power cut.';
}

function databaseClosed() {
  return groundError('database-closed', 'the database has been closed');
}
