/**
 * A schema as the catalog shows it: tables with their columns, keys and indexes, partitions of a day left out. To renew the
 * committed description after a new migration: `HEADGATE_DESCRIBE_SCHEMA=1 npx vitest run test/conformance/queue/storage.test.ts`.
 */
import type { Database } from '../../../src/database/index.js';

interface Line {
  readonly line: string;
}

export async function describeSchema(database: Database, schema: string): Promise<string> {
  const lines = async (sql: string): Promise<string[]> =>
    (await database.query<Line & Record<string, unknown>>(sql, [schema])).rows.map(({ line }) =>
      line.replaceAll(`${schema}.`, ''),
    );
  const tables = await lines(`
    select c.relname as line from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = $1 and c.relkind in ('r', 'p') and not c.relispartition and c.relname <> 'migrations' order by 1`);
  const parts = ['# Tables of the queue on PostgreSQL\n'];
  parts.push('What the migrations in `src/queue/postgres/migrations` make; a test compares the two.\n');
  for (const table of tables) {
    const columns = await lines(`
      select format('| %s | %s | %s |', a.attname, format_type(a.atttypid, a.atttypmod),
        concat_ws(', ', case when a.attnotnull then 'not null' end, 'default ' || pg_get_expr(d.adbin, d.adrelid))) as line
      from pg_attribute a join pg_class c on c.oid = a.attrelid join pg_namespace n on n.oid = c.relnamespace
        left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
      where n.nspname = $1 and c.relname = '${table}' and a.attnum > 0 and not a.attisdropped order by a.attnum`);
    const indexes = await lines(`
      select '- ' || regexp_replace(i.indexdef, 'CREATE (UNIQUE )?INDEX (\\S+) ON (ONLY )?\\S+ USING btree', '\`\\2\` \\1') as line
      from pg_indexes i where i.schemaname = $1 and i.tablename = '${table}' order by 1`);
    parts.push(`## ${table}\n`, `| column | type | |\n|---|---|---|\n${columns.join('\n')}\n`);
    if (indexes.length > 0) parts.push(`${indexes.join('\n')}\n`);
  }
  return parts.join('\n');
}
