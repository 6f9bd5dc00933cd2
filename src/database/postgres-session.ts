/**
 * One pooled connection between its acquisition and its release: runs statements by the value rules, and gives the
 * connection up when an error leaves its state unknown.
 */
import type pg from 'pg';
import { isHeadgateError } from '../errors.js';
import type { QueryResult, Row } from './database.js';
import { cutConnection, mapConnectionError } from './postgres-connection.js';
import { isStalePlan, type StatementNames } from './statement-names.js';
import type { Session } from './transaction.js';
import { encodeValues } from './values.js';

export class ClientSession implements Session {
  readonly #client: pg.PoolClient;
  readonly #statementNames: StatementNames | undefined;
  #broken: Error | undefined;
  #released = false;
  #askedAtMs: number | undefined;

  /** Without `statementNames` nothing is prepared. */
  constructor(client: pg.PoolClient, statementNames: StatementNames | undefined) {
    this.#client = client;
    this.#statementNames = statementNames;
  }

  /** Since when a statement that has a bound waits for its answer, by performance.now(). */
  get askedAtMs(): number | undefined {
    return this.#askedAtMs;
  }

  get inTransaction(): boolean {
    return this.#client.getTransactionStatus() !== 'I';
  }

  async query<R extends Row>(text: string, values: readonly unknown[] = []): Promise<QueryResult<R>> {
    const name = this.#statementNames?.of(text);
    // The extended protocol even without parameters: it refuses several statements in one text, as PGlite does.
    const statement = { text, name, values: encodeValues(values), queryMode: 'extended' };
    this.#askedAtMs = performance.now();
    try {
      const result = await this.#run<R>(statement);
      return { rows: result.rows, rowCount: result.rowCount ?? 0 };
    } catch (error) {
      if (isStalePlan(error)) this.#statementNames?.renew(text);
      throw error;
    } finally {
      this.#askedAtMs = undefined;
    }
  }

  async script(text: string): Promise<void> {
    await this.#run({ text });
  }

  async command(text: string): Promise<string> {
    this.#askedAtMs = performance.now();
    try {
      return (await this.#run({ text })).command;
    } finally {
      this.#askedAtMs = undefined;
    }
  }

  /** Closes the connection; a statement that waits for its answer fails with `database-unavailable`. */
  discard(error: unknown): void {
    if (this.#released) return;
    this.#broken ??= error instanceof Error ? error : new Error(String(error));
    cutConnection(this.#client);
  }

  /** Gives the connection back, or lets the pool replace it when it was discarded. May be called twice. */
  release(): void {
    if (this.#released) return;
    this.#released = true;
    this.#client.release(this.#broken);
  }

  async #run<R extends Row>(statement: pg.QueryConfig) {
    try {
      return await this.#client.query<R>(statement);
    } catch (error) {
      const mapped = mapConnectionError(this.#broken ?? error);
      if (isHeadgateError(mapped, 'database-unavailable')) this.discard(error);
      throw mapped;
    }
  }
}
