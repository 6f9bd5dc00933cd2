/**
 * The database port: one small interface over `pg` and PGlite, so that every part has one code path.
 *
 * Value rules, alike on both drivers: int8 and numeric come back as strings, bytea as Uint8Array, json and jsonb as
 * text (they also go in as text), timestamptz as Date (cut to milliseconds), int2, int4, oid and floats as numbers, bool
 * as boolean, arrays as arrays of the same, every other type as the text that Postgres writes. Text with a NUL or half
 * a surrogate pair, which Postgres cannot hold, throws `invalid-input`.
 */
export type Row = Record<string, unknown>;

export interface QueryResult<R extends Row = Row> {
  readonly rows: R[];
  /** Rows returned or changed. */
  readonly rowCount: number;
}

export interface Queryable {
  /** Runs one statement. `values` are `$1`, `$2`, …; arrays may be passed for `any($1::text[])` and `unnest`. */
  query<R extends Row = Row>(text: string, values?: readonly unknown[]): Promise<QueryResult<R>>;
}

/** The handle of an open transaction; throws `transaction-misuse` once the transaction has ended. */
export interface Transaction extends Queryable {
  readonly inTransaction: true;
  /** Runs a script of several statements without parameters (migrations). */
  script(text: string): Promise<void>;
}

export interface TransactionOptions {
  /** Default: read committed. */
  isolation?: 'read committed' | 'repeatable read' | 'serializable';
}

/** What an acknowledged write survives, in words for /health and the log. */
export interface DatabaseDurability {
  readonly fsync: boolean;
  readonly synchronousCommit: string;
  /** One sentence: what is survived and what is not. */
  readonly survives: string;
}

export interface Database extends Queryable {
  readonly driver: 'pg' | 'pglite';
  /**
   * Runs `work` in a transaction: committed when it resolves, rolled back when it throws. Inside `work` only the given
   * handle may be used: a call on the database itself throws `transaction-misuse` at once.
   */
  transaction<T>(work: (transaction: Transaction) => Promise<T>, options?: TransactionOptions): Promise<T>;
  /** Runs a script of several statements without parameters (migrations). */
  script(text: string): Promise<void>;
  /**
   * Calls `handler` with the payload of each notification on `channel`. A hint only: notifications may be lost, and
   * `handler` is also called with an empty string after a lost listener has been replaced, because something may have
   * been missed. Resolves when listening; the answer ends it.
   */
  listen(channel: string, handler: (payload: string) => void): Promise<() => Promise<void>>;
  durability(): Promise<DatabaseDurability>;
  /** Throws `transaction-misuse` inside an open transaction of this database: for callers whose statement runs later. */
  assertOutside?(method: string): void;
  /** Waits for running statements, then closes; later calls throw `database-closed`. May be called twice. */
  close(): Promise<void>;
}
