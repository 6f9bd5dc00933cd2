-- Many deliveries in one statement: taken for sending, and settled. A list drives the look-ups (lateral, with a lock or a
-- limit) and rows that are locked are found again by ctid, so that no plan depends on what the planner believes of a table
-- that is empty in one minute and holds millions in the next. Rows are locked in the order of their ids. One that somebody
-- holds is skipped and has no row in the answer: it is tried again alone, with `p_wait`.

-- What becomes of a delivery by what is known after an attempt: one text for the answer of a provider and for the sweep,
-- so that a process that died and one that lived decide alike.

-- Doubles with each attempt up to the kind's longest pause; up to a fifth more by `jitter`.
create function {{schema}}.retry_at_after_ambiguous(
  t bigint, attempts integer, retry_after_ms bigint, retry_after_max_ms bigint, asked_ms bigint, jitter double precision
) returns bigint language sql immutable
return t + greatest(coalesce(asked_ms, 0),
  least(retry_after_max_ms, retry_after_ms * power(2, least(attempts - 1, 30))) * (1 + jitter * 0.2))::bigint;

-- Nothing was sent, so the pause begins short (at most 1 s) and doubles while nothing is accepted. What the provider asks
-- for is obeyed, and the return is spread over two fifths of it, so that they do not all come back at once.
create function {{schema}}.retry_at_after_decline(
  t bigint, declines integer, retry_after_ms bigint, retry_after_max_ms bigint, asked_ms bigint, jitter double precision
) returns bigint language sql immutable
return t + greatest(coalesce(asked_ms * (1 + jitter * 0.4), 0),
  least(retry_after_max_ms, least(retry_after_ms, 1000) * power(2, least(declines, 30))) * (1 + jitter * 0.5))::bigint;

create function {{schema}}.state_after_ambiguous(
  delivery text, attempts integer, attempts_max integer, t bigint, expires_at bigint, retry_at bigint
) returns text language sql immutable
return case
  when delivery = 'at-most-once' then 'ambiguous'
  when t >= expires_at then 'expired'
  when attempts >= attempts_max then 'failed'
  when retry_at >= expires_at then 'expired'
  else 'waiting' end;

create function {{schema}}.reason_after_ambiguous(
  delivery text, attempts integer, attempts_max integer, t bigint, expires_at bigint
) returns text language sql immutable
return case
  when delivery = 'at-most-once' then 'nobody knows whether it arrived, and it is sent at most once'
  when t >= expires_at then 'deadline passed'
  when attempts >= attempts_max then 'attempts used up'
  else 'the next attempt would come after the deadline' end;

-- When the sweep looks at a row that waits: after its wake-up must have come, and not after its deadline.
create function {{schema}}.sweep_at(run_after bigint, expires_at bigint, sweep_ms bigint)
returns bigint language sql immutable
return greatest(run_after, least(expires_at, run_after + sweep_ms));

