/**
 * Forgets what has been kept for long enough, in bounded steps: notifications whose key has run out, old receipts, and what
 * no limit counts any more.
 */
import type { HousekeepingStore } from '../../store.js';
import { nowSql } from '../time.js';

export function purge(schema: string): HousekeepingStore['purge'] {
  const text = `
    with clock as materialized (select ${nowSql('$3')} as now),
    old as materialized (
      select n.id from ${schema}.notifications n, clock
      where n.kept_until <= clock.now and not exists (
        select 1 from ${schema}.deliveries d where d.notification = n.id and d.state in ('waiting', 'sending'))
      order by n.kept_until limit $1 for update of n skip locked),
    lines as (
      delete from ${schema}.history h using ${schema}.deliveries d, old
      where d.notification = old.id and h.delivery = d.id),
    names as (
      delete from ${schema}.provider_messages m using ${schema}.deliveries d, old
      where d.notification = old.id and m.delivery = d.id),
    digests as (
      delete from ${schema}.digests where id in (
        select g.id from ${schema}.digests g, clock
        where g.state = 'closed' and g.closes_at < clock.now - $2::bigint limit $1)),
    counts as (
      delete from ${schema}.recent_sends where (kind, subject) in (
        select s.kind, s.subject from ${schema}.recent_sends s, clock
        where s.kept_until <= clock.now order by s.kept_until limit $1 for update of s skip locked)),
    heads as (delete from ${schema}.notifications n using old where n.id = old.id returning 1),
    receipts as (
      delete from ${schema}.receipts where seq in (
        select r.seq from ${schema}.receipts r, clock where r.at < clock.now - $2::bigint order by r.at limit $1)
      returning 1)
    select (select count(*) from heads) + (select count(*) from receipts) as count`;

  return async (on, { limit, receiptsKeptMs, now }) => {
    const { rows } = await on.query<{ count: string }>(text, [limit, receiptsKeptMs, now ?? null]);
    return Number(rows[0]?.count ?? 0);
  };
}
