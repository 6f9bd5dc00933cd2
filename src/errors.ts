/**
 * The one error type of the house and how a part declares its codes. Guarantees: every thrown Headgate error
 * carries a stable `code`, the HTTP status it maps to, and the field, value and expectation where input was at fault.
 */

/** One row of a part's error table: HTTP status and what the code means, in one sentence for the reference. */
export interface ErrorDefinition {
  readonly status: number;
  readonly meaning: string;
}

export type ErrorTable<Code extends string = string> = Readonly<Record<Code, ErrorDefinition>>;

/** What a reader of the error needs beside its code. `field`, `value` and `expected` name bad input. */
export interface ErrorDetails {
  readonly field?: string;
  readonly value?: unknown;
  readonly expected?: string;
  readonly cause?: unknown;
  /** Ids of the things concerned (queue, message, account, …). */
  readonly ids?: Readonly<Record<string, string>>;
  /** For what is refused only for now: when it may be tried again. */
  readonly retryAfterMs?: number;
}

const valueCharactersMax = 120;

/** Shows a value in an error text: short, safe to print, never throwing. */
export function describeValue(value: unknown): string {
  let text: string | undefined;
  try {
    text = typeof value === 'bigint' ? `${value}n` : Number.isNaN(value) ? 'NaN' : JSON.stringify(value);
    if (typeof value === 'number' && !Number.isFinite(value)) text = String(value);
  } catch {
    text = undefined;
  }
  text ??= String(value);
  return text.length > valueCharactersMax
    ? `${text.slice(0, valueCharactersMax)}… (${text.length} characters)`
    : text;
}

export class HeadgateError extends Error {
  override readonly name = 'HeadgateError';
  readonly code: string;
  readonly status: number;
  readonly field: string | undefined;
  readonly value: unknown;
  readonly expected: string | undefined;
  readonly ids: Readonly<Record<string, string>>;
  readonly retryAfterMs: number | undefined;

  constructor(code: string, status: number, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.code = code;
    this.status = status;
    this.field = details.field;
    this.value = details.value;
    this.expected = details.expected;
    this.ids = details.ids ?? {};
    this.retryAfterMs = details.retryAfterMs;
  }
}

export function isHeadgateError(error: unknown, code?: string): error is HeadgateError {
  return error instanceof HeadgateError && (code === undefined || error.code === code);
}

/**
 * Makes the constructor of a part's errors out of its table, so that a code that is not in the table cannot be thrown.
 *
 * @example
 * export const queueErrors = { 'lease-lost': { status: 409, meaning: 'The lease is not held by this token.' } } as const;
 * export const queueError = errorFactory(queueErrors);
 * throw queueError('lease-lost', 'lease of message "a" is lost', { ids: { message: 'a' } });
 */
export function errorFactory<Code extends string>(table: ErrorTable<Code>) {
  return (code: Code, message: string, details?: ErrorDetails): HeadgateError =>
    new HeadgateError(code, table[code].status, message, details);
}

/** Codes that every part may use. */
export const groundErrors = {
  'invalid-input': {
    status: 422,
    meaning: 'A value is not what was expected; the error names the field, the value and the expectation.',
  },
  'transaction-misuse': {
    status: 500,
    meaning:
      'The database was called from inside a transaction past its handle, or a transaction handle after its end.',
  },
  'database-busy': { status: 503, meaning: 'No database connection became free within the bound.' },
  'database-closed': { status: 503, meaning: 'The database was used after it was closed.' },
  'database-unavailable': { status: 503, meaning: 'The database cannot be reached.' },
  'database-newer': {
    status: 500,
    meaning: 'A newer version of Headgate has migrated this database; this version refuses it.',
  },
  'migration-changed': {
    status: 500,
    meaning: 'A migration that was applied differs from the file of this version.',
  },
  'folder-locked': { status: 409, meaning: 'Another process holds the data folder.' },
  'driver-missing': {
    status: 500,
    meaning: 'A driver is not installed; the error gives the command that installs it.',
  },
  stopped: { status: 503, meaning: 'The component has been stopped and takes no more work.' },
} as const satisfies ErrorTable;

export const groundError = errorFactory(groundErrors);

/** Refuses bad input by name: field, value and what was expected. */
export function invalidInput(field: string, value: unknown, expected: string): HeadgateError {
  return groundError('invalid-input', `${field}: expected ${expected}, got ${describeValue(value)}`, {
    field,
    value,
    expected,
  });
}
