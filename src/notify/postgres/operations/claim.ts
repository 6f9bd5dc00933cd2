/**
 * Takes a delivery for sending: of many that ask at once, one gets it. In the same statement everything is asked again
 * that may have changed since the door: deadline, preferences, retired destinations, paused campaigns.
 */
import type { Queryable } from '../../../database/index.js';
import type { JsonObject, Channel, Content, DeliveryState } from '../../notification.js';
import type { Priority } from '../../kinds.js';
import type { Claim, Now } from '../../store.js';
import { deadlineOf, pausedPollMs } from '../deadline-sql.js';
import { isEnabled } from '../preference-sql.js';
import { nowSql } from '../time.js';

interface ClaimRow extends Record<string, unknown> {
  readonly verdict: 'claimed' | 'later' | 'expired' | 'suppressed' | 'ended';
  readonly state: DeliveryState;
  readonly notification: string;
  readonly user_id: string;
  readonly kind: string;
  readonly channel: Channel;
  readonly address: string;
  readonly details: string | null;
  readonly content: string | null;
  readonly priority: Priority;
  readonly attempt: number;
  readonly attempts: number;
  readonly created_at: string;
  readonly time_left_ms: string;
  readonly waited_ms: string;
  readonly later_ms: string;
  readonly chosen: string;
  readonly time_zone: string | null;
  readonly quiet_from: number | null;
  readonly quiet_until: number | null;
  readonly pinned: string | null;
}

export interface ClaimInput {
  readonly id: string;
  readonly provider: string;
  readonly alternative: string | undefined;
  readonly timeoutMs: number;
  readonly marginMs: number;
  readonly now: Now;
}

