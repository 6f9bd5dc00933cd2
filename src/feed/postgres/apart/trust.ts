/** What a change outside the database is marked with: only servers that are trusted count, and stay so until the commit. */
import { feedError } from '../../errors.js';

/** A CTE that holds the rows of trusted servers among those of a parameter. */
export function trustedSql(schema: string, parameter: string): string {
  return `
    trusted as (
      select id from ${schema}.timeline_servers where id = any(${parameter}::text[]) order by id for key share),
    trust as (select count(*) = cardinality(${parameter}::text[]) as holds from trusted)`;
}

export function inDoubt(servers: readonly string[]): Error {
  return feedError(
    'timelines-in-doubt',
    `timelines: what was written to ${servers.join(', ')} does not count; these are no servers of this feed now`,
  );
}
