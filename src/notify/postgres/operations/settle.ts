/**
 * Writes down the answer of an attempt and decides what becomes of the delivery, in one statement. An answer whose
 * attempt is no longer the present one moves nothing, unless it says that the message was sent: that is true whoever
 * asks by now. Receipts that came before the answer are joined to it.
 */
import type { Queryable } from '../../../database/index.js';
import type { DeliveryState } from '../../notification.js';
import type { AttemptOutcome } from '../../provider.js';
import type { Now, Settled } from '../../store.js';
import { deadlineOf } from '../deadline-sql.js';
import { receiptRank, receiptRankOf } from '../receipt-rank.js';
import {
  reasonAfterAmbiguous,
  retryAtAfterAmbiguous,
  retryAtAfterDecline,
  stateAfterAmbiguous,
  sweepAt,
} from '../retry-rule.js';
import { nowSql } from '../time.js';

interface SettledRow extends Record<string, unknown> {
  readonly moved: boolean;
  readonly state: DeliveryState;
  readonly reason: string | null;
  readonly retry_in_ms: string | null;
}

export interface SettleInput {
  readonly id: string;
  readonly attempt: number;
  readonly provider: string;
  readonly outcome: AttemptOutcome;
  readonly jitter: number;
  readonly atOnce: boolean;
  readonly sweepMs: number;
  readonly now: Now;
}

export function settle(schema: string) {
  const retryAfterMs = '$6::bigint';
  const jitter = '$7::double precision';
  const text = `
    with clock as materialized (select ${nowSql('$13')} as now),
    r as materialized (
      select d.id, d.notification, d.channel, d.address, d.user_id, d.state, d.claimed_at, d.attempts, d.declines, d.pinned,
        ${deadlineOf(schema)} as expires_at, d.receipt, k.change_provider,
        d.state = 'sending' and d.attempt = $2 as mine,
        k.delivery, k.attempts_max, k.retry_after_ms, k.retry_after_max_ms, k.secret, clock.now
      from ${schema}.deliveries d join ${schema}.kinds k on k.name = d.kind cross join clock
      where d.id = $1 for update of d),
    timed as materialized (
      select r.*, case
          when $4 <> 'not-accepted' then ${retryAtAfterAmbiguous({ jitter, retryAfterMs })}
          -- Once round the providers without a pause.
          when $11::boolean and r.declines % 2 = 0 and (r.pinned is null or r.change_provider) then r.now
          else ${retryAtAfterDecline({ jitter, retryAfterMs })} end as retry_at
      from r),
    ruled as materialized (
      select r.*, case
          when $4 = 'sent' then case when r.state = 'sent' then null else 'sent' end
          when not r.mine then null
          when $4 = 'refused' then 'failed'
          when $4 = 'not-accepted' then case when r.retry_at < r.expires_at then 'waiting' else 'expired' end
          else ${stateAfterAmbiguous('r.retry_at')} end as next
      from timed r),
    early as (
      update ${schema}.receipts set delivery = $1
      where provider = $3 and message_id = $8 and delivery is null and exists (select 1 from r)
      returning status, cost),
    named as (
      insert into ${schema}.provider_messages (provider, message_id, delivery, at)
      select $3, $8, $1, r.now from r where $8::text is not null
      on conflict (provider, message_id) do nothing),
    moved as (
      update ${schema}.deliveries d set
        state = r.next,
        reason = case
          when r.next in ('sent', 'waiting') then null
          when $4 = 'refused' then $5
          when $4 = 'not-accepted' then 'not accepted by the deadline'
          else ${reasonAfterAmbiguous} end,
        attempts = d.attempts - ($4 = 'not-accepted')::integer,
        declines = case $4 when 'not-accepted' then d.declines + 1 else 0 end,
        run_after = case r.next when 'waiting' then r.retry_at else d.run_after end,
        sending_until = null,
        pinned = case when $4 = 'ambiguous' then $3 else d.pinned end,
        message_id = coalesce($8, d.message_id),
        cost = coalesce((select max(cost) from early), $9::double precision, d.cost),
        receipt = ${receiptRankOf(`greatest(${receiptRank('d.receipt')}, (select max(${receiptRank('status')}) from early))`)},
        finished_at = case r.next when 'waiting' then null else r.now end,
        sweep_at = case r.next when 'waiting'
          then ${sweepAt({ runAfter: 'r.retry_at', expiresAt: 'r.expires_at', sweepMs: '$10' })} else d.sweep_at end,
        content = case when r.secret and r.next <> 'waiting' then null else d.content end
      from ruled r where d.id = r.id and r.next is not null),
    erased as (
      update ${schema}.notifications n set salt = null from ruled r
      where n.id = r.notification and r.secret and r.next is not null and r.next <> 'waiting'),
    -- As of the call: a destination that was registered again since then is another one.
    retired as (
      insert into ${schema}.retired as x (channel, address, reason, at)
      select r.channel, r.address, $12, coalesce($14::bigint, r.claimed_at, r.now) from ruled r
      where $12::text is not null and not exists (
        select 1 from ${schema}.destinations e
        where e.user_id = r.user_id and e.channel = r.channel and e.address = r.address
          and e.registered_at > coalesce($14::bigint, r.claimed_at, r.now))
      on conflict (channel, address) do update set reason = excluded.reason, at = greatest(x.at, excluded.at)),
    noted as (
      insert into ${schema}.history (delivery, at, event, attempt, provider, detail)
      select r.id, r.now, case when r.next is null then 'late answer: ' || $4 else $4 end, $2, $3,
        nullif(concat_ws('; ', $5::text, case r.next when 'waiting' then 'again in ' || (r.retry_at - r.now) || ' ms' end), '')
      from ruled r)
    select r.next is not null as moved, coalesce(r.next, r.state) as state,
      case when r.next in ('failed', 'expired', 'ambiguous') then $5::text end as reason,
      case r.next when 'waiting' then r.retry_at - r.now end as retry_in_ms
    from ruled r`;

  return async (on: Queryable, input: SettleInput): Promise<Settled> => {
    const { outcome } = input;
    const retryAfter = 'retryAfterMs' in outcome ? outcome.retryAfterMs : undefined;
    const retire = outcome.kind === 'refused' ? outcome.retire : undefined;
    const { rows } = await on.query<SettledRow>(text, [
      input.id,
      input.attempt,
      input.provider,
      outcome.kind,
      outcome.detail ?? null,
      retryAfter ?? null,
      input.jitter,
      outcome.kind === 'sent' ? (outcome.messageId ?? null) : null,
      outcome.kind === 'sent' ? (outcome.cost ?? null) : null,
      input.sweepMs,
      input.atOnce,
      retire?.reason ?? null,
      input.now ?? null,
      retire?.before ?? null,
    ]);
    const row = rows[0];
    if (!row) return { moved: false, state: 'failed', reason: 'purged', retryInMs: undefined };
    return {
      moved: row.moved,
      state: row.state,
      reason: row.reason ?? undefined,
      retryInMs: row.retry_in_ms === null ? undefined : Math.max(0, Number(row.retry_in_ms)),
    };
  };
}
