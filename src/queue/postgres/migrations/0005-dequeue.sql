-- Hands out the best messages of a queue to one request, or to several that have come at the same time, each its own:
-- `p_counts` and the other arrays run side by side. In order: what is due is moved first; a request that is repeated gets
-- the leases it still holds (the lock keeps two of the same request apart); an empty answer has written nothing. `place`
-- is that of the request; a row without a seq says that its request was not looked at and has to come alone: the locks of
-- an exclusive queue and of a rate limit are held for one request at a time. What is as usual is not told, for every value
-- has its price on both sides: of a message that is handed out now a null stands for place 1, a priority and a visible_at
-- that are the time of enqueue, attempt 1 of 3, version 2, and the lease that the request brings. The order is left to
-- whoever asked.
create function {{schema}}.dequeue(
  p_queue text, p_counts integer[], p_where jsonb, p_lease_ms bigint[], p_requests text[], p_nonces text[], p_workers text[],
  p_now bigint
) returns table (
  place integer, seq bigint, id text, payload text, metadata text, priority bigint, attempts integer, attempts_max integer,
  visible_at bigint, lease_until bigint, version bigint, enqueued_at bigint, started_at bigint, lease text, trace text, error text
)
language plpgsql
set plan_cache_mode = force_generic_plan set jit = off set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  q {{schema}}.queues;
  t bigint := coalesce(p_now, floor(extract(epoch from statement_timestamp()) * 1000)::bigint);
  tids tid[];
  mark {{schema}}.marks;
  dip {{schema}}.dips;
  is_fresh boolean := true;
  began timestamptz := clock_timestamp();
  wanted integer := p_counts[1];
  owners integer[];
  seqs bigint[];
  versions bigint[];
  spent integer[];
  first_seq bigint;
  last_seq bigint;
  alike boolean;
  has_pairs boolean := true;
