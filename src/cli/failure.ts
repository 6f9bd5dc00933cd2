/**
 * What a command that failed says, and how it exits: one sentence where an operator can put it right (a wrong address, a
 * missing right, a full disk), and a stack only for what nobody foresaw. Passwords are in none of them.
 */
import { isSqlError } from '../database/index.js';
import { isHeadgateError } from '../errors.js';
import { exitCodes } from './exit-codes.js';

export interface Failure {
  readonly text: string;
  readonly exitCode: number;
}

/** By SQLSTATE: what to do about an answer of PostgreSQL that is the operator's to put right. */
const databaseRemedies: Readonly<Record<string, string>> = {
  '28000': 'correct the user in --database-url, or let it in by pg_hba.conf',
  '28P01': 'correct the user and the password in --database-url',
  '3D000': 'create it, or correct the name at the end of --database-url',
  '42501':
    'the role in --database-url has to own the schemas of Headgate, or to have CREATE on the database to make them',
  '53100': 'make room on the disk of the database',
};

function ofDatabase(error: unknown): string | undefined {
  if (!isSqlError(error)) return undefined;
  const remedy = databaseRemedies[error.code];
  return remedy && `the database refuses: ${error.message} (${error.code}); ${remedy}`;
}

function ofRedis(error: Error): string | undefined {
  if (error.name === 'MaxRetriesPerRequestError' || error.name === 'ClusterAllFailedError')
    return 'Redis cannot be reached; is the address in --redis-url right, and is it running?';
  if (/^(NOAUTH|WRONGPASS|NOPERM)\b/.test(error.message))
    return `Redis refuses: ${error.message}; correct the user and the password in --redis-url`;
  return undefined;
}

/** The operating system has said no to a file, a folder or an address; its own words name which. */
function ofSystem(error: Error): string | undefined {
  return 'syscall' in error && 'errno' in error ? error.message : undefined;
}

export function describeFailure(error: unknown): Failure {
  if (isHeadgateError(error)) {
    const exitCode =
      error.code === 'invalid-input'
        ? exitCodes.usage
        : error.code === 'folder-locked'
          ? exitCodes.folderLocked
          : exitCodes.failed;
    const told = error.cause instanceof Error ? ofRedis(error.cause) : undefined;
    return { text: `${told ?? error.message} (${error.code})`, exitCode };
  }
  if (!(error instanceof Error)) return { text: String(error), exitCode: exitCodes.failed };
  const known =
    error.name === 'ServerSilent' ? error.message : (ofDatabase(error) ?? ofRedis(error) ?? ofSystem(error));
  return { text: known ?? error.stack ?? error.message, exitCode: exitCodes.failed };
}