-- Takes deliveries for sending: of many that ask at once, one gets each. Everything is asked again that may have changed
-- since the door: deadline, preferences, retired destinations, paused campaigns.
create function {{schema}}.claim(
  p_ids text[], p_providers text[], p_alternatives text[], p_timeouts_ms bigint[], p_margin_ms bigint, p_wait boolean,
  p_now bigint
) returns table (
  id text, verdict text, state text, notification text, user_id text, kind text, channel text, address text, details text,
  content text, priority text, attempt integer, attempts integer, created_at bigint, chosen text, pinned text,
  time_zone text, quiet_from integer, quiet_until integer, time_left_ms bigint, waited_ms bigint, later_ms bigint
)
language plpgsql
set plan_cache_mode = force_generic_plan set jit = off set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  t bigint := coalesce(p_now, floor(extract(epoch from statement_timestamp()) * 1000)::bigint);
begin
  if p_wait then perform 1 from {{schema}}.deliveries d where d.id = any(p_ids) order by d.id for update; end if;

  return query
  with held as materialized (
    select d.*, x.provider as asked, x.alternative, x.timeout_ms, k.priority, k.required, k.secret, k.change_provider,
      u.time_zone, u.quiet_from, u.quiet_until,
      d.expires_at + coalesce(c.paused_ms + case c.state when 'paused' then t - c.paused_at else 0 end, 0) as ends_at,
      c.state as campaign_state
    from (
      select * from unnest(p_ids, p_providers, p_alternatives, p_timeouts_ms) as x(id, provider, alternative, timeout_ms)
      order by x.id
    ) x cross join lateral (
      select d.ctid as place, d.id, d.notification, d.user_id, d.kind, d.channel, d.address, d.details, d.content, d.state,
        d.attempt, d.attempts, d.declines, d.provider, d.pinned, d.run_after, d.sending_until, d.expires_at, d.created_at, d.campaign
      from {{schema}}.deliveries d where d.id = x.id limit 1 for update skip locked
    ) d cross join lateral (
      select k.priority, k.required, k.secret, k.change_provider from {{schema}}.kinds k where k.name = d.kind limit 1
    ) k left join lateral (
      select u.time_zone, u.quiet_from, u.quiet_until from {{schema}}.users u where u.user_id = d.user_id limit 1
    ) u on true left join lateral (
      select c.state, c.paused_ms, c.paused_at from {{schema}}.campaigns c where c.id = d.campaign limit 1
    ) c on true
  ), asked as materialized (
    select h.*,
      case
        -- What the first one has just declined goes to the other one, and then back.
        when h.pinned is null and h.declines % 2 = 1 and h.provider = h.asked then coalesce(h.alternative, h.asked)
        when h.pinned is null then h.asked
        when not h.change_provider then h.pinned
        when h.pinned = h.asked then coalesce(h.alternative, h.asked)
        else h.asked end as chosen,
      case
        when h.state <> 'waiting' or h.run_after > t then null
        when h.content is null then 'no content'
        when h.campaign_state = 'canceled' then 'campaign canceled'
        when not h.required and not coalesce((
          select p.enabled from {{schema}}.preferences p
          where p.user_id = h.user_id and p.kind in (h.kind, '*') and p.channel in (h.channel, '*')
          order by p.kind <> '*' desc, p.channel <> '*' desc limit 1), true) then 'switched off by the user'
        else (
          select 'destination retired: ' || r.reason from {{schema}}.retired r
          where r.channel = h.channel and r.address = h.address and not exists (
            select from {{schema}}.destinations e where e.user_id = h.user_id and e.channel = h.channel
              and e.address = h.address and e.registered_at > r.at)
          limit 1) end as against
    from held h
  ), reasoned as materialized (
    select a.*, case when a.state = 'waiting' and a.ends_at <= t then 'deadline passed' else a.against end as reason,
      case
        when a.state not in ('waiting', 'sending') then 'ended'
        when a.state = 'sending' then 'later'
        when a.ends_at <= t then 'expired'
        when a.run_after > t then 'later'
        when a.against is not null then 'suppressed'
        when a.campaign_state = 'paused' then 'later'
        else 'claimed' end as verdict
    from asked a
  ), moved as (
    update {{schema}}.deliveries d set
      state = case r.verdict when 'claimed' then 'sending' else r.verdict end,
      reason = r.reason,
      provider = case r.verdict when 'claimed' then r.chosen else d.provider end,
      attempt = d.attempt + (r.verdict = 'claimed')::integer,
      attempts = d.attempts + (r.verdict = 'claimed')::integer,
      claimed_at = t,
      sending_until = case r.verdict when 'claimed' then t + least(r.timeout_ms, r.ends_at - t) + p_margin_ms end,
      sweep_at = t + least(r.timeout_ms, r.ends_at - t) + p_margin_ms,
      finished_at = case r.verdict when 'claimed' then null else t end,
      content = case when r.verdict <> 'claimed' and r.secret then null else d.content end
    from reasoned r where d.ctid = r.place and r.verdict in ('claimed', 'expired', 'suppressed')
    returning d.id
  ), changed as materialized (
    select r.* from reasoned r where r.id in (select m.id from moved m)
  ), emptied as materialized (
    select distinct c.notification from changed c where c.secret and c.verdict in ('expired', 'suppressed')
  ), erased as (
    update {{schema}}.notifications x set salt = null
    from (
      select n.place from (select e.notification from emptied e order by 1) e cross join lateral (
        select n.ctid as place from {{schema}}.notifications n where n.id = e.notification limit 1 for update
      ) n
    ) n where x.ctid = n.place
  ), noted as (
    insert into {{schema}}.history (delivery, at, event, attempt, provider, detail)
    select c.id, t, case c.verdict when 'claimed' then 'sending' else c.verdict end,
      c.attempt + (c.verdict = 'claimed')::integer, case c.verdict when 'claimed' then c.chosen end, c.reason
    from changed c
  )
  select r.id, r.verdict, r.state, r.notification, r.user_id, r.kind, r.channel, r.address, r.details, r.content, r.priority,
    r.attempt, r.attempts, r.created_at, r.chosen, r.pinned, r.time_zone, r.quiet_from, r.quiet_until,
    r.ends_at - t, t - r.run_after,
    case when r.state = 'sending' then r.sending_until - t when r.run_after > t then r.run_after - t else 2000 end
  from reasoned r where r.verdict in ('ended', 'later') or r.id in (select m.id from moved m);
