export type {
  Database,
  DatabaseDurability,
  Queryable,
  QueryResult,
  Row,
  Transaction,
  TransactionOptions,
} from './database.js';
