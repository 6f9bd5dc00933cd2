/**
 * The log port. Parts write to it and never know the library behind; the command line binds pino. The first argument
 * holds the ids a reader needs, the second says what happened. Nothing secret goes in.
 */
export type LogFields = Readonly<Record<string, unknown>>;

export interface Log {
  debug(fields: LogFields, message: string): void;
  info(fields: LogFields, message: string): void;
  warn(fields: LogFields, message: string): void;
  error(fields: LogFields, message: string): void;
}

const nothing = () => {};

/** Says nothing; the default of the library. */
export const silentLog: Log = { debug: nothing, info: nothing, warn: nothing, error: nothing };
