/**
 * The outbox: messages for a store outside of the database, written in the caller's own transaction. Guarantees: they are there when
 * it commits and never were when it rolls back; a relay moves them on, each at least once, and the store knows them by id.
 */
import { type Database, migrate, type Queryable, quoteSchema } from '../../database/index.js';
import { type Log, silentLog } from '../../log.js';
import { queueError } from '../errors.js';
import type { EnqueueOutcome, MessageToStore } from '../store.js';

export const outboxSchemaDefault = 'headgate_outbox';

export interface OutboxOptions {
  readonly database: Database;
  /** Default `headgate_outbox`. Also the name of the NOTIFY channel. */
  readonly schema?: string;
  /** What a statement is run on, for clients that have no `query(text, values)`. Default: the transaction itself. */
  readonly queryableOf?: (transaction: unknown) => Queryable;
  readonly log?: Log;
}

export interface Outbox {
  /** Brings the schema up to date. */
  start(): Promise<void>;
  /** Answers `created: true` for each: whether the id is known is found out by the relay. */
  enqueue(request: {
    readonly queue: string;
    readonly messages: readonly MessageToStore[];
    readonly transaction: unknown;
    /** False leaves the wake-up of the relay out of the transaction. Default true. */
    readonly wake?: boolean | undefined;
    readonly now: number | undefined;
  }): Promise<EnqueueOutcome[]>;
}

const clock = 'floor(extract(epoch from statement_timestamp()) * 1000)::bigint';

export function createOutbox(options: OutboxOptions): Outbox {
  const { database, schema = outboxSchemaDefault, queryableOf = queryable, log = silentLog } = options;
  const quoted = quoteSchema(schema);
  const insert = `
    insert into ${quoted}.outbox_message (queue, message, created_at)
    select $1, entry.message, coalesce($3::bigint, ${clock})
    from unnest($2::text[]) with ordinality as entry (message, place)
    order by entry.place`;
  return {
    async start() {
      const directory = new URL('./migrations/', import.meta.url);
      await migrate(database, { part: 'outbox', schema, directory, log });
    },
    async enqueue({ queue, messages, transaction, wake = true, now }) {
      if (messages.length === 0) return [];
      const target = queryableOf(transaction);
      const texts = messages.map((message) => JSON.stringify(message));
      await target.query(insert, [queue, texts, now ?? null]);
      if (wake) await target.query('select pg_notify($1, $2)', [schema, queue]);
      return messages.map(({ id, delayMs = 0 }) => ({
        kind: 'enqueued',
        id,
        created: true,
        state: delayMs > 0 ? 'invisible' : 'pending',
      }));
    },
  };
}

function queryable(transaction: unknown): Queryable {
  if (typeof (transaction as { query?: unknown } | null)?.query === 'function')
    return transaction as Queryable;
  const expected = 'an open transaction with query(text, values), such as of the database, pg or PGlite';
  throw queueError('transaction-unsupported', `transaction: expected ${expected}`, {
    field: 'transaction',
    expected,
  });
}
