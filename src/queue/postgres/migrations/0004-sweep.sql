-- Messages that could not be moved (a trigger raised, a row is damaged): left alone for a minute, so that one holds up no
-- other, and told to the log.
create table {{schema}}.damaged (
  seq bigint primary key,
  at bigint not null,
  queue_no integer not null,
  id text not null,
  error text not null
);

-- One step of moving what is due. If the step fails, its messages are moved one by one, and those that cannot be are
-- put aside.
create function {{schema}}.sweep(q {{schema}}.queues, t bigint, p_limit integer) returns integer
language plpgsql
set plan_cache_mode = force_generic_plan set jit = off set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  due bigint;
  moved integer := 0;
begin
  begin
    return {{schema}}.sweep_step(q, t, p_limit, null);
  exception when others then
    null;
  end;
  for due in
    select m.seq from {{schema}}.messages m where m.queue_no = q.no and m.due_at <= t order by m.due_at, m.seq limit p_limit
  loop
    begin
      moved := moved + {{schema}}.sweep_step(q, t, 1, due);
    exception when others then
      insert into {{schema}}.damaged (seq, at, queue_no, id, error)
        select m.seq, t, q.no, m.id, sqlerrm from {{schema}}.messages m where m.seq = due
        on conflict (seq) do update set at = excluded.at, error = excluded.error;
    end;
  end loop;
  return moved;
end $$;

-- Moves what is due in one queue, the most overdue first (or one message): invisible messages become pending, expired leases go back with
-- their attempt spent or, on the last attempt, end as errored. Rows that somebody else holds are left to them.
create function {{schema}}.sweep_step(q {{schema}}.queues, t bigint, p_limit integer, p_seq bigint) returns integer
language plpgsql
set plan_cache_mode = force_generic_plan set jit = off set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  moves {{schema}}.moved[];
  last tid[];
begin
  with due as materialized (
    select m.ctid, m.state, m.attempts >= m.attempts_max and m.state = 2 as is_last
    from {{schema}}.messages m
    where m.queue_no = q.no and m.due_at <= t and (p_seq is null or m.seq = p_seq)
      and not exists (select from {{schema}}.damaged d where d.seq = m.seq and d.at > t - 60000)
    order by m.due_at, m.seq
    limit p_limit
    for update of m skip locked
  ), back as (
    update {{schema}}.messages m
    set state = 1, due_at = null, version = m.version + 1,
      visible_at = case when d.state = 2 then t else m.visible_at end,
      lease_end = case when d.state = 2 then 5 else m.lease_end end
    from due d
    where m.ctid = d.ctid and not d.is_last
    returning m.seq, m.priority, m.version, m.attempts, d.state as from_state, 1::smallint as to_state, m.metadata, m.value, m.id
  )
  select (select array_agg(row(b.*)::{{schema}}.moved) from back b), array_agg(d.ctid) filter (where d.is_last)
  into moves, last
  from due d;

  perform {{schema}}.record(q, t, moves);
  if last is not null then
    perform {{schema}}.finish(q, t, last, 5::smallint, 5::smallint, array_fill('lease expired on the last attempt'::text, array[cardinality(last)]));
  end if;
  return coalesce(cardinality(moves), 0) + coalesce(cardinality(last), 0);
end $$;

-- Ends live messages whose rows the caller has locked: out of `messages`, into `finished`, or into `departed` where
-- nothing is to be kept but the token.
create function {{schema}}.finish(
  q {{schema}}.queues, t bigint, p_tids tid[], p_state smallint, p_lease_end smallint, p_errors text[]
) returns {{schema}}.moved[]
language plpgsql
set plan_cache_mode = force_generic_plan set jit = off set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  retention bigint := case p_state when 3 then q.completed_ms when 4 then q.canceled_ms else q.errored_ms end;
  moves {{schema}}.moved[];
begin
  with gone as (
    delete from {{schema}}.messages m using unnest(p_tids, p_errors) as x(tid, error)
    where m.ctid = x.tid
    returning m.*, coalesce(x.error, m.error) as last_error
  ), kept as (
    insert into {{schema}}.finished (seq, priority, visible_at, enqueued_at, started_at, finished_at, expires_at, version, lease_ms,
      queue_no, attempts, attempts_max, state, lease_end, unique_while_live, id, lease, value, payload, metadata, trace, worker, error)
    select seq, priority, visible_at, enqueued_at, started_at, t, t + retention, version + 1, lease_ms,
      queue_no, attempts, attempts_max, p_state, p_lease_end, unique_while_live, id, lease, value, payload, metadata, trace, worker, last_error
    from gone where retention > 0
  ), token as (
    insert into {{schema}}.departed (seq, ended_at, version, minute, state, lease_end, lease)
    select seq, t, version + 1, (t / 60000) % 4, p_state, p_lease_end, lease from gone where retention = 0 and lease is not null
  ), freed as (
    delete from {{schema}}.ids i using (
      select k.ctid from gone g cross join lateral (
        select k.ctid from {{schema}}.ids k where k.queue_no = g.queue_no and k.id = g.id and k.seq = g.seq limit 1
      ) k where retention = 0 or g.unique_while_live
    ) k where i.ctid = k.ctid
  )
  select array_agg(row(g.seq, g.priority, g.version + 1, g.attempts, g.state, p_state, g.metadata, g.value, g.id)::{{schema}}.moved) into moves from gone g;
  perform {{schema}}.record(q, t, moves);
  return moves;
end $$;

-- Moves all that is due, in steps, if there is any after `p_floor`.
create function {{schema}}.sweep_due(q {{schema}}.queues, t bigint, p_floor bigint default -1) returns void
language plpgsql
as $$
begin
  if exists (select from {{schema}}.messages m where m.queue_no = q.no and m.due_at <= t and m.due_at > p_floor) then
    for round in 1..10 loop
      exit when {{schema}}.sweep(q, t, 1000) < 1000;
    end loop;
  end if;
end $$;
