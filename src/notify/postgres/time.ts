/** The store's clock in SQL. `statement_timestamp()`, because `now()` stands still inside a caller's transaction. */
export function nowSql(parameter: string): string {
  return `coalesce(${parameter}::bigint, floor(extract(epoch from statement_timestamp()) * 1000)::bigint)`;
}
