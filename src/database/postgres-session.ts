/**
 * One pooled connection while one caller holds it: runs statements by the value rules, and gives the connection up when
 * an error leaves its state unknown.
 */
import type pg from 'pg';
import { isHeadgateError } from '../errors.js';
import type { QueryResult, Row } from './database.js';
import { mapConnectionError } from './postgres-connection.js';
import { isStalePlan, type StatementNames } from './statement-names.js';
import type { Session } from './transaction.js';
import { encodeValues } from './values.js';

export interface ClientSessionOptions {
  readonly queryTimeoutMs: number;
  /** Undefined: nothing is prepared. */
  readonly statementNames: StatementNames | undefined;
}

/** One pooled connection while one caller holds it. */
export class ClientSession implements Session {
  readonly #client: pg.PoolClient;
  readonly #options: ClientSessionOptions;
  readonly #discard: (error: unknown) => void;

  constructor(client: pg.PoolClient, options: ClientSessionOptions, discard: (error: unknown) => void) {
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
