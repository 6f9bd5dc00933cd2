/**
 * The embedded database: PGlite in a worker thread, on a folder or in memory, behind the database port. Guarantees:
 * one caller at a time in the order of asking, with a bound on the wait; one process at a time on a folder; the death
 * of the worker rejects every waiting call. What was acknowledged survives SIGKILL, not a power cut.
 */
import { mkdir } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import { groundError } from '../errors.js';
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
import { type FolderLock, lockFolder } from './folder-lock.js';
import { PgliteMaintenance } from './pglite-maintenance.js';
import { findBundledSeed } from './pglite-seed.js';
import { PgliteThread } from './pglite-thread.js';
import { retryStalePlan } from './statement-names.js';
import { leftOpen, runTransaction, type Session, TransactionGuard } from './transaction.js';
import { Turnstile } from './turnstile.js';

export interface PgliteOptions {
  /** The data folder, made if missing; `memory` keeps everything in memory and loses it with the process. */
  folder: string;
  /**
   * The packed files of a database to begin with when the folder is empty, made by `dump` or `preparePgliteSeed`. Default:
   * an empty database that the package brings along.
   */
  seedFile?: string;
  /** How long a call waits for the one connection before `database-busy`; default 10,000 ms. */
  acquireTimeoutMs?: number;
  /** Pause between two rounds of maintenance (checkpoint, vacuum, analyze), in milliseconds; default 2,000. */
  maintenanceMs?: number;
  /**
   * Memory for pages, in MiB; default 32. Postgres's own default of 128 costs about 90 MB more, and look-ups and updates
   * over 300,000 rows were not faster with it: the operating system keeps the files of a folder in memory besides.
   */
  sharedBuffersMb?: number;
  log?: Log;
}

/** A database in this process. */
export interface PgliteDatabase extends Database {
  readonly driver: 'pglite';
  /** The lock on the folder, which can tell others the server's address; undefined in memory. */
  readonly folderLock: FolderLock | undefined;
  /** The database files as a tar archive, for `seedFile` (packed with gzip if its name ends with .gz). */
  dump(): Promise<Uint8Array>;
}

/** Opens the embedded database; throws `folder-locked` when another process holds the folder. */
export async function openPglite(options: PgliteOptions): Promise<PgliteDatabase> {
  assertInstalled();
  const folder = options.folder === 'memory' ? undefined : resolve(options.folder);
  if (folder !== undefined) await mkdir(folder, { recursive: true });
  const folderLock = folder === undefined ? undefined : await lockFolder(folder);
  try {
    const thread = await PgliteThread.start({
      folder: folder === undefined ? undefined : join(folder, 'postgres'),
      seedFile: options.seedFile ?? (await findBundledSeed()),
      sharedBuffersMb: options.sharedBuffersMb ?? 32,
    });
    return new EmbeddedDatabase({
      thread,
      folderLock,
      log: options.log ?? silentLog,
      acquireTimeoutMs: options.acquireTimeoutMs ?? 10_000,
      maintenanceMs: options.maintenanceMs ?? 2_000,
    });
  } catch (error) {
    await folderLock?.release();
    throw error;
  }
}

function assertInstalled(): void {
  try {
    createRequire(import.meta.url).resolve('@electric-sql/pglite');
  } catch (cause) {
    throw groundError(
      'driver-missing',
      'the embedded database is not installed: npm install @electric-sql/pglite',
      { cause },
    );
  }
}

interface EmbeddedParts {
  readonly thread: PgliteThread;
  readonly folderLock: FolderLock | undefined;
  readonly log: Log;
  readonly acquireTimeoutMs: number;
  readonly maintenanceMs: number;
}

class EmbeddedDatabase implements PgliteDatabase {
  readonly driver = 'pglite';
  readonly folderLock: FolderLock | undefined;
  readonly #thread: PgliteThread;
  readonly #log: Log;
  readonly #turnstile: Turnstile;
  readonly #guard = new TransactionGuard();
  readonly #handlers = new Map<string, Set<(payload: string) => void>>();
  readonly #maintenance: PgliteMaintenance;
  #statements = 0;
  #closing: Promise<void> | undefined;