end $$;

-- Writes down the answers of attempts and decides what becomes of the deliveries. An answer whose attempt is no longer the
-- present one moves nothing, unless it says that the message was sent: that is true whoever asks by now. Receipts that
-- came before the answer are joined to it.
create function {{schema}}.settle(
  p_ids text[], p_attempts integer[], p_providers text[], p_outcomes text[], p_details text[], p_retry_after_ms bigint[],
  p_jitters double precision[], p_message_ids text[], p_costs double precision[], p_at_once boolean[], p_retire text[],
  p_retire_before bigint[], p_sweep_ms bigint, p_wait boolean, p_now bigint
) returns table (id text, moved boolean, state text, reason text, retry_in_ms bigint)
language plpgsql
set plan_cache_mode = force_generic_plan set jit = off set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  t bigint := coalesce(p_now, floor(extract(epoch from statement_timestamp()) * 1000)::bigint);
  statuses constant text[] := array['none', 'queued', 'sent', 'undelivered', 'delivered'];
begin
  if p_wait then perform 1 from {{schema}}.deliveries d where d.id = any(p_ids) order by d.id for update; end if;

  return query
  with held as materialized (
    select d.*, x.this_attempt, x.by_provider, x.outcome, x.detail, x.asked_ms, x.jitter, x.message, x.cost_now, x.at_once,
      x.retire, x.retire_before, k.delivery, k.attempts_max, k.retry_after_ms, k.retry_after_max_ms, k.secret,
      k.change_provider, d.state = 'sending' and d.attempt = x.this_attempt as mine,
      d.expires_at + coalesce(c.paused_ms + case c.state when 'paused' then t - c.paused_at else 0 end, 0) as ends_at
    from (
      select * from unnest(p_ids, p_attempts, p_providers, p_outcomes, p_details, p_retry_after_ms, p_jitters, p_message_ids,
          p_costs, p_at_once, p_retire, p_retire_before)
        as x(id, this_attempt, by_provider, outcome, detail, asked_ms, jitter, message, cost_now, at_once, retire, retire_before)
      order by x.id
    ) x cross join lateral (
      select d.ctid as place, d.id, d.notification, d.kind, d.channel, d.address, d.user_id, d.state, d.claimed_at, d.attempt,
        d.attempts, d.declines, d.pinned, d.expires_at, d.campaign
      from {{schema}}.deliveries d where d.id = x.id limit 1 for update skip locked
    ) d cross join lateral (
      select k.delivery, k.attempts_max, k.retry_after_ms, k.retry_after_max_ms, k.secret, k.change_provider
      from {{schema}}.kinds k where k.name = d.kind limit 1
    ) k left join lateral (
      select c.state, c.paused_ms, c.paused_at from {{schema}}.campaigns c where c.id = d.campaign limit 1
    ) c on true
  ), timed as materialized (
    select h.*, case
        when h.outcome <> 'not-accepted' then {{schema}}.retry_at_after_ambiguous(
          t, h.attempts, h.retry_after_ms, h.retry_after_max_ms, h.asked_ms, h.jitter)
        -- Once round the providers without a pause.
        when h.at_once and h.declines % 2 = 0 and (h.pinned is null or h.change_provider) then t
        else {{schema}}.retry_at_after_decline(
          t, h.declines, h.retry_after_ms, h.retry_after_max_ms, h.asked_ms, h.jitter) end as retry_at
    from held h
  ), ruled as materialized (
    select r.*, case
        when r.outcome = 'sent' then case when r.state = 'sent' then null else 'sent' end
        when not r.mine then null
        when r.outcome = 'refused' then 'failed'
        when r.outcome = 'not-accepted' then case when r.retry_at < r.ends_at then 'waiting' else 'expired' end
        else {{schema}}.state_after_ambiguous(r.delivery, r.attempts, r.attempts_max, t, r.ends_at, r.retry_at) end as next
    from timed r
  ), early as materialized (
    select r.id, e.place, e.status, e.cost from ruled r cross join lateral (
      -- Those that retire an address are left to the sweep, which takes a receipt whole.
      select e.ctid as place, e.status, e.cost from {{schema}}.receipts e
      where e.provider = r.by_provider and e.message_id = r.message and e.delivery is null and e.retire is null
      for update skip locked
    ) e where r.message is not null
  ), moved as (
    update {{schema}}.deliveries d set
      state = r.next,
      reason = case
        when r.next in ('sent', 'waiting') then null
        when r.outcome = 'refused' then r.detail
        when r.outcome = 'not-accepted' then 'not accepted by the deadline'
        else {{schema}}.reason_after_ambiguous(r.delivery, r.attempts, r.attempts_max, t, r.ends_at) end,
      attempts = d.attempts - (r.outcome = 'not-accepted')::integer,
      declines = case r.outcome when 'not-accepted' then d.declines + 1 else 0 end,
      run_after = case r.next when 'waiting' then r.retry_at else d.run_after end,
      sending_until = null,
      pinned = case when r.outcome = 'ambiguous' then r.by_provider else d.pinned end,
      message_id = coalesce(r.message, d.message_id),
      cost = coalesce((select max(e.cost) from early e where e.id = r.id), r.cost_now, d.cost),
      receipt = statuses[greatest(coalesce(array_position(statuses, d.receipt), 1),
        (select max(array_position(statuses, e.status)) from early e where e.id = r.id))],
      finished_at = case r.next when 'waiting' then null else t end,
      sweep_at = case r.next when 'waiting' then {{schema}}.sweep_at(r.retry_at, r.ends_at, p_sweep_ms) else d.sweep_at end,
      content = case when r.secret and r.next <> 'waiting' then null else d.content end
    from ruled r where d.ctid = r.place and r.next is not null
    returning d.id
  ), answered as materialized (
    -- Without those that were changed between the look and the lock: they are busy.
    select r.* from ruled r where r.next is null or r.id in (select m.id from moved m)
  ), joined as (
    update {{schema}}.receipts x set delivery = e.id
    from early e where x.ctid = e.place and e.id in (select a.id from answered a)
  ), named as (
    insert into {{schema}}.provider_messages (provider, message_id, delivery, at)
    select a.by_provider, a.message, a.id, t from answered a where a.message is not null order by 1, 2
    on conflict (provider, message_id) do nothing
  ), emptied as materialized (
    select distinct a.notification from answered a where a.secret and a.next <> 'waiting'
  ), erased as (
    update {{schema}}.notifications x set salt = null
    from (
      select n.place from (select e.notification from emptied e order by 1) e cross join lateral (
        select n.ctid as place from {{schema}}.notifications n where n.id = e.notification limit 1 for update
      ) n
    ) n where x.ctid = n.place
  ), retired as (
    -- As of the call: a destination that was registered again since then is another one.
    insert into {{schema}}.retired as x (channel, address, reason, at)
    select distinct on (a.channel, a.address) a.channel, a.address, a.retire, coalesce(a.retire_before, a.claimed_at, t)
    from answered a where a.retire is not null and not exists (
      select from {{schema}}.destinations e
      where e.user_id = a.user_id and e.channel = a.channel and e.address = a.address
        and e.registered_at > coalesce(a.retire_before, a.claimed_at, t))
    order by a.channel, a.address, coalesce(a.retire_before, a.claimed_at, t) desc
    on conflict (channel, address) do update set reason = excluded.reason, at = greatest(x.at, excluded.at)
  ), noted as (
    insert into {{schema}}.history (delivery, at, event, attempt, provider, detail)
    select a.id, t, case when a.next is null then 'late answer: ' || a.outcome else a.outcome end, a.this_attempt,
      a.by_provider,
      nullif(concat_ws('; ', a.detail, case a.next when 'waiting' then 'again in ' || (a.retry_at - t) || ' ms' end), '')
    from answered a
  )
  select a.id, a.next is not null, coalesce(a.next, a.state),
    case when a.next in ('failed', 'expired', 'ambiguous') then a.detail end,
    case a.next when 'waiting' then a.retry_at - t end
  from answered a;
end $$;
