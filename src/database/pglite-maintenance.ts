/**
 * What a server does in the background and the embedded database does not: one process without a checkpointer and an
 * autovacuum writes its log and its dead rows without end, and plans by guesses. Guarantees that a database in use has a
 * bounded log, dead rows that stay a share of the live ones, and statistics; one statement a round, nothing when idle.
 */
import { isHeadgateError } from '../errors.js';
import type { Log } from '../log.js';
import type { Queryable } from './database.js';

export interface PgliteMaintenanceParts {
  readonly database: Queryable;
  readonly log: Log;
  /** Pause between two rounds, in milliseconds. */
  readonly everyMs: number;
  /** How many statements have been run so far; a round without new ones does nothing. */
  readonly statements: () => number;
}

/** The log since the last checkpoint, in bytes: a restart after SIGKILL replays at most about this much. */
const walBytesMax = 64 * 1024 * 1024;

const walSinceCheckpoint = `
  select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), redo_lsn)::bigint as bytes from pg_control_checkpoint()`;

/** The table that needs it most; the thresholds are those of PostgreSQL's autovacuum, with the shares halved. */
const neediest = `
  select format('%I.%I', schemaname, relname) as name,
    n_dead_tup > 500 + n_live_tup / 10 as dead
  from pg_stat_user_tables
  where n_dead_tup > 500 + n_live_tup / 10 or n_mod_since_analyze > 500 + n_live_tup / 20
  order by greatest(n_dead_tup::float8 / (500 + n_live_tup / 10), n_mod_since_analyze::float8 / (500 + n_live_tup / 20)) desc
  limit 1`;

/** Their own statements do not count as use. */
const statementsOfARoundMax = 4;

export class PgliteMaintenance {
  readonly #parts: PgliteMaintenanceParts;
  #timer: NodeJS.Timeout | undefined;
  #seen = 0;
  #stopped = false;

  constructor(parts: PgliteMaintenanceParts) {
    this.#parts = parts;
    this.#plan();
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }

  /** Does the most urgent thing; answers the statement that it ran. */
  async round(): Promise<string | undefined> {
    const statement = await this.#choose();
    if (statement !== undefined) await this.#parts.database.query(statement);
    return statement;
  }

  async #choose(): Promise<string | undefined> {
    const { database } = this.#parts;
    const wal = await database.query<{ bytes: string }>(walSinceCheckpoint);
    if (Number(wal.rows[0]?.bytes ?? 0) > walBytesMax) return 'checkpoint';
    const table = (await database.query<{ name: string; dead: boolean }>(neediest)).rows[0];
    if (!table) return undefined;
    return `${table.dead ? 'vacuum (analyze)' : 'analyze'} ${table.name}`;
  }

  #plan(): void {
    this.#timer = setTimeout(() => void this.#tick(), this.#parts.everyMs);
    this.#timer.unref();
  }

  async #tick(): Promise<void> {
    const used = this.#parts.statements() - this.#seen > statementsOfARoundMax;
    if (used) {
      try {
        await this.round();
      } catch (error) {
        const closing =
          isHeadgateError(error, 'database-closed') || isHeadgateError(error, 'database-unavailable');
        if (!closing)
          this.#parts.log.warn({ err: error }, 'a round of maintenance of the embedded database failed');
      }
      this.#seen = this.#parts.statements();
    }
    if (!this.#stopped) this.#plan();
  }
}
