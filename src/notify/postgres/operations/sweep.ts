/**
 * The sweep: settles deliveries whose process died while it sent, and finds those whose wake-up is lost or whose
 * deadline has passed. Rows that somebody holds are skipped; running it again changes nothing more.
 */
import type { Queryable } from '../../../database/index.js';
import type { Priority } from '../../kinds.js';
import type { DeliveryState } from '../../notification.js';
import type { Now, Swept } from '../../store.js';
import { deadlineOf } from '../deadline-sql.js';
import { reasonAfterAmbiguous, retryAtAfterAmbiguous, stateAfterAmbiguous, sweepAt } from '../retry-rule.js';
import { nowSql } from '../time.js';

interface SweptRow extends Record<string, unknown> {
  readonly id: string;
  readonly kind: string;
  readonly route: string;
  readonly state: DeliveryState;
  readonly from_state: DeliveryState;
  readonly priority: Priority;
  readonly run_after: string;
  readonly wake_in_ms: string;
}

export function settleLost(schema: string) {
  const retryAt = retryAtAfterAmbiguous(schema, '$2::double precision');
  const text = `
    with clock as materialized (select ${nowSql('$4')} as now),
    r as materialized (
      select d.id, d.notification, d.kind, d.route, d.attempts, d.attempt, d.provider,
        ${deadlineOf(schema)} as expires_at, k.priority, k.delivery,
        k.attempts_max, k.retry_after_ms, k.retry_after_max_ms, k.secret, clock.now
      from ${schema}.deliveries d join ${schema}.kinds k on k.name = d.kind cross join clock
      where d.state = 'sending' and d.sweep_at <= clock.now
      order by d.sweep_at limit $1 for update of d skip locked),
    ruled as materialized (
      select r.*, ${retryAt} as retry_at, ${stateAfterAmbiguous(schema, retryAt)} as next from r),
    moved as (
      update ${schema}.deliveries d set
        state = r.next,
        reason = case r.next when 'waiting' then null else ${reasonAfterAmbiguous(schema)} end,
        declines = 0,
        pinned = d.provider,
        run_after = case r.next when 'waiting' then r.retry_at else d.run_after end,
        sending_until = null,
        finished_at = case r.next when 'waiting' then null else r.now end,
        sweep_at = case r.next when 'waiting'
          then ${sweepAt(schema, { runAfter: 'r.retry_at', expiresAt: 'r.expires_at', sweepMs: '$3' })} else d.sweep_at end,
        content = case when r.secret and r.next <> 'waiting' then null else d.content end
      from ruled r where d.id = r.id),
    erased as (
      update ${schema}.notifications n set salt = null from ruled r
      where n.id = r.notification and r.secret and r.next <> 'waiting'),
    noted as (
      insert into ${schema}.history (delivery, at, event, attempt, provider, detail)
      select r.id, r.now, 'ambiguous', r.attempt, r.provider, 'no answer was written down in time; now ' || r.next
      from ruled r)
    select r.id, r.kind, r.route, r.next as state, 'sending' as from_state, r.priority, r.retry_at as run_after,
      r.retry_at - r.now as wake_in_ms
    from ruled r`;

  return async (
    on: Queryable,
    input: { limit: number; jitter: number; sweepMs: number; now: Now },
  ): Promise<Swept[]> => {
    const { rows } = await on.query<SweptRow>(text, [
      input.limit,
      input.jitter,
      input.sweepMs,
      input.now ?? null,
    ]);
    return rows.map(sweptOf);
  };
}

export function wakeOverdue(schema: string) {
  const text = `
    with clock as materialized (select ${nowSql('$3')} as now),
    r as materialized (
      select d.id, d.notification, d.kind, d.route, d.run_after, d.created_at, ${deadlineOf(schema)} as expires_at, k.priority,
        k.secret, clock.now, case when ${deadlineOf(schema)} <= clock.now then 'expired' else 'waiting' end as next
      from ${schema}.deliveries d join ${schema}.kinds k on k.name = d.kind cross join clock
      where d.state = 'waiting' and d.sweep_at <= clock.now
      order by d.sweep_at limit $1 for update of d skip locked),
    -- The longer it waits the more seldom it is looked at: a backlog of millions is not woken over and over.
    moved as (
      update ${schema}.deliveries d set
        state = r.next,
        reason = case r.next when 'expired' then 'deadline passed' else d.reason end,
        finished_at = case r.next when 'expired' then r.now end,
        content = case when r.secret and r.next = 'expired' then null else d.content end,
        sweep_at = ${sweepAt(schema, { runAfter: 'greatest(r.run_after, r.now)', expiresAt: 'r.expires_at', sweepMs: 'greatest($2::bigint, r.now - r.created_at)' })}
      from r where d.id = r.id),
    erased as (
      update ${schema}.notifications n set salt = null from r
      where n.id = r.notification and r.secret and r.next = 'expired'),
    noted as (
      insert into ${schema}.history (delivery, at, event, detail)
      select r.id, r.now, 'expired', 'deadline passed' from r where r.next = 'expired')
    select r.id, r.kind, r.route, r.next as state, 'waiting' as from_state, r.priority, r.run_after,
      greatest(0, r.run_after - r.now) as wake_in_ms
    from r`;

  return async (on: Queryable, input: { limit: number; sweepMs: number; now: Now }): Promise<Swept[]> => {
    const { rows } = await on.query<SweptRow>(text, [input.limit, input.sweepMs, input.now ?? null]);
    return rows.map(sweptOf);
  };
}

function sweptOf(row: SweptRow): Swept {
  return {
    id: row.id,
    kind: row.kind,
    route: row.route,
    state: row.state,
    from: row.from_state,
    priority: row.priority,
    runAfter: Number(row.run_after),
    wakeInMs: Math.max(0, Number(row.wake_in_ms)),
  };
}