  constructor({ thread, folderLock, log, acquireTimeoutMs, maintenanceMs }: EmbeddedParts) {
    this.folderLock = folderLock;
    this.#thread = thread;
    this.#log = log;
    this.#turnstile = new Turnstile({ waitMaxMs: acquireTimeoutMs });
    thread.onNotification((channel, payload) => this.#notify(channel, payload));
    thread.onDeath((error) => this.#turnstile.refuseAll(error));
    this.#maintenance = new PgliteMaintenance({
      database: this,
      log,
      everyMs: maintenanceMs,
      statements: () => this.#statements,
    });
  }

  assertOutside(method: string): void {
    this.#guard.assertOutside(method);
  }

  async query<R extends Row = Row>(text: string, values?: readonly unknown[]): Promise<QueryResult<R>> {
    this.#guard.assertOutside('query');
    return this.#exclusively(() => retryStalePlan(() => this.#thread.query<R>(text, values)));
  }

  async script(text: string): Promise<void> {
    this.#guard.assertOutside('script');
    await this.#exclusively(() => this.#thread.script(text));
  }

  async transaction<T>(
    work: (transaction: Transaction) => Promise<T>,
    options?: TransactionOptions,
  ): Promise<T> {
    this.#guard.assertOutside('transaction');
    const session: Session = this.#thread;
    // A worker that cannot begin or roll back is dead or about to be; there is no second connection to turn to.
    const discard = (error: unknown): void => this.#thread.kill(error);
    return this.#exclusively(() =>
      runTransaction({ session, guard: this.#guard, log: this.#log, work, options, discard }),
    );
  }

  async listen(channel: string, handler: (payload: string) => void): Promise<() => Promise<void>> {
    this.#guard.assertOutside('listen');
    assertChannel(channel);
    const own = (payload: string): void => handler(payload);
    await this.#exclusively(async () => {
      if (!this.#handlers.has(channel)) await this.#thread.query(`listen "${channel}"`);
      this.#handlers.set(channel, (this.#handlers.get(channel) ?? new Set()).add(own));
    });
    return async () => {
      const handlers = this.#handlers.get(channel);
      if (!handlers?.delete(own) || handlers.size > 0 || this.#closing) return;
      await this.#exclusively(async () => {
        if (handlers.size > 0 || this.#handlers.get(channel) !== handlers) return;
        this.#handlers.delete(channel);
        await this.#thread.query(`unlisten "${channel}"`);
      });
    };
  }

  async durability(): Promise<DatabaseDurability> {
    return {
      fsync: false,
      synchronousCommit: 'on',
      survives: this.folderLock
        ? 'What was acknowledged survives a killed process, not a power cut or a crash of the operating system.'
        : 'Nothing survives the end of the process: the database is in memory.',
    };
  }

  async dump(): Promise<Uint8Array> {
    this.#guard.assertOutside('dump');
    return this.#exclusively(() => this.#thread.dump());
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#maintenance.stop();
    try {
      await this.#turnstile.enter().catch((error: unknown) => this.#thread.kill(error));
      await this.#thread.close();
    } finally {
      await this.folderLock?.release();
    }
  }

  async #exclusively<T>(work: () => Promise<T>): Promise<T> {
    if (this.#closing) throw databaseClosed();
    await this.#turnstile.enter();
    this.#statements += 1;
    try {
      return await this.#withoutStrayTransaction(work);
    } finally {
      this.#turnstile.leave();
    }
  }

  /** There is one connection: a BEGIN by hand would take in the statements of everybody else. */
  async #withoutStrayTransaction<T>(work: () => Promise<T>): Promise<T> {
    let result: T;
    try {
      result = await work();
    } catch (error) {
      await this.#rollBackStray();
      throw error;
    }
    if (await this.#rollBackStray()) throw leftOpen();
    return result;
  }

  async #rollBackStray(): Promise<boolean> {
    if (!this.#thread.inTransaction) return false;
    await this.#thread.command('rollback').catch((error: unknown) => this.#thread.kill(error));
    return true;
  }

  #notify(channel: string, payload: string): void {
    for (const handler of this.#handlers.get(channel) ?? []) {
      try {
        handler(payload);
      } catch (error) {
        this.#log.error({ channel, error }, 'a notification handler failed');
      }
    }
  }
}

function databaseClosed() {
  return groundError('database-closed', 'the database has been closed');
}
