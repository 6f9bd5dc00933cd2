/**
 * Transactions over one connection, alike on both drivers. Guarantees: a call on the database from inside one of its
 * open transactions, or on a handle after its end, throws `transaction-misuse` at once; a transaction that Postgres
 * has aborted is never reported as committed; a connection that may still be inside a transaction is not used again.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { groundError, type HeadgateError } from '../errors.js';
import type { Log } from '../log.js';
import type { QueryResult, Row, Transaction, TransactionOptions } from './database.js';
import { isSqlError, SqlError } from './sql-error.js';

/** One connection, held by one caller at a time. */
export interface Session {
  query<R extends Row>(text: string, values?: readonly unknown[]): Promise<QueryResult<R>>;
  script(text: string): Promise<void>;
  /** Runs a statement of the transaction frame and answers its command tag, such as `COMMIT`. */
  command(text: string): Promise<string>;
}

const openWarnAfterMs = 1_000;

const beginTexts = {
  'read committed': 'begin isolation level read committed',
  'repeatable read': 'begin isolation level repeatable read',
  serializable: 'begin isolation level serializable',
} as const;

interface OpenTransaction {
  open: boolean;
}

/** Knows, for one database, which asynchronous context is inside an open transaction. */
export class TransactionGuard {
  readonly #current = new AsyncLocalStorage<OpenTransaction>();

  /** Throws `transaction-misuse` inside an open transaction of this database. */
  assertOutside(method: string): void {
    if (!this.#current.getStore()?.open) return;
    throw groundError(
      'transaction-misuse',
      `database.${method}() was called inside an open transaction of the same database: use the transaction's handle`,
    );
  }

  run<T>(transaction: OpenTransaction, work: () => Promise<T>): Promise<T> {
    return this.#current.run(transaction, work);
  }
}

export interface TransactionFrame<T> {
  readonly session: Session;
  readonly guard: TransactionGuard;
  readonly log: Log;
  readonly work: (transaction: Transaction) => Promise<T>;
  readonly options: TransactionOptions | undefined;
  /** Called when the state of the connection is unknown: it must not be used again. */
  readonly discard: (error: unknown) => void;
}

/** Runs `work` between BEGIN and COMMIT, or ROLLBACK when it throws. */
export async function runTransaction<T>(frame: TransactionFrame<T>): Promise<T> {
  const { session, guard, discard } = frame;
  const state: OpenTransaction = { open: true };
  const endWatch = watchDuration(frame.log);
  try {
    await discardOnFailure(
      session.command(beginTexts[frame.options?.isolation ?? 'read committed']),
      discard,
    );
    let result: T;
    try {
      result = await guard.run(state, () => frame.work(createHandle(session, state)));
    } catch (error) {
      state.open = false;
      // The caller needs the error of its work; a connection that cannot roll back is thrown away, which rolls back.
      await discardOnFailure(session.command('rollback'), discard).catch(() => {});
      throw error;
    }
    state.open = false;
    await commit(session, discard);
    return result;
  } finally {
    state.open = false;
    endWatch();
  }
}

async function commit(session: Session, discard: (error: unknown) => void): Promise<void> {
  const tag = await discardOnFailure(session.command('commit'), discard);
  // Postgres answers COMMIT of an aborted transaction with ROLLBACK and no error.
  if (tag === 'ROLLBACK') {
    throw new SqlError({
      code: '25P02',
      message: 'the transaction was rolled back instead of committed: one of its statements had failed',
    });
  }
}

/** After an answer of Postgres the state of the connection is known: a COMMIT that it refuses has rolled back. */
async function discardOnFailure<T>(command: Promise<T>, discard: (error: unknown) => void): Promise<T> {
  try {
    return await command;
  } catch (error) {
    if (!isSqlError(error)) discard(error);
    throw error;
  }
}

function createHandle(session: Session, state: OpenTransaction): Transaction {
  const assertOpen = (): void => {
    if (state.open) return;
    throw groundError('transaction-misuse', 'a transaction handle was used after its transaction had ended');
  };
  return {
    inTransaction: true,
    async query<R extends Row>(text: string, values?: readonly unknown[]): Promise<QueryResult<R>> {
      assertOpen();
      return session.query<R>(text, values);
    },
    async script(text: string): Promise<void> {
      assertOpen();
      return session.script(text);
    },
  };
}

/** For a statement that has left a transaction open on a connection that others will use. */
export function leftOpen(): HeadgateError {
  return groundError(
    'transaction-misuse',
    'a statement outside database.transaction() began a transaction; it was rolled back',
  );
}

/** Logs a transaction that stays open for long while it is open: one that hangs would never be seen afterwards. */
function watchDuration(log: Log): () => void {
  const startedAtMs = performance.now();
  let warned = false;
  const timer = setTimeout(() => {
    warned = true;
    log.warn({ openMs: openWarnAfterMs }, 'a transaction has been open for more than a second');
  }, openWarnAfterMs);
  timer.unref();
  return () => {
    clearTimeout(timer);
    if (warned) {
      const openMs = Math.round(performance.now() - startedAtMs);
      log.warn({ openMs }, 'a transaction that was open for more than a second has ended');
    }
  };
}
