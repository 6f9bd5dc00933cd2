-- Operations on messages by id. Rows that somebody else holds are answered as busy.
--
-- What has moved stands beside what was asked for by a sort, and each look for an answer has a limit and a state of its own: else a
-- plan that was made while the tables were small walked all ids, or all ended messages, for each id (20 s for a batch of 4,000).

create function {{schema}}.cancel(p_queue text, p_ids text[], p_now bigint) returns table (
  ord integer, kind text, state smallint, from_state smallint, version bigint, attempts integer, metadata text, seq bigint
)
language plpgsql
set plan_cache_mode = force_generic_plan set jit = off set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  q {{schema}}.queues;
  t bigint := coalesce(p_now, floor(extract(epoch from statement_timestamp()) * 1000)::bigint);
  held tid[];
  moves {{schema}}.moved[];
begin
  select * into q from {{schema}}.queues where name = p_queue;
  with mine as (
    select m.ctid from (select distinct id from unnest(p_ids) x(id) order by id) x
      cross join lateral (select i.seq from {{schema}}.ids i where i.queue_no = q.no and i.id = x.id limit 1) i
      cross join lateral (select m.ctid from {{schema}}.messages m where m.seq = i.seq for update skip locked) m
  )
  select array_agg(ctid) into held from mine;
  if held is not null then
    moves := {{schema}}.finish(q, t, held, 4::smallint, 4::smallint, null);
  end if;
  return query
    select x.place::integer,
      case when m.seq is not null then 'busy' when f.state = 4 or (x.move).seq is not null then 'canceled'
        when f.state is not null then 'terminal' else 'unknown' end,
      f.state, (x.move).from_state, (x.move).version, (x.move).attempts, (x.move).metadata::text, (x.move).seq
    from {{schema}}.beside_moves(p_ids, moves) x
      left join lateral (select i.seq from {{schema}}.ids i where i.queue_no = q.no and i.id = x.id limit 1) i on true
      left join lateral (select m.seq from {{schema}}.messages m where m.seq = i.seq limit 1) m on true
      left join lateral (
        select f.state from unnest('{3,4,5}'::smallint[]) e(state) cross join lateral (
          select f.state from {{schema}}.finished f where f.queue_no = q.no and f.state = e.state and f.seq = i.seq limit 1
        ) f limit 1
      ) f on true;
end $$;

-- Each id that was asked for, in any order, with the move of its message where it has moved.
create function {{schema}}.beside_moves(p_ids text[], moves {{schema}}.moved[]) returns table (id text, place bigint, move {{schema}}.moved)
language sql immutable
as $$
  select b.id, b.place, b.move from (
    select a.id, a.place, first_value(a.move) over (partition by a.id order by a.place) as move from (
      select x.id, x.place, null::{{schema}}.moved as move from unnest(p_ids) with ordinality as x(id, place)
      union all
      select r.id, 0, r from unnest(moves) r
    ) a
  ) b
  where b.place > 0
$$;

-- Changes messages that wait. What is already so is not changed again: its version stays, and nothing is told of a move.
create function {{schema}}.change(
  p_queue text, p_ids text[], p_priorities bigint[], p_visible_at bigint[], p_payloads text[], p_now bigint
) returns table (
  ord integer, kind text, state smallint, from_state smallint, version bigint, attempts integer, metadata text, seq bigint
)
language plpgsql
set plan_cache_mode = force_generic_plan set jit = off set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  q {{schema}}.queues;
  t bigint := coalesce(p_now, floor(extract(epoch from statement_timestamp()) * 1000)::bigint);
  m {{schema}}.messages;
  next {{schema}}.messages;
  ended smallint;
  known {{schema}}.ids;
  move {{schema}}.moved;
