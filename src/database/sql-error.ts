/**
 * What Postgres itself answers to a statement, alike on both drivers: `code` is the SQLSTATE. Trouble with the
 * connection is not one of these: that is a HeadgateError `database-unavailable`.
 */
export interface SqlErrorFields {
  readonly code: string;
  readonly message: string;
  readonly detail?: string | undefined;
  readonly hint?: string | undefined;
  readonly schema?: string | undefined;
  readonly table?: string | undefined;
  readonly column?: string | undefined;
  readonly constraint?: string | undefined;
  readonly position?: string | undefined;
  readonly where?: string | undefined;
}

export class SqlError extends Error {
  override readonly name = 'SqlError';
  /** SQLSTATE: five characters, for instance `23505` for a unique violation. */
  readonly code: string;
  readonly detail: string | undefined;
  readonly hint: string | undefined;
  readonly schema: string | undefined;
  readonly table: string | undefined;
  readonly column: string | undefined;
  readonly constraint: string | undefined;
  readonly position: string | undefined;
  readonly where: string | undefined;

  constructor(fields: SqlErrorFields, cause?: unknown) {
    super(fields.message, cause === undefined ? undefined : { cause });
    this.code = fields.code;
    this.detail = fields.detail;
    this.hint = fields.hint;
    this.schema = fields.schema;
    this.table = fields.table;
    this.column = fields.column;
    this.constraint = fields.constraint;
    this.position = fields.position;
    this.where = fields.where;
  }
}

/** Tells whether Postgres answered with an error; with `codes`, whether it was one of these SQLSTATEs. */
export function isSqlError(error: unknown, ...codes: readonly string[]): error is SqlError {
  return error instanceof SqlError && (codes.length === 0 || codes.includes(error.code));
}
