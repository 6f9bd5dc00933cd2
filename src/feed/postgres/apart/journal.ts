/** The journal of what was written outside the database lately, as long as a server may lose it. */
import type { Queryable } from '../../../database/index.js';
import type { Now } from '../../store.js';
import { nowSql } from '../time.js';
import { inDoubt, trustedSql } from './trust.js';

/** Notes that a reader's timeline was filled otherwise than by fan-out; throws `timelines-in-doubt`. */
export function noteReader(schema: string) {
  const insert = `
    with ${trustedSql(schema, '$2')},
    noted as (
      insert into ${schema}.timeline_journal (reader, at) select $1, ${nowSql('$3')} from trust where holds)
    select holds from trust`;
  return async (
    on: Queryable,
    { reader, servers, now }: { reader: string; servers: readonly string[]; now: Now },
  ): Promise<void> => {
    const { rows } = await on.query<{ holds: boolean }>(insert, [reader, servers, now ?? null]);
    if (!rows[0]?.holds) throw inDoubt(servers);
  };
}