begin
  select * into q from {{schema}}.queues where name = p_queue;
  for place in 1..cardinality(p_ids) loop
    select * into known from {{schema}}.ids i where i.queue_no = q.no and i.id = p_ids[place];
    if not found then
      return query select place, 'unknown', null::smallint, null::smallint, null::bigint, null::integer, null::text, null::bigint;
      continue;
    end if;
    select * into m from {{schema}}.messages x where x.seq = known.seq for update skip locked;
    if not found then
      select f.state into ended from unnest('{3,4,5}'::smallint[]) e(state) cross join lateral (
          select f.state from {{schema}}.finished f where f.queue_no = q.no and f.state = e.state and f.seq = known.seq limit 1
        ) f limit 1;
      return query select place, case when ended is null then 'busy' else 'not-waiting' end, ended, null::smallint, null::bigint, null::integer,
        null::text, null::bigint;
      continue;
    elsif m.state = 2 then
      return query select place, 'not-waiting', m.state, null::smallint, null::bigint, null::integer, null::text, null::bigint;
      continue;
    end if;
    move := null;
    next := m;
    next.priority := coalesce(p_priorities[place], m.priority);
    next.payload := coalesce(p_payloads[place], m.payload);
    next.visible_at := coalesce(p_visible_at[place], m.visible_at);
    next.state := case when next.visible_at > t then 0 else 1 end;
    if (next.priority, next.payload, next.visible_at, next.state) is distinct from (m.priority, m.payload, m.visible_at, m.state) then
      next.version := m.version + 1;
      update {{schema}}.messages x
      set priority = next.priority, payload = next.payload, visible_at = next.visible_at, state = next.state, version = next.version,
        due_at = case when next.state = 0 then next.visible_at end
      where x.seq = m.seq;
      if next.payload <> m.payload then
        update {{schema}}.ids i set payload_hash = hashtextextended(next.payload, 0) where i.queue_no = q.no and i.id = m.id;
      end if;
      -- Two moves, so that the pair index loses the old priority and gets the new one.
      move := row(m.seq, m.priority, next.version, m.attempts, m.state, next.state, m.metadata, m.value, m.id);
      perform {{schema}}.unindex(q, move);
      move.priority := next.priority;
      perform {{schema}}.record(q, t, array[move]);
    end if;
    return query select place, 'changed', next.state, move.from_state, next.version, move.attempts, move.metadata::text, move.seq;
  end loop;
end $$;

-- Takes one message out of the pair index.
create function {{schema}}.unindex(q {{schema}}.queues, m {{schema}}.moved) returns void
language sql
as $$
  delete from {{schema}}.pairs p using (
      select k.ctid from jsonb_each_text(m.metadata) e cross join lateral (
        select k.ctid from {{schema}}.pairs k
        where k.queue_no = q.no and k.pair = hashtextextended({{schema}}.pair_of(e.key, e.value), 0)
          and k.priority = m.priority and k.seq = m.seq limit 1
      ) k
    ) k
    where p.ctid = k.ctid
$$;

-- Errored messages wait again, with no attempt spent.
create function {{schema}}.requeue(p_queue text, p_ids text[], p_now bigint) returns table (
  ord integer, kind text, state smallint, from_state smallint, version bigint, attempts integer, metadata text, seq bigint
)
language plpgsql
set plan_cache_mode = force_generic_plan set jit = off set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  q {{schema}}.queues;
  t bigint := coalesce(p_now, floor(extract(epoch from statement_timestamp()) * 1000)::bigint);
  moves {{schema}}.moved[];
