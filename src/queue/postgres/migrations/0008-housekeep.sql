-- One bounded step of what runs in the background, for all queues: due messages, terminal messages past their retention,
-- the folding of depth changes. Any number of processes may do so at once; each takes rows that no other holds.
create function {{schema}}.housekeep(p_now bigint)
returns table (moved integer, next_due_ms bigint, woken text[], repaired integer, damaged text[])
language plpgsql
set plan_cache_mode = force_generic_plan set jit = off set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  q {{schema}}.queues;
  t bigint := coalesce(p_now, floor(extract(epoch from statement_timestamp()) * 1000)::bigint);
  total integer := 0;
  swept integer;
  fixed integer := 0;
  names text[] := '{}';
  next_due bigint;
begin
  for q in
    select q.* from {{schema}}.queues q
    where (select true from {{schema}}.messages m where m.queue_no = q.no and m.due_at <= t limit 1)
  loop
    swept := {{schema}}.sweep(q, t, 1000);
    total := total + swept;
    if swept > 0 then names := names || q.name; end if;
    -- The rest is due in the next step, which follows at once.
    exit when total >= 5000;
  end loop;
  for q in
    select q.* from {{schema}}.queues q where q.exclusive_key is not null
  loop
    swept := {{schema}}.check_values(q, 200);
    fixed := fixed + swept;
    if swept > 0 then names := names || q.name; end if;
  end loop;
  total := total + {{schema}}.collect(t, 1000);
  perform {{schema}}.fold_depth(2000);

  select min(n.due_at) into next_due from (
    select (select m.due_at from {{schema}}.messages m where m.queue_no = q.no and m.due_at is not null order by m.due_at, m.seq limit 1) as due_at
    from {{schema}}.queues q
    union all
    select min(r.next_at) from {{schema}}.recurring r
  ) n;
  return query select total, case when next_due > t then next_due - t when next_due is not null then 0 end, names, fixed,
    array(select q.name || '/' || d.id || ': ' || d.error from {{schema}}.damaged d join {{schema}}.queues q on q.no = d.queue_no
      where d.at > t - 60000 limit 100);
  delete from {{schema}}.damaged d where d.at < t - 600000;
end $$;

-- Forgets terminal messages whose retention has passed, those that lie in no partition of a day (see 0011): short
-- retentions above all. Where the token has to be remembered for longer, that is kept.
create function {{schema}}.collect(t bigint, p_limit integer) returns integer
language plpgsql
set enable_seqscan = off set enable_bitmapscan = off set jit = off
as $$
#variable_conflict use_column
declare
  removed integer;
begin
  with old as materialized (
    select f.ctid from {{schema}}.finished_default f
    where f.expires_at <= t order by f.expires_at limit p_limit for update skip locked
  ), gone as (
    delete from {{schema}}.finished_default f using old o where f.ctid = o.ctid
    returning f.seq, f.queue_no, f.id, f.finished_at, f.version, f.state, f.lease_end, f.lease
  ), freed as (
    delete from {{schema}}.ids i using (
      select k.ctid from gone g cross join lateral (
        select k.ctid from {{schema}}.ids k where k.queue_no = g.queue_no and k.id = g.id and k.seq = g.seq limit 1
      ) k
    ) k where i.ctid = k.ctid
  ), token as (
    insert into {{schema}}.departed (seq, ended_at, version, minute, state, lease_end, lease)
    select seq, finished_at, version, (t / 60000) % 4, state, lease_end, lease
    from gone where lease is not null and lease_end is not null and finished_at > t - 60000
  )
  select count(*) into removed from gone;
  return removed;
end $$;

-- Adds depth changes to the settled depth. A reader sums both, so it sees the same before and after. What has come to
-- nothing goes: only what has just been changed is looked at, because there are as many rows as there are values of pairs.
create function {{schema}}.fold_depth(p_limit integer) returns void
language plpgsql
set enable_seqscan = on
as $$
#variable_conflict use_column
declare
  queue_nos integer[];
  pairs text[];
begin
  with taken as materialized (
    select c.ctid from {{schema}}.depth_changes c limit p_limit for update skip locked
  ), gone as (
    delete from {{schema}}.depth_changes c using taken k where c.ctid = k.ctid
    returning c.queue_no, c.pair, c.invisible, c.pending, c.running
  ), settled as (
    insert into {{schema}}.depth as d (queue_no, pair, invisible, pending, running)
    select g.queue_no, g.pair, sum(g.invisible), sum(g.pending), sum(g.running)
    from gone g group by g.queue_no, g.pair order by g.queue_no, g.pair
    on conflict (queue_no, pair) do update
      set invisible = d.invisible + excluded.invisible, pending = d.pending + excluded.pending, running = d.running + excluded.running
    returning d.queue_no, d.pair, d.invisible, d.pending, d.running
  )
  select array_agg(s.queue_no), array_agg(s.pair) into queue_nos, pairs from settled s
  where s.invisible = 0 and s.pending = 0 and s.running = 0 and s.pair <> '';
  if pairs is null then return; end if;
  delete from {{schema}}.depth d using (
    select z.ctid from unnest(queue_nos, pairs) x(queue_no, pair) cross join lateral (
      select z.ctid from {{schema}}.depth z
      where z.queue_no = x.queue_no and z.pair = x.pair and z.invisible = 0 and z.pending = 0 and z.running = 0 limit 1
    ) z
  ) z where d.ctid = z.ctid;
end $$;

-- Those of `p_queues` in which something may be dequeueable. A limited look for each queue: an `exists` the planner may
-- turn into one look at the messages of all queues, and does when it believes that nothing waits.
create function {{schema}}.ready(p_queues text[], p_now bigint) returns setof text
language plpgsql
set plan_cache_mode = force_generic_plan set jit = off set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
declare
  t bigint := coalesce(p_now, floor(extract(epoch from statement_timestamp()) * 1000)::bigint);
begin
  return query
    select q.name from {{schema}}.queues q
    where q.name = any(p_queues) and not q.dequeue_blocked and coalesce(
      case when q.exclusive_key is null
        then (select true from {{schema}}.messages m where m.queue_no = q.no and m.state = 1 limit 1)
        else coalesce(
          (select true from {{schema}}.value_changes c where c.queue_no = q.no limit 1),
          (select true from {{schema}}.exclusive_values v where v.queue_no = q.no and v.running_seq is null and v.head_seq is not null limit 1))
      end,
      (select true from {{schema}}.messages m where m.queue_no = q.no and m.due_at <= t limit 1), false);
end $$;