begin
  select * into q from {{schema}}.queues where name = p_queue;
  if not found then return; end if;

  if cardinality(p_counts) > 1 then
    if q.exclusive_key is not null or q.rate_count is not null then
      return query select x.place::integer, null::bigint, null, null, null, null::bigint, null::integer, null::integer, null::bigint,
          null::bigint, null::bigint, null::bigint, null::bigint, null, null, null
        from unnest(p_requests) with ordinality as x(request, place);
      return;
    end if;
    wanted := (select sum(c) from unnest(p_counts) c);
  end if;

  select * into mark from {{schema}}.marks k where k.queue_no = q.no;
  if found then
    mark := {{schema}}.refresh_mark(q, t, mark);
    is_fresh := mark.at is null;
  else
    mark.priority := -9223372036854775808;
    mark.seq := 0;
  end if;
  if exists (select from {{schema}}.messages m where m.queue_no = q.no and m.due_at <= t and m.due_at > coalesce(mark.due_at, -1)) then
    perform {{schema}}.sweep_due(q, t, coalesce(mark.due_at, -1));
  end if;
  if not is_fresh then
    -- After the sweep, whose messages may be below the mark.
    select * into dip from {{schema}}.dips d where d.queue_no = q.no order by d.priority, d.seq limit 1;
    if found and (dip.priority, dip.seq) < (mark.priority, mark.seq) then
      mark.priority := dip.priority;
      mark.seq := dip.seq;
    end if;
  end if;

  -- In one order, so that two calls with the same requests never wait for each other.
  if cardinality(p_requests) = 1 then
    if pg_advisory_xact_lock(hashtextextended(p_requests[1], 7083)) is null then null; end if;
  else
    perform pg_advisory_xact_lock(x.key) from (select hashtextextended(r, 7083) as key from unnest(p_requests) r order by 1) x;
  end if;
  if exists (
    select from unnest(p_requests) as x(request) cross join lateral (
      select from {{schema}}.messages m
      where m.state = 2 and m.lease >= x.request || '.' and m.lease < x.request || '/' and m.queue_no = q.no limit 1
    ) m
  ) then
    return query
      select x.place::integer, m.seq, m.id, m.payload, m.metadata::text, m.priority, m.attempts, m.attempts_max, m.visible_at, m.due_at,
        m.version, m.enqueued_at, m.started_at, m.lease, m.trace, m.error
      from unnest(p_requests) with ordinality as x(request, place) cross join lateral (
        select * from {{schema}}.messages m
        where m.state = 2 and m.lease >= x.request || '.' and m.lease < x.request || '/' and m.queue_no = q.no
        order by m.priority, m.seq limit 10000
      ) m;
    p_counts := array(
      select case when exists (
          select from {{schema}}.messages m
          where m.state = 2 and m.lease >= x.request || '.' and m.lease < x.request || '/' and m.queue_no = q.no
        ) then 0 else x.count end
      from unnest(p_requests, p_counts) with ordinality as x(request, count, place) order by x.place);
    wanted := (select sum(c) from unnest(p_counts) c);
  end if;
  if wanted = 0 or q.dequeue_blocked then return; end if;

  if q.rate_count is not null then
    wanted := least(wanted, {{schema}}.allowance(q, t));
    if wanted <= 0 then return; end if;
  end if;

  if q.exclusive_key is not null then
    tids := {{schema}}.pick_exclusive(q, p_where, wanted);
  elsif p_where = '{}' then
    select coalesce(array_agg(m.ctid), '{}'), array_agg(m.seq), array_agg(m.version + 1), array_agg(m.attempts + 1), min(m.seq), max(m.seq),
      min(m.version) = max(m.version) and min(m.attempts) = max(m.attempts), count(m.metadata) > 0
    into tids, seqs, versions, spent, first_seq, last_seq, alike, has_pairs
    from (
      select m.ctid, m.seq, m.version, m.attempts, m.metadata from {{schema}}.messages m
      where m.queue_no = q.no and m.state = 1 and (m.priority, m.seq) >= (mark.priority, mark.seq)
      order by m.priority, m.seq
      limit wanted
      for update skip locked
    ) m;
    if is_fresh and (mark.queue_no is not null or clock_timestamp() - began > interval '2 ms') then
      perform {{schema}}.set_mark(q, t, tids[1], clock_timestamp() - began > interval '2 ms');
    end if;
  else
    tids := {{schema}}.pick_matching(q, p_where, wanted);
  end if;
  if cardinality(tids) = 0 then return; end if;
  if cardinality(p_counts) > 1 then
    owners := array(select x.place from unnest(p_counts) with ordinality as x(count, place), generate_series(1, x.count) order by x.place);
  end if;
  -- After the locks: not before what freed these messages, by the clock, however long this call has waited for it.
  if p_now is null then t := floor(extract(epoch from clock_timestamp()) * 1000)::bigint; end if;
  if q.rate_count is not null then
    insert into {{schema}}.rate_grants (queue_no, at, count) values (q.no, t, cardinality(tids));
  end if;

  if has_pairs or q.history = 'message' then
    perform {{schema}}.record(q, t, array(
      select row(m.seq, m.priority, m.version + 1, m.attempts + 1, 1, 2, m.metadata, null, null)::{{schema}}.moved
      from {{schema}}.messages m where m.ctid = any (tids)));
  else
    -- Written in place: a statement more is made ready in less time than one with more parts.
    if q.history = 'batch' then
      insert into {{schema}}.events (queue_no, from_state, to_state, at, first_seq, last_seq, seqs, versions, attempts)
      values (q.no, 1, 2, t, first_seq, last_seq,
        case when not alike or last_seq - first_seq + 1 > cardinality(seqs) then seqs end,
        case when not alike or last_seq - first_seq + 1 > cardinality(seqs) then versions else versions[:1] end,
        case when not alike or last_seq - first_seq + 1 > cardinality(seqs) then spent else spent[:1] end);
    end if;
    insert into {{schema}}.depth_changes (queue_no, pair, invisible, pending, running)
    values (q.no, '', 0, -cardinality(tids), cardinality(tids));
  end if;

  if owners is null then
    return query
    update {{schema}}.messages m
    set state = 2, attempts = m.attempts + 1, version = m.version + 1, started_at = t, lease_end = null,
      lease = p_requests[1] || '.' || p_nonces[1], worker = p_workers[1], due_at = t + coalesce(p_lease_ms[1], m.lease_ms, q.lease_ms)
    where m.ctid = any (tids)
    returning null::integer, m.seq, m.id, m.payload, m.metadata::text, nullif(m.priority, m.enqueued_at), nullif(m.attempts, 1),
      nullif(m.attempts_max, 3), nullif(m.visible_at, m.enqueued_at), m.due_at, nullif(m.version, 2), m.enqueued_at, m.started_at,
      null::text, m.trace, m.error;
  else
    return query
    update {{schema}}.messages m
    set state = 2, attempts = m.attempts + 1, version = m.version + 1, started_at = t, lease_end = null,
      lease = p_requests[x.place] || '.' || p_nonces[x.place], worker = p_workers[x.place],
      due_at = t + coalesce(p_lease_ms[x.place], m.lease_ms, q.lease_ms)
    from unnest(tids, owners) as x(ctid, place)
    where m.ctid = x.ctid
    returning x.place, m.seq, m.id, m.payload, m.metadata::text, nullif(m.priority, m.enqueued_at), nullif(m.attempts, 1),
      nullif(m.attempts_max, 3), nullif(m.visible_at, m.enqueued_at), m.due_at, nullif(m.version, 2), m.enqueued_at, m.started_at,
      null::text, m.trace, m.error;
  end if;
end $$;

