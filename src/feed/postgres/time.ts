/** The store's clock in SQL. `statement_timestamp()`, because `now()` stands still inside a caller's transaction. */
export function nowSql(parameter: string): string {
  return `coalesce(${parameter}::bigint, floor(extract(epoch from statement_timestamp()) * 1000)::bigint)`;
}

/** The id that the next post would get at this time; the lower 20 bits may be given. */
export function postIdSql(schema: string, timeSql: string, sequenceSql = 'null::bigint'): string {
  return `(greatest(${timeSql}, 953674316407) << 20) | coalesce(${sequenceSql}, nextval('${schema}.post_sequence'))`;
}

export const largestBigint = '9223372036854775807';
