export type {
  Database,
  DatabaseDurability,
  Queryable,
  QueryResult,
  Row,
  Transaction,
  TransactionOptions,
} from './database.js';
export { type FolderHolder, type FolderLock, lockFolder, readFolderLock } from './folder-lock.js';
export { type MigrateOptions, migrate, quoteSchema } from './migrate.js';
export { openPglite, type PgliteDatabase, type PgliteOptions } from './pglite.js';
export { openPostgres, type PostgresOptions } from './postgres.js';
export { preparePgliteSeed } from './prepare-pglite-seed.js';
export { isSqlError, SqlError } from './sql-error.js';
