/**
 * Brings a schema to the version of this package with numbered SQL files. Guarantees: each file is applied once and as
 * a whole, also when several processes start together; a database that is newer than this package, or that was made
 * by files that have changed since, is refused before anything is done.
 */
import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { groundError, invalidInput } from '../errors.js';
import { type Log, silentLog } from '../log.js';
import type { Database, Transaction } from './database.js';
import { isSqlError } from './sql-error.js';

export interface MigrateOptions {
  /** Whose migrations these are, for the log and errors: `queue`, `feed`, … */
  part: string;
  /** The schema that holds the part's tables: lower-case letters, digits and underscores, at most 41 characters. */
  schema: string;
  /** The folder of files named `0001-name.sql`, in which `{{schema}}` stands for the quoted schema. */
  directory: URL;
  /** How long to wait for another process that migrates; default 30,000 ms, then `database-busy`. */
  lockTimeoutMs?: number;
  log?: Log;
}

interface Migration {
  readonly number: number;
  readonly name: string;
  readonly checksum: string;
  readonly text: string;
}

const schemaPattern = /^[a-z_][a-z0-9_]{0,40}$/;
const filePattern = /^(\d{4})-([a-z0-9-]+)\.sql$/;

/** The schema as an SQL identifier; throws `invalid-input`. */
export function quoteSchema(schema: string): string {
  if (!schemaPattern.test(schema)) {
    throw invalidInput(
      'schema',
      schema,
      '1 to 41 lower-case letters, digits and underscores, not beginning with a digit',
    );
  }
  return `"${schema}"`;
}

/** Applies what is missing and answers how many files that were. */
export async function migrate(database: Database, options: MigrateOptions): Promise<number> {
  const schema = quoteSchema(options.schema);
  const migrations = await readMigrations(options.directory);
  let applied = 0;
  for (;;) {
    const migration = await explainLock(options, () =>
      applyNext(database, { ...options, schema, migrations }),
    );
    if (!migration) return applied;
    applied += 1;
    const { number, name } = migration;
    (options.log ?? silentLog).info(
      { part: options.part, schema: options.schema, number, name },
      'a migration was applied',
    );
  }
}

async function readMigrations(directory: URL): Promise<Migration[]> {
  const names = (await readdir(directory)).filter((name) => name.endsWith('.sql')).sort();
  return Promise.all(
    names.map(async (file, index) => {
      const match = filePattern.exec(file);
      if (!match || Number(match[1]) !== index + 1) {
        throw invalidInput(
          'directory',
          file,
          `the file of migration ${index + 1} to be named like 0001-name.sql`,
        );
      }
      const text = await readFile(
        new URL(file, directory.href.endsWith('/') ? directory : `${directory.href}/`),
        'utf8',
      );
      return {
        number: index + 1,
        name: match[2] as string,
        text,
        checksum: createHash('sha256').update(text).digest('hex'),
      };
    }),
  );
}

interface Plan extends MigrateOptions {
  readonly migrations: readonly Migration[];
}

/** Applies the first missing migration under the lock that all processes of this database share. */
async function applyNext(database: Database, plan: Plan): Promise<Migration | undefined> {
  // Most starts find nothing to do, and should not wait for anybody to find that out.
  if (await schemaIsCurrent(database, plan)) return undefined;
  return database.transaction(async (transaction) => {
    await transaction.query("select set_config('lock_timeout', $1, true)", [
      `${plan.lockTimeoutMs ?? 30_000}ms`,
    ]);
    await transaction.query('select pg_advisory_xact_lock(hashtextextended($1, 0))', [
      `headgate migrate ${plan.schema}`,
    ]);
    // IF NOT EXISTS would ask for the right to make a schema even where an administrator has made it.
    const { rows } = await transaction.query('select 1 where to_regnamespace($1) is not null', [plan.schema]);
    if (rows.length === 0) await transaction.script(`create schema ${plan.schema}`);
    await transaction.script(`
      create table if not exists ${plan.schema}.migrations (
        number integer primary key,
        name text not null,
        checksum text not null,
        applied_at timestamptz not null default statement_timestamp()
      )`);
    const applied = await readApplied(transaction, plan);
    const next = plan.migrations[applied];
    if (!next) return undefined;
    await transaction.script(next.text.replaceAll('{{schema}}', plan.schema));
    await transaction.query(
      `insert into ${plan.schema}.migrations (number, name, checksum) values ($1, $2, $3)`,
      [next.number, next.name, next.checksum],
    );
    return next;
  });
}

async function schemaIsCurrent(database: Database, plan: Plan): Promise<boolean> {
  const { rows } = await database.query<{ exists: boolean }>('select to_regclass($1) is not null as exists', [
    `${plan.schema}.migrations`,
  ]);
  return rows[0]?.exists === true && (await readApplied(database, plan)) === plan.migrations.length;
}

/** How many migrations the database has; throws when they are not the ones of this package. */
async function readApplied(from: Database | Transaction, plan: Plan): Promise<number> {
  const { rows } = await from.query<{ number: number; name: string; checksum: string }>(
    `select number, name, checksum from ${plan.schema}.migrations order by number`,
  );
  for (const row of rows) {
    const own = plan.migrations[row.number - 1];
    const ids = { part: plan.part, schema: plan.schema, migration: `${row.number} ${row.name}` };
    if (!own) {
      const text = `the schema ${plan.schema} has migration ${row.number} (${row.name}) of ${plan.part}, which this version does not know: run the newer version of Headgate`;
      throw groundError('database-newer', text, { ids });
    }
    if (own.checksum !== row.checksum) {
      const text = `migration ${row.number} (${row.name}) of ${plan.part} was applied to the schema ${plan.schema} in another form than this version holds: run the version that applied it, or start on another schema`;
      throw groundError('migration-changed', text, { ids });
    }
  }
  return rows.length;
}

/** A session that holds the lock and does nothing must not hang a start for ever without a word. */
async function explainLock<T>(options: MigrateOptions, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    if (!isSqlError(cause, '55P03')) throw cause;
    const text = `the migration of ${options.part} waited ${options.lockTimeoutMs ?? 30_000} ms for a lock that another session holds (see pg_locks)`;
    throw groundError('database-busy', text, { cause });
  }
}