begin
  select * into q from {{schema}}.queues where name = p_queue;
  with errored as materialized (
    select f.ctid, f.tableoid from (select distinct id from unnest(p_ids) x(id) order by id) x
      cross join lateral (select i.seq from {{schema}}.ids i where i.queue_no = q.no and i.id = x.id limit 1) i
      cross join lateral (
        select f.ctid, f.tableoid from {{schema}}.finished f where f.queue_no = q.no and f.state = 5 and f.seq = i.seq
        for update skip locked
      ) f
  ), gone as (
    delete from {{schema}}.finished f using errored e
    where f.ctid = e.ctid and f.tableoid = e.tableoid
    returning f.*
  ), back as (
    insert into {{schema}}.messages (seq, priority, visible_at, enqueued_at, started_at, version, lease_ms, queue_no, attempts,
      attempts_max, state, unique_while_live, id, value, payload, metadata, trace)
    select seq, priority, t, enqueued_at, started_at, version + 1, lease_ms, queue_no, 0,
      attempts_max, 1, unique_while_live, id, value, payload, metadata, trace
    from gone
    returning *
  )
  select array_agg(row(b.seq, b.priority, b.version, 0, 5, 1, b.metadata, b.value, b.id)::{{schema}}.moved) into moves from back b;
  perform {{schema}}.record(q, t, moves);
  return query
    select x.place::integer,
      case when (x.move).version is not null then 'requeued' when l.state is not null or f.state in (3, 4) then 'not-errored'
        when f.state = 5 then 'busy' else 'unknown' end,
      coalesce(l.state, f.state), (x.move).from_state, (x.move).version, (x.move).attempts, (x.move).metadata::text, (x.move).seq
    from {{schema}}.beside_moves(p_ids, moves) x
      left join lateral (select i.seq from {{schema}}.ids i where i.queue_no = q.no and i.id = x.id limit 1) i on true
      left join lateral (select m.state from {{schema}}.messages m where m.seq = i.seq limit 1) l on true
      left join lateral (
        select f.state from unnest('{3,4,5}'::smallint[]) e(state) cross join lateral (
          select f.state from {{schema}}.finished f where f.queue_no = q.no and f.state = e.state and f.seq = i.seq limit 1
        ) f limit 1
      ) f on true;
end $$;

-- Forgets at most `p_limit` messages of one state, ids and all.
create function {{schema}}.purge(p_queue text, p_state smallint, p_limit integer, p_now bigint) returns integer
language plpgsql
set plan_cache_mode = force_generic_plan set jit = off set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  q {{schema}}.queues;
  t bigint := coalesce(p_now, floor(extract(epoch from statement_timestamp()) * 1000)::bigint);
  moves {{schema}}.moved[];
  tids tid[];
  removed integer;
begin
  select * into q from {{schema}}.queues where name = p_queue;
  if p_state in (3, 4, 5) then
    with old as materialized (
      select f.ctid, f.tableoid from {{schema}}.finished f where f.queue_no = q.no and f.state = p_state
      order by f.seq limit p_limit for update skip locked
    ), gone as (
      delete from {{schema}}.finished f using old o
      where f.ctid = o.ctid and f.tableoid = o.tableoid
      returning f.seq, f.id
    ), freed as (
      delete from {{schema}}.ids i using (
      select k.ctid from gone g cross join lateral (
        select k.ctid from {{schema}}.ids k where k.queue_no = q.no and k.id = g.id and k.seq = g.seq limit 1
      ) k
    ) k where i.ctid = k.ctid
    )
    select count(*) into removed from gone;
    return removed;
  end if;
  -- Each state by its own index: one look at both would read and sort every message there is.
  if p_state = 1 then
    tids := array(
      select m.ctid from {{schema}}.messages m where m.queue_no = q.no and m.state = 1
      order by m.priority, m.seq limit p_limit for update skip locked);
  else
    -- From the end: running messages stand in the same index, and in front.
    tids := array(
      select m.ctid from {{schema}}.messages m where m.queue_no = q.no and m.due_at is not null and m.state = p_state
      order by m.due_at desc, m.seq desc limit p_limit for update skip locked);
  end if;
  with gone as (
    delete from {{schema}}.messages m where m.ctid = any (tids) returning m.*
  ), freed as (
    delete from {{schema}}.ids i using (
      select k.ctid from gone g cross join lateral (
        select k.ctid from {{schema}}.ids k where k.queue_no = q.no and k.id = g.id and k.seq = g.seq limit 1
      ) k
    ) k where i.ctid = k.ctid
  )
  select array_agg(row(g.seq, g.priority, g.version + 1, g.attempts, g.state, 4, g.metadata, g.value, g.id)::{{schema}}.moved) into moves from gone g;
  perform {{schema}}.record(q, t, moves);
  return coalesce(cardinality(moves), 0);
end $$;
