/**
 * A PostgreSQL server behind the database port, over a pool of `pg` connections. Guarantees: `pg` is loaded only here
 * and only when asked for; no wait is without a bound; a connection in an unknown state is not used again.
 */
import type pg from 'pg';
import { groundError, invalidInput } from '../errors.js';
import { type Log, silentLog } from '../log.js';
import { assertChannel } from './channel.js';
import type {
  Database,
  DatabaseDurability,
  QueryResult,
  Row,
  Transaction,
  TransactionOptions,
} from './database.js';
import { PostgresListener } from './postgres-listener.js';
import { databaseClosed, SessionPool } from './postgres-pool.js';
import { retryStalePlan, StatementNames } from './statement-names.js';
import { runTransaction, TransactionGuard } from './transaction.js';
import { decoderOf } from './values.js';

export interface PostgresOptions {
  /** For instance `postgres://user:password@host:5432/database`. */
  connectionString: string;
  /**
   * Where `listen` connects, when `connectionString` leads to a pooler in transaction mode, behind which LISTEN hears
   * nothing. Default: `connectionString`.
   */
  listenConnectionString?: string;
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
  assertConnectionString('connectionString', options.connectionString);
  if (options.listenConnectionString !== undefined) {
    assertConnectionString('listenConnectionString', options.listenConnectionString);
  }
  return new ServerDatabase(driver, options);
}

function assertConnectionString(field: string, value: string): void {
  if (/^postgres(ql)?:\/\//.test(value)) return;
  // Without the value, which holds a password.
  throw invalidInput(field, '(not shown)', 'a URL that begins with postgres:// or postgresql://');
}

class ServerDatabase implements Database {
  readonly driver = 'pg';
  readonly #pool: SessionPool;
  readonly #log: Log;
  readonly #guard = new TransactionGuard();
  readonly #listener: PostgresListener;
  #closing: Promise<void> | undefined;

  constructor(driver: typeof pg, options: PostgresOptions) {
    const log = options.log ?? silentLog;
    const acquireTimeoutMs = options.acquireTimeoutMs ?? 10_000;
    const heartbeat = {
      intervalMs: options.heartbeatIntervalMs ?? 5_000,
      timeoutMs: options.heartbeatTimeoutMs ?? 5_000,
    };
    const connection: pg.ClientConfig = {
      connectionString: options.connectionString,
      connectionTimeoutMillis: acquireTimeoutMs,
      keepAlive: true,
      keepAliveInitialDelayMillis: 10_000,
      application_name: options.applicationName ?? 'headgate',
      types: { getTypeParser: decoderOf as pg.CustomTypesConfig['getTypeParser'] },
    };
    this.#log = log;
    this.#pool = new SessionPool({
      pool: new driver.Pool({ ...connection, max: options.poolMax ?? 10 }),
      log,
      acquireTimeoutMs,
      queryTimeoutMs: options.queryTimeoutMs ?? 60_000,
      statementNames: options.preparedStatements === false ? undefined : new StatementNames(),
    });
    this.#listener = new PostgresListener({
      createClient: () =>
        new driver.Client({
          ...connection,
          connectionString: options.listenConnectionString ?? options.connectionString,
          connectionTimeoutMillis: heartbeat.timeoutMs,
        }),
      log,
      listenTimeoutMs: acquireTimeoutMs,
      heartbeat,
    });
  }

  assertOutside(method: string): void {
    this.#guard.assertOutside(method);
  }

  async query<R extends Row = Row>(text: string, values?: readonly unknown[]): Promise<QueryResult<R>> {
    this.#guard.assertOutside('query');
    return retryStalePlan(() => this.#pool.hold((session) => session.query<R>(text, values)));
  }

  async script(text: string): Promise<void> {
    this.#guard.assertOutside('script');
    await this.#pool.hold(async (session) => {
      try {
        await session.script(text);
      } catch (error) {
        // A script may have begun a transaction before it failed.
        session.discard(error);
        throw error;
      }
    });
  }

  async transaction<T>(
    work: (transaction: Transaction) => Promise<T>,
    options?: TransactionOptions,
  ): Promise<T> {
    this.#guard.assertOutside('transaction');
    return this.#pool.hold((session) =>
      runTransaction({
        session,
        guard: this.#guard,
        log: this.#log,
        work,
        options,
        discard: (error) => session.discard(error),
      }),
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
    await Promise.all([this.#listener.close(), this.#pool.close()]);
  }
}

function describeSurvival(fsync: boolean, synchronousCommit: string): string {
  if (!fsync) return 'What was acknowledged survives a killed server, not a power cut: fsync is off.';
  if (synchronousCommit === 'off') {
    return 'The last moments before a crash of the server may be lost though acknowledged: synchronous_commit is off.';
  }
  return 'What was acknowledged survives a crash of the server and a power cut.';
}
