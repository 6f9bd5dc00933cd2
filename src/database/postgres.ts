/**
 * A PostgreSQL server behind the database port, over a pool of `pg` connections. Guarantees: `pg` is loaded only here
 * and only when asked for; no wait is without a bound; a connection in an unknown state is not used again.
 */
import type pg from 'pg';
import { groundError, isHeadgateError } from '../errors.js';
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
import { PostgresListener } from './postgres-listener.js';
import { runTransaction, type Session, TransactionGuard } from './transaction.js';
import { isStalePlan, StatementNames } from './statement-names.js';
import { decoderOf, encodeValues } from './values.js';

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
  /** How long it may take to answer before it is replaced, default 5,000 ms. */
  heartbeatTimeoutMs?: number;
  /** Shown in pg_stat_activity; default `headgate`. */
  applicationName?: string;
  log?: Log;
}

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
  return new ServerDatabase(driver, options);
}

class ServerDatabase implements Database {
  readonly driver = 'pg';
  readonly #pool: pg.Pool;
  readonly #log: Log;
  readonly #guard = new TransactionGuard();
  readonly #listener: PostgresListener;
  readonly #sessionOptions: SessionOptions;
  readonly #poolMax: number;
  readonly #acquireTimeoutMs: number;
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
    this.#pool.on('error', (error) => this.#log.warn({ error }, 'an idle database connection was lost'));
    this.#listener = new PostgresListener({
      createClient: () => new driver.Client(connection),
      log: this.#log,
      listenTimeoutMs: this.#acquireTimeoutMs,
      heartbeat: {
        intervalMs: options.heartbeatIntervalMs ?? 5_000,
        timeoutMs: options.heartbeatTimeoutMs ?? 5_000,
      },
    });
  }

  async query<R extends Row = Row>(text: string, values?: readonly unknown[]): Promise<QueryResult<R>> {
    this.#guard.assertOutside('query');
    try {
      return await this.#withSession((session) => session.query<R>(text, values));
    } catch (error) {
      if (!isStalePlan(error)) throw error;
      // A migration has changed the columns of a prepared statement; it was not run, and has a new name by now.
      return this.#withSession((session) => session.query<R>(text, values));
    }
  }

  async script(text: string): Promise<void> {
    this.#guard.assertOutside('script');
    await this.#withSession((session) => session.script(text));
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

  async #close(): Promise<void> {
    await Promise.all([this.#listener.close(), this.#pool.end()]);
  }

  async #withSession<T>(
    work: (session: Session, discard: (error: unknown) => void) => Promise<T>,
  ): Promise<T> {
    if (this.#closing) throw databaseClosed();
    const client = await this.#acquire();
    let broken: Error | undefined;
    const discard = (error: unknown): void => {
      broken ??= error instanceof Error ? error : new Error(String(error));
      cutConnection(client);
    };
    // A connection that is cut while it is held says so here; the statement that follows or waits fails by itself.
    client.on('error', discard);
    try {
      return await work(new ClientSession(client, this.#sessionOptions, discard), discard);
    } finally {
      client.off('error', discard);
      client.release(broken);
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

interface SessionOptions {
  readonly queryTimeoutMs: number;
  /** Undefined: nothing is prepared. */
  readonly statementNames: StatementNames | undefined;
}

/** One pooled connection while one caller holds it. */
class ClientSession implements Session {
  readonly #client: pg.PoolClient;
  readonly #options: SessionOptions;
  readonly #discard: (error: unknown) => void;

  constructor(client: pg.PoolClient, options: SessionOptions, discard: (error: unknown) => void) {
    this.#client = client;
    this.#options = options;
    this.#discard = discard;
  }

  async query<R extends Row>(text: string, values: readonly unknown[] = []): Promise<QueryResult<R>> {
    const { queryTimeoutMs, statementNames } = this.#options;
    const name = statementNames?.of(text);
    try {
      // The extended protocol even without parameters: it refuses several statements in one text, as PGlite does.
      const result = await this.#run<R>({
        text,
        values: encodeValues(values),
        queryMode: 'extended',
        query_timeout: queryTimeoutMs,
        ...(name !== undefined && { name }),
      });
      return { rows: result.rows, rowCount: result.rowCount ?? 0 };
    } catch (error) {
      if (isStalePlan(error)) statementNames?.renew(text);
      throw error;
    }
  }

  async script(text: string): Promise<void> {
    await this.#run({ text });
  }

  async command(text: string): Promise<string> {
    return (await this.#run({ text, query_timeout: this.#options.queryTimeoutMs })).command;
  }

  async #run<R extends Row>(config: pg.QueryConfig & { queryMode?: string; query_timeout?: number }) {
    try {
      return await this.#client.query<R>(config);
    } catch (error) {
      const mapped = mapConnectionError(error);
      if (isHeadgateError(mapped, 'database-unavailable')) this.#discard(error);
      throw mapped;
    }
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
