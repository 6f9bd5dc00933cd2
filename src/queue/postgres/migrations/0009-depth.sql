-- Depth by the clock. Of everything and of one pair it is the sum of settled depth and changes since: exact, and as fast
-- with ten million messages as with ten. Of several pairs it is counted in steps, see depth_step: the answer is null then.
create function {{schema}}.depth_of(p_queue text, p_where jsonb, p_now bigint)
returns table (invisible bigint, pending bigint, running bigint, exact boolean, as_of bigint)
language plpgsql
set plan_cache_mode = force_generic_plan set jit = off set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  q {{schema}}.queues;
  t bigint := coalesce(p_now, floor(extract(epoch from statement_timestamp()) * 1000)::bigint);
  pairs text[] := array(select {{schema}}.pair_of(e.key, e.value) from jsonb_each_text(p_where) e);
begin
  select * into q from {{schema}}.queues where name = p_queue;
  if not found then
    return query select 0::bigint, 0::bigint, 0::bigint, true, t;
    return;
  end if;
  perform {{schema}}.sweep_due(q, t);
  if cardinality(pairs) > 1 then
    return query select null::bigint, null::bigint, null::bigint, false, t;
    return;
  end if;
  return query
    select coalesce(sum(d.invisible), 0)::bigint, coalesce(sum(d.pending), 0)::bigint, coalesce(sum(d.running), 0)::bigint, true, t
    from (
      select d.invisible, d.pending, d.running from {{schema}}.depth d where d.queue_no = q.no and d.pair = coalesce(pairs[1], '')
      union all
      select c.invisible, c.pending, c.running from {{schema}}.depth_changes c where c.queue_no = q.no and c.pair = coalesce(pairs[1], '')
    ) d;
end $$;

-- A step of the count of messages that have several pairs. `p_walk` due walks invisible and running messages, anything else
-- names the pair whose pending messages are walked (null: the rarest, which is answered). `walked` below `p_limit` says that
-- the walk has come to its end. Stable: two walks in one statement see the same moment. `state + 0` keeps the planner from
-- looking a number up in the index of pending messages, all of which it would have to read.
create function {{schema}}.depth_step(
  p_queue text, p_where jsonb, p_walk text, p_after_key bigint, p_after_seq bigint, p_limit integer
) returns table (invisible bigint, pending bigint, running bigint, walked bigint, last_key bigint, last_seq bigint, walk text)
language plpgsql stable
set plan_cache_mode = force_generic_plan set jit = off set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  q {{schema}}.queues;
begin
  select * into q from {{schema}}.queues where name = p_queue;
  if p_walk = 'due' then
    return query
      with step as materialized (
        select m.due_at, m.seq, m.state, coalesce(m.metadata, '{}') @> p_where as matches from {{schema}}.messages m
        where m.queue_no = q.no and m.due_at is not null and (m.due_at, m.seq) > (p_after_key, p_after_seq)
        order by m.due_at, m.seq limit p_limit
      )
      select count(*) filter (where s.state = 0 and s.matches), 0::bigint, count(*) filter (where s.state = 2 and s.matches), count(*),
        (select z.due_at from step z order by z.due_at desc, z.seq desc limit 1),
        (select z.seq from step z order by z.due_at desc, z.seq desc limit 1), p_walk
      from step s;
    return;
  end if;
  p_walk := coalesce(p_walk, {{schema}}.rarest_pair(q.no, p_where));
  return query
    with step as materialized (
      select p.priority, p.seq from {{schema}}.pairs p
      where p.queue_no = q.no and p.pair = hashtextextended(p_walk, 0) and (p.priority, p.seq) > (p_after_key, p_after_seq)
      order by p.priority, p.seq limit p_limit
    )
    select 0::bigint, count(m.seq), 0::bigint, count(*), (select z.priority from step z order by z.priority desc, z.seq desc limit 1),
      (select z.seq from step z order by z.priority desc, z.seq desc limit 1), p_walk
    from step s left join lateral (
      select m.seq from {{schema}}.messages m where m.seq = s.seq and m.state + 0 = 1 and m.metadata @> p_where limit 1
    ) m on true;
end $$;

-- The pending message that has waited longest, those behind a running message of their value apart, among the first
-- 100,000 in the order of dequeue.
create function {{schema}}.oldest(p_queue text, p_where jsonb, p_now bigint)
returns table (id text, age_ms bigint)
language plpgsql
set plan_cache_mode = force_generic_plan set jit = off set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  q {{schema}}.queues;
  t bigint := coalesce(p_now, floor(extract(epoch from statement_timestamp()) * 1000)::bigint);
begin
  select * into q from {{schema}}.queues where name = p_queue;
  if not found then return; end if;
  perform {{schema}}.sweep_due(q, t);
  return query
    select w.id, greatest(0, t - w.visible_at) from (
      select m.id, m.visible_at, m.seq, m.metadata, m.value from {{schema}}.messages m
      where m.queue_no = q.no and m.state = 1 order by m.priority, m.seq limit 100000
    ) w
    where coalesce(w.metadata, '{}') @> p_where and (w.value is null or not exists (
      select from {{schema}}.messages r where r.queue_no = q.no and r.value = w.value and r.state = 2))
    order by w.visible_at, w.seq limit 1;
end $$;
