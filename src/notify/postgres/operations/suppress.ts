/** Ends deliveries that wait: canceled, superseded, digested or switched off. What is being sent keeps its outcome. */
import type { Queryable } from '../../../database/index.js';
import type { Now, WaitingSelection } from '../../store.js';
import { nowSql } from '../time.js';

export function suppressWaiting(schema: string) {
  const text = `
    with clock as materialized (select ${nowSql('$7')} as now),
    r as materialized (
      select d.id, d.notification, k.secret, clock.now
      from ${schema}.deliveries d
      join ${schema}.notifications n on n.id = d.notification
      join ${schema}.kinds k on k.name = d.kind cross join clock
      where d.user_id = $1 and d.kind = $2 and d.state = 'waiting'
        and ($3::text is null or n.key = $3) and ($4::text is null or n.purpose = $4) and n.id is distinct from $5
      order by d.id for update of d),
    moved as (
      update ${schema}.deliveries d set state = 'suppressed', reason = $6, finished_at = r.now,
        content = case when r.secret then null else d.content end
      from r where d.id = r.id),
    erased as (
      update ${schema}.notifications n set salt = null from r where n.id = r.notification and r.secret),
    noted as (
      insert into ${schema}.history (delivery, at, event, detail) select r.id, r.now, 'suppressed', $6 from r)
    select id from r`;

  return async (
    on: Queryable,
    { selection, reason, now }: { selection: WaitingSelection; reason: string; now: Now },
  ): Promise<string[]> => {
    const { rows } = await on.query<{ id: string }>(text, [
      selection.user,
      selection.kind,
      selection.key ?? null,
      selection.purpose ?? null,
      selection.exceptNotification ?? null,
      reason,
      now ?? null,
    ]);
    return rows.map(({ id }) => id);
  };
}