-- The mark, or for one dequeue a second and queue none: `at` is null for the one that goes without.
create function {{schema}}.refresh_mark(q {{schema}}.queues, t bigint, mark {{schema}}.marks) returns {{schema}}.marks
language plpgsql
as $$
#variable_conflict use_column
begin
  if mark.at > t - 1000 and mark.at <= t then return mark; end if;
  perform from {{schema}}.marks m where m.queue_no = q.no for update skip locked;
  if not found then return mark; end if;
  -- Before the look: a message whose dip is deleted here is seen by it.
  delete from {{schema}}.dips d where d.queue_no = q.no;
  mark.priority := -9223372036854775808;
  mark.seq := 0;
  mark.due_at := null;
  mark.at := null;
  return mark;
end $$;

-- After a look without the mark: sets it at the first message found, or at now where there was none; or takes it away
-- when it is not needed.
create function {{schema}}.set_mark(q {{schema}}.queues, t bigint, p_first tid, p_needed boolean) returns void
language plpgsql
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
  low_priority bigint := t;
  low_seq bigint := 0;
  first_due bigint;
begin
  if not p_needed then
    delete from {{schema}}.marks m where m.queue_no = q.no;
    return;
  end if;
  if p_first is not null then
    select m.priority, m.seq into low_priority, low_seq from {{schema}}.messages m where m.ctid = p_first;
  end if;
  select min(m.due_at) into first_due from {{schema}}.messages m where m.queue_no = q.no and m.due_at is not null;
  insert into {{schema}}.marks (queue_no, priority, seq, due_at, at)
    values (q.no, low_priority, low_seq, least(first_due, t) - 1, t)
    on conflict (queue_no) do update
    set priority = excluded.priority, seq = excluded.seq, due_at = excluded.due_at, at = excluded.at;
end $$;

-- The best messages that have all pairs of `p_where`: walks the index of the rarest pair and compares the rest, in steps
-- of up to 10,000 entries.
create function {{schema}}.pick_matching(q {{schema}}.queues, p_where jsonb, p_count integer) returns tid[]
language plpgsql
set plan_cache_mode = force_generic_plan set jit = off set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  rarest bigint := hashtextextended({{schema}}.rarest_pair(q.no, p_where), 0);
  tids tid[] := '{}';
  step tid[];
  after_priority bigint := -9223372036854775808;
  after_seq bigint := 0;
  walked integer;
  step_max integer := greatest(100, 2 * p_count);
begin
  loop
    with walk as materialized (
      select p.priority, p.seq from {{schema}}.pairs p
      where p.queue_no = q.no and p.pair = rarest and (p.priority, p.seq) > (after_priority, after_seq)
      order by p.priority, p.seq limit step_max
    ), match as (
      select m.ctid from (select * from walk order by priority, seq) w cross join lateral (
        select m.ctid from {{schema}}.messages m where m.seq = w.seq and m.state + 0 = 1 and m.metadata @> p_where for update skip locked
      ) m
      limit p_count - cardinality(tids)
    )
    select array(select ctid from match), (select count(*) from walk),
      (select w.priority from walk w order by w.priority desc, w.seq desc limit 1),
      (select w.seq from walk w order by w.priority desc, w.seq desc limit 1)
    into step, walked, after_priority, after_seq;
    tids := tids || step;
    exit when walked < step_max or cardinality(tids) >= p_count;
    step_max := least(10 * step_max, 10000);
  end loop;
  return tids;
end $$;

-- The pair of `p_where` that the fewest pending messages have: counted up to 500, beyond that by the settled depth.
create function {{schema}}.rarest_pair(p_queue_no integer, p_where jsonb) returns text
language sql stable
set enable_seqscan = off set enable_bitmapscan = off
as $$
  select {{schema}}.pair_of(e.key, e.value) from jsonb_each_text(p_where) e
    left join {{schema}}.depth d on d.queue_no = p_queue_no and d.pair = {{schema}}.pair_of(e.key, e.value)
  order by (
    select count(*) from (
      select from {{schema}}.pairs p
      where p.queue_no = p_queue_no and p.pair = hashtextextended({{schema}}.pair_of(e.key, e.value), 0) limit 500
    ) p
  ), coalesce(d.pending, 0) limit 1
$$;

-- How many more messages the rate limit lets through now. Dequeues of a limited queue take turns.
create function {{schema}}.allowance(q {{schema}}.queues, t bigint) returns integer
language plpgsql
as $$
#variable_conflict use_column
begin
  perform from {{schema}}.queues where no = q.no for update;
  delete from {{schema}}.rate_grants g where g.queue_no = q.no and g.at <= t - q.rate_ms;
  return q.rate_count - (select coalesce(sum(g.count), 0) from {{schema}}.rate_grants g where g.queue_no = q.no);
end $$;