export function claim(schema: string) {
  const text = `
    with clock as materialized (select ${nowSql('$5')} as now),
    held as materialized (
      select d.id, d.notification, d.user_id, d.kind, d.channel, d.address, d.details, d.content, d.state, d.attempt,
        d.attempts, d.pinned, d.run_after, d.sending_until, ${deadlineOf(schema)} as expires_at,
        d.created_at, d.campaign, k.priority, k.required,
        k.secret, u.time_zone, u.quiet_from, u.quiet_until,
        case
          -- What the first one has just declined goes to the other one, and then back.
          when d.pinned is null and d.declines % 2 = 1 and d.provider = $2 then coalesce($6, $2)
          when d.pinned is null then $2
          when not k.change_provider then d.pinned
          when d.pinned = $2 then coalesce($6, $2)
          else $2 end as chosen,
        clock.now
      from ${schema}.deliveries d join ${schema}.kinds k on k.name = d.kind
      left join ${schema}.users u on u.user_id = d.user_id cross join clock
      where d.id = $1 for update of d),
    asked as materialized (
      select h.*, case
          when h.state <> 'waiting' or h.run_after > h.now then null
          when h.content is null then 'no content'
          when exists (select 1 from ${schema}.campaigns c where c.id = h.campaign and c.state = 'canceled')
            then 'campaign canceled'
          when not h.required and not ${isEnabled(schema, 'h')} then 'switched off by the user'
          else (
            select 'destination retired: ' || r.reason from ${schema}.retired r
            where r.channel = h.channel and r.address = h.address and not exists (
              select 1 from ${schema}.destinations x where x.user_id = h.user_id and x.channel = h.channel
                and x.address = h.address and x.registered_at > r.at)) end as against
      from held h),
    reasoned as materialized (
      select a.*, case when a.state = 'waiting' and a.expires_at <= a.now then 'deadline passed' else a.against end as reason,
        case
          when a.state not in ('waiting', 'sending') then 'ended'
          when a.state = 'sending' then 'later'
          when a.expires_at <= a.now then 'expired'
          when a.run_after > a.now then 'later'
          when a.against is not null then 'suppressed'
          when exists (select 1 from ${schema}.campaigns c where c.id = a.campaign and c.state = 'paused') then 'later'
          else 'claimed' end as verdict
      from asked a),
    moved as (
      update ${schema}.deliveries d set
        state = case r.verdict when 'claimed' then 'sending' else r.verdict end,
        reason = r.reason,
        provider = case r.verdict when 'claimed' then r.chosen else d.provider end,
        attempt = d.attempt + (r.verdict = 'claimed')::integer,
        attempts = d.attempts + (r.verdict = 'claimed')::integer,
        claimed_at = r.now,
        sending_until = case r.verdict when 'claimed' then r.now + least($3::bigint, r.expires_at - r.now) + $4::bigint end,
        sweep_at = r.now + least($3::bigint, r.expires_at - r.now) + $4::bigint,
        finished_at = case r.verdict when 'claimed' then null else r.now end,
        content = case when r.verdict <> 'claimed' and r.secret then null else d.content end
      from reasoned r where d.id = r.id and r.verdict in ('claimed', 'expired', 'suppressed')),
    erased as (
      update ${schema}.notifications n set salt = null from reasoned r
      where n.id = r.notification and r.secret and r.verdict in ('expired', 'suppressed')),
    noted as (
      insert into ${schema}.history (delivery, at, event, attempt, provider, detail)
      select r.id, r.now, case r.verdict when 'claimed' then 'sending' else r.verdict end,
        r.attempt + (r.verdict = 'claimed')::integer, case r.verdict when 'claimed' then r.chosen end, r.reason
      from reasoned r where r.verdict in ('claimed', 'expired', 'suppressed'))
    select r.verdict, r.state, r.notification, r.user_id, r.kind, r.channel, r.address, r.details, r.content, r.priority,
      r.attempt, r.attempts, r.created_at, r.chosen, r.pinned, r.time_zone,
      r.quiet_from, r.quiet_until, r.expires_at - r.now as time_left_ms, r.now - r.run_after as waited_ms,
      case r.state when 'sending' then r.sending_until - r.now
        else case when r.run_after > r.now then r.run_after - r.now else ${pausedPollMs} end end as later_ms
    from reasoned r`;

  return async (on: Queryable, input: ClaimInput): Promise<Claim> => {
    const { rows } = await on.query<ClaimRow>(text, [
      input.id,
      input.provider,
      input.timeoutMs,
      input.marginMs,
      input.now ?? null,
      input.alternative ?? null,
    ]);
    return claimOf(input.id, rows[0]);
  };
}

function claimOf(id: string, row: ClaimRow | undefined): Claim {
  if (!row) return { kind: 'unknown' };
  if (row.verdict === 'later') return { kind: 'later', afterMs: Math.max(1, Number(row.later_ms)) };
  if (row.verdict !== 'claimed') {
    const moved = row.verdict !== 'ended';
    const state = row.verdict === 'ended' ? row.state : row.verdict;
    return { kind: 'ended', state, kindName: row.kind, moved };
  }
  return {
    kind: 'claimed',
    attempt: row.attempt + 1,
    timeLeftMs: Number(row.time_left_ms),
    waitedMs: Number(row.waited_ms),
    provider: row.chosen,
    knowingDuplicate: row.pinned !== null && row.pinned !== row.chosen,
    delivery: {
      id,
      notification: row.notification,
      user: row.user_id,
      kind: row.kind,
      destination: {
        channel: row.channel,
        address: row.address,
        ...(row.details !== null && { details: JSON.parse(row.details) as JsonObject }),
      },
      content: JSON.parse(row.content as string) as Content,
      createdAt: Number(row.created_at),
      attempts: row.attempts + 1,
      priority: row.priority,
      timeZone: row.time_zone ?? undefined,
      quiet: quietOf(row),
    },
  };
}

function quietOf({
  quiet_from: from,
  quiet_until: until,
}: ClaimRow): { from: number; until: number } | undefined {
  return from === null || until === null ? undefined : { from, until };
}
