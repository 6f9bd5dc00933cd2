/**
 * What the `pg` driver does not say by itself: whether an error is the server's answer to a statement (SqlError) or
 * trouble with the connection (`database-unavailable`), and how to give a connection up without asking the other side.
 */
import type { Socket } from 'node:net';
import type { ClientBase, DatabaseError } from 'pg';
import { groundError } from '../errors.js';
import { SqlError } from './sql-error.js';

const sqlStatePattern = /^[0-9A-Z]{5}$/;
/** Connection exceptions (class 08), too many connections, and a server that starts, stops or ends the session. */
const unavailablePattern = /^(08...|53300|57P0[1-5])$/;

/** Maps an error of the `pg` driver; errors that are already ours stay as they are. */
export function mapConnectionError(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  if (!('severity' in error) || !('code' in error) || !sqlStatePattern.test(String(error.code))) {
    return error.name === 'HeadgateError' ? error : unavailable(error);
  }
  const answer = error as DatabaseError & { code: string };
  if (unavailablePattern.test(answer.code)) return unavailable(answer);
  const { code, message, detail, hint, schema, table, column, constraint, position, where } = answer;
  return new SqlError({ code, message, detail, hint, schema, table, column, constraint, position, where });
}

function unavailable(cause: Error) {
  const text =
    cause.message || (cause instanceof AggregateError ? cause.errors.map(String).join('; ') : cause.name);
  return groundError('database-unavailable', `the database cannot be reached: ${text}`, { cause });
}

/** Closes the socket at once: a polite goodbye over a connection that has gone silent would wait for minutes. */
export function cutConnection(client: ClientBase): void {
  (client as unknown as { connection: { stream: Socket } }).connection.stream.destroy();
}
