/** What travels between the thread of the caller and the worker thread that holds the embedded database. */
import type { SqlErrorFields } from './sql-error.js';

export interface WorkerStart {
  /** The folder of the database files; undefined keeps them in memory. */
  readonly folder: string | undefined;
  /** A tar file of a database folder to begin with when the folder is empty. */
  readonly seedFile: string | undefined;
  readonly sharedBuffersMb: number;
}

export type WorkerRequest =
  | {
      readonly id: number;
      readonly kind: 'query';
      readonly text: string;
      /** The name under which the prepared statement is kept; undefined: it is not kept. */
      readonly name: string | undefined;
      readonly values: readonly (string | null)[];
    }
  | { readonly id: number; readonly kind: 'script'; readonly text: string }
  | { readonly id: number; readonly kind: 'dump' }
  | { readonly id: number; readonly kind: 'close' };

/** Rows as Postgres wrote them: text by column, decoded by the thread that asked. */
export interface WorkerResult {
  readonly names: readonly string[];
  readonly types: readonly number[];
  readonly rows: readonly (readonly (string | null)[])[];
  readonly rowCount: number;
  readonly command: string;
}

export type WorkerAnswer =
  | { readonly kind: 'ready' }
  | {
      readonly kind: 'result';
      readonly id: number;
      readonly result: WorkerResult;
      readonly inTransaction: boolean;
    }
  | {
      readonly kind: 'sql-error';
      readonly id: number;
      readonly fields: SqlErrorFields;
      readonly inTransaction: boolean;
    }
  | { readonly kind: 'dump'; readonly id: number; readonly bytes: Uint8Array }
  | { readonly kind: 'closed'; readonly id: number }
  /** Not an answer of Postgres: the database cannot be opened, or has come to its end. */
  | { readonly kind: 'failure'; readonly message: string }
  | { readonly kind: 'notification'; readonly channel: string; readonly payload: string };
