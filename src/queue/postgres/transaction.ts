/**
 * A caller's own open transaction, recognised by structure, as something to run one statement on. No driver is loaded
 * for it: pg clients and PGlite transactions, Kysely, Drizzle, Prisma and postgres.js each have a method of their own.
 */
import type { Queryable, QueryResult, Row } from '../../database/index.js';
import { describeValue } from '../../errors.js';
import { queueError } from '../errors.js';

type Method = (...parameters: unknown[]) => Promise<unknown>;

/** Arrays are written as Postgres array literals: the clients disagree on how to pass them, none on text. */
export function arrayLiteral(values: readonly unknown[]): string {
  const elements = values.map((value) => {
    if (value === null || value === undefined) return 'NULL';
    if (typeof value === 'string') return `"${value.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`;
    return String(value);
  });
  return `{${elements.join(',')}}`;
}

const encode = (values: readonly unknown[]): unknown[] =>
  values.map((value) => {
    if (Array.isArray(value)) return arrayLiteral(value);
    return value === undefined
      ? null
      : typeof value === 'number' || typeof value === 'boolean'
        ? String(value)
        : value;
  });

function methodOf(object: Record<string, unknown>, name: string): Method | undefined {
  const method = object[name];
  return typeof method === 'function' ? (method.bind(object) as Method) : undefined;
}

/** Rows come back as an array or as `{ rows }`; int8 as text, number or bigint. */
function resultOf<R extends Row>(answer: unknown): QueryResult<R> {
  const rows = (
    Array.isArray(answer) ? [...answer] : ((answer as { rows?: unknown[] } | null)?.rows ?? [])
  ) as Row[];
  return { rows: rows as R[], rowCount: rows.length };
}

export function transactionQueryable(transaction: unknown): Queryable {
  if (typeof transaction === 'object' || typeof transaction === 'function') {
    const object = transaction as Record<string, unknown> | null;
    const run = object && runnerOf(object);
    if (run)
      return {
        query: async <R extends Row>(text: string, values: readonly unknown[] = []) =>
          resultOf<R>(await run(text, values)),
      };
  }
  const expected =
    'an open transaction of the database, of pg, PGlite, Kysely, Drizzle, Prisma or postgres.js';
  throw queueError(
    'transaction-unsupported',
    `transaction: expected ${expected}, got ${describeValue(transaction)}`,
    {
      field: 'transaction',
      expected,
    },
  );
}

type Run = (text: string, values: readonly unknown[]) => Promise<unknown>;

function runnerOf(object: Record<string, unknown>): Run | undefined {
  if (object['inTransaction'] === true) return methodOf(object, 'query') as Run | undefined;

  const prisma = methodOf(object, '$queryRawUnsafe');
  if (prisma) return (text, values) => prisma(text, ...encode(values));

  const kysely = methodOf(object, 'executeQuery');
  if (kysely) return (text, values) => kysely(compiledQuery(text, encode(values)));

  const postgresJs = methodOf(object, 'unsafe');
  if (postgresJs) return (text, values) => postgresJs(text, encode(values), { prepare: true });

  const drizzle = drizzleSession(object);
  if (drizzle) return (text, values) => drizzle(text, encode(values));

  const query = methodOf(object, 'query');
  if (query) return (text, values) => query(text, encode(values));
  return undefined;
}

/** What Kysely's CompiledQuery.raw makes. */
const compiledQuery = (sql: string, parameters: unknown[]) => ({
  sql,
  parameters,
  query: { kind: 'RawNode', sqlFragments: [sql], parameters: [] },
  queryId: { queryId: 'headgate' },
});

/** A Drizzle transaction keeps its driver's client in its session; a relational `query` property is no method. */
function drizzleSession(object: Record<string, unknown>): Method | undefined {
  const session = object['session'] as { client?: Record<string, unknown> } | undefined;
  const client = session?.client;
  if (!client) return undefined;
  const unsafe = methodOf(client, 'unsafe');
  return unsafe ?? methodOf(client, 'query');
}
