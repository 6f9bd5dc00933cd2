-- Depth by the clock. Of everything and of one pair it is the sum of settled depth and changes since: exact, and as fast
-- with ten million messages as with ten. Of several pairs it is counted, along the rarest of them.
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
  if cardinality(pairs) < 2 then
    return query
      select coalesce(sum(d.invisible), 0)::bigint, coalesce(sum(d.pending), 0)::bigint, coalesce(sum(d.running), 0)::bigint, true, t
      from (
        select d.invisible, d.pending, d.running from {{schema}}.depth d where d.queue_no = q.no and d.pair = coalesce(pairs[1], '')
        union all
        select c.invisible, c.pending, c.running from {{schema}}.depth_changes c where c.queue_no = q.no and c.pair = coalesce(pairs[1], '')
      ) d;
    return;
  end if;
  return query
    select
      (select count(*) from {{schema}}.messages m where m.queue_no = q.no and m.due_at is not null and m.state = 0 and m.metadata @> p_where),
      (select count(*) from {{schema}}.pairs p join {{schema}}.messages m on m.seq = p.seq
        where p.queue_no = q.no and p.pair = hashtextextended({{schema}}.rarest_pair(q.no, p_where), 0)
          and m.state = 1 and m.metadata @> p_where),
      (select count(*) from {{schema}}.messages m where m.queue_no = q.no and m.due_at is not null and m.state = 2 and m.metadata @> p_where),
      true, t;
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
