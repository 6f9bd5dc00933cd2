-- Exclusive queues: at most one running message of each value. Only the transaction that has locked a value's row hands
-- out a message of it. Heads are computed in a later statement than the one that waited for locks: within one, a
-- sub-select would still see what was there before the wait.

-- The messages that an exclusive queue hands out next, their rows and values locked; marks their values as running.
create function {{schema}}.pick_exclusive(q {{schema}}.queues, p_where jsonb, p_count integer) returns tid[]
language plpgsql
as $$
declare
  has_turn boolean;
  tids tid[];
begin
  begin
    has_turn := {{schema}}.take_in_changes(q, false);
    tids := {{schema}}.pick_idle(q, p_where, p_count);
    if cardinality(tids) > 0 or not exists (select from {{schema}}.value_changes c where c.queue_no = q.no) then
      return tids;
    end if;
    -- Somebody else is taking in changes. To wait for that, every lock must go: also that of a value that was found idle,
    -- locked, and found to be busy after all, or the two would wait for each other.
    if not has_turn then raise exception using errcode = 'HG001'; end if;
  exception when sqlstate 'HG001' then
    null;
  end;
  perform {{schema}}.take_in_changes(q, true);
  return {{schema}}.pick_idle(q, p_where, p_count);
end $$;

-- Locks the best idle values and claims a message of each.
create function {{schema}}.pick_idle(q {{schema}}.queues, p_where jsonb, p_count integer) returns tid[]
language plpgsql
set plan_cache_mode = force_generic_plan set jit = off set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  held text[];
begin
  if p_where = '{}' then
    held := array(
      select v.value from {{schema}}.exclusive_values v
      where v.queue_no = q.no and v.running_seq is null and v.head_seq is not null
      order by v.head_priority, v.head_seq
      limit p_count
      for update skip locked);
  else
    held := {{schema}}.lock_matching_values(q, p_where, p_count);
  end if;
  return {{schema}}.claim_heads(q, held, p_where, p_count);
end $$;

-- The best matching message of each value whose row is locked, if nothing of the value runs.
create function {{schema}}.claim_heads(q {{schema}}.queues, p_values text[], p_where jsonb, p_count integer) returns tid[]
language plpgsql
set plan_cache_mode = force_generic_plan set jit = off set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  tids tid[];
  seqs bigint[];
  held text[];
begin
  select coalesce(array_agg(m.ctid), '{}'), coalesce(array_agg(m.seq), '{}'), coalesce(array_agg(m.value), '{}') into tids, seqs, held
  from (
    select b.ctid, b.seq, v.value
    from unnest(p_values) v(value) cross join lateral (
      select m.ctid, m.seq, m.priority from {{schema}}.messages m
      where m.queue_no = q.no and m.value = v.value and m.state = 1 and coalesce(m.metadata, '{}') @> p_where
      order by m.priority, m.seq limit 1 for update skip locked
    ) b
    where not exists (select from {{schema}}.messages r where r.queue_no = q.no and r.value = v.value and r.state = 2)
    order by b.priority, b.seq limit p_count
  ) m;
  update {{schema}}.exclusive_values v set running_seq = x.seq, head_priority = null, head_seq = null
    from (
      select x.seq, k.ctid from unnest(seqs, held) x(seq, value) cross join lateral (
        select k.ctid from {{schema}}.exclusive_values k where k.queue_no = q.no and k.value = x.value limit 1
      ) k
    ) x where v.ctid = x.ctid;
  -- A value that gave nothing was not what its row said.
  if p_where = '{}' and cardinality(held) < cardinality(p_values) then
    perform {{schema}}.settle_values(q, array(select unnest(p_values) except select unnest(held) order by 1));
  end if;
  return tids;
end $$;

-- Locks the idle values of the best messages that match. Two ways lead there, and steps of both take turns, each longer
-- than the one before: along the idle values, which costs what idle values without a match cost, and along the messages
-- with the rarest pair, which costs what blocked messages with it cost. Whichever ends first has the answer.
create function {{schema}}.lock_matching_values(q {{schema}}.queues, p_where jsonb, p_count integer) returns text[]
language plpgsql
set plan_cache_mode = force_generic_plan set jit = off set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  rarest bigint;
  held text[] := '{}';
  step text[];
  after_priority bigint := -9223372036854775808;
  after_seq bigint := 0;
  walked integer;
  step_max integer := greatest(100, 2 * p_count);
begin
  loop
    step := {{schema}}.best_idle_values(q, p_where, held, p_count - cardinality(held), step_max);
    if step is not null then
      return held || array(
        select v.value from unnest(step) with ordinality as x(value, place) cross join lateral (
          select v.value from {{schema}}.exclusive_values v
          where v.queue_no = q.no and v.value = x.value and v.running_seq is null for update skip locked
        ) v
        limit p_count - cardinality(held));
    end if;

    rarest := coalesce(rarest, hashtextextended({{schema}}.rarest_pair(q.no, p_where), 0));
    with walk as materialized (
      select p.priority, p.seq from {{schema}}.pairs p
      where p.queue_no = q.no and p.pair = rarest and (p.priority, p.seq) > (after_priority, after_seq)
      order by p.priority, p.seq limit step_max
    ), match as (
      select distinct on (m.value) m.value, w.priority, w.seq
      from walk w cross join lateral (
        select m.value from {{schema}}.messages m where m.seq = w.seq and m.state + 0 = 1 and m.metadata @> p_where limit 1
      ) m
      where m.value <> all (held)
      order by m.value, w.priority, w.seq
    ), free as (
      select v.value from (select * from match order by priority, seq) m cross join lateral (
        select v.value from {{schema}}.exclusive_values v
        where v.queue_no = q.no and v.value = m.value and v.running_seq is null for update skip locked
      ) v
      limit p_count - cardinality(held)
    )
    select array(select value from free), (select count(*) from walk),
      (select w.priority from walk w order by w.priority desc, w.seq desc limit 1),
      (select w.seq from walk w order by w.priority desc, w.seq desc limit 1)
    into step, walked, after_priority, after_seq;
    held := held || step;
    exit when walked < step_max or cardinality(held) >= p_count;
    step_max := least(10 * step_max, 10000);
  end loop;
  return held;
end $$;

-- The idle values of the best matching messages in order, those in `p_without` left out, found by a look at the first
-- `p_idle_max` idle values and at the first 100 waiting messages of each; null where that is not enough to know.
create function {{schema}}.best_idle_values(
  q {{schema}}.queues, p_where jsonb, p_without text[], p_count integer, p_idle_max integer
) returns text[]
language plpgsql
set plan_cache_mode = force_generic_plan set jit = off set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  best text[];
  is_known boolean;
begin
  with idle as materialized (
    select v.value, v.head_priority, v.head_seq from {{schema}}.exclusive_values v
    where v.queue_no = q.no and v.running_seq is null and v.head_seq is not null
    order by v.head_priority, v.head_seq limit p_idle_max
  ), looked as materialized (
    select i.value, m.priority, m.seq, m.seq is null and exists (
        select from {{schema}}.messages o where o.queue_no = q.no and o.value = i.value and o.state = 1
        order by o.priority, o.seq offset 100
      ) as has_more
    from idle i left join lateral (
      select f.priority, f.seq from (
        select o.priority, o.seq, o.metadata from {{schema}}.messages o
        where o.queue_no = q.no and o.value = i.value and o.state = 1
        order by o.priority, o.seq limit 100
      ) f
      where f.metadata @> p_where
      order by f.priority, f.seq limit 1
    ) m on true
    where i.value <> all (p_without)
  ), match as materialized (
    -- More than wanted: somebody else may have locked some of them.
    select l.value, l.priority, l.seq from looked l where l.seq is not null
  )
  select array(select m.value from match m order by m.priority, m.seq),
    not exists (select from looked l where l.has_more)
      and ((select count(*) from idle) < p_idle_max
        -- No idle value beyond these has anything better than its head.
        or (select count(*) from match) >= p_count and not exists (
          select from (select * from match m order by m.priority, m.seq limit p_count) m
          where (m.priority, m.seq) > (select i.head_priority, i.head_seq from idle i order by i.head_priority desc, i.head_seq desc limit 1)
        ))
  into best, is_known;
  return case when is_known then best end;
end $$;

-- Takes in what has changed, one session at a time; who comes second goes on without, or waits for its turn. Answers
-- whether it had the turn, which it keeps to the end of its transaction.
create function {{schema}}.take_in_changes(q {{schema}}.queues, p_wait boolean) returns boolean
language plpgsql
set plan_cache_mode = force_generic_plan set jit = off set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  changed text[];
begin
  if not exists (select from {{schema}}.value_changes c where c.queue_no = q.no) then return false; end if;
  if p_wait then
    perform from {{schema}}.value_turns t where t.queue_no = q.no for update;
  else
    perform from {{schema}}.value_turns t where t.queue_no = q.no for update skip locked;
    if not found then return false; end if;
  end if;
  for round in 1..5 loop
    with gone as (
      delete from {{schema}}.value_changes c
      using (select x.ctid from {{schema}}.value_changes x where x.queue_no = q.no limit 2000) x
      where c.ctid = x.ctid
      returning c.value
    )
    select array_agg(g.value order by g.value) into changed from (select distinct value from gone) g;
    exit when changed is null;
    perform {{schema}}.settle_values(q, changed);
  end loop;
  return true;
end $$;

-- Makes the rows of some values say what their messages say. `p_values` is in key order.
create function {{schema}}.settle_values(q {{schema}}.queues, p_values text[]) returns void
language plpgsql
set plan_cache_mode = force_generic_plan set jit = off set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
#variable_conflict use_column
begin
  insert into {{schema}}.exclusive_values (queue_no, value)
    select q.no, v.value from unnest(p_values) v(value)
    where exists (select from {{schema}}.messages m where m.queue_no = q.no and m.value = v.value and m.state = 1)
    on conflict do nothing;
  perform from unnest(p_values) p(value) cross join lateral (
    select from {{schema}}.exclusive_values v where v.queue_no = q.no and v.value = p.value for update
  ) v;

  update {{schema}}.exclusive_values v set running_seq = n.running_seq, head_priority = n.head_priority, head_seq = n.head_seq
  from (
    select k.ctid, r.seq as running_seq, case when r.seq is null then h.priority end as head_priority,
      case when r.seq is null then h.seq end as head_seq
    from unnest(p_values) p(value)
      cross join lateral (
        select k.ctid from {{schema}}.exclusive_values k where k.queue_no = q.no and k.value = p.value limit 1
      ) k
      left join lateral (
        select m.seq from {{schema}}.messages m where m.queue_no = q.no and m.value = p.value and m.state = 2 limit 1
      ) r on true
      left join lateral (
        select m.priority, m.seq from {{schema}}.messages m where m.queue_no = q.no and m.value = p.value and m.state = 1
        order by m.priority, m.seq limit 1
      ) h on true
  ) n
  where v.ctid = n.ctid
    and (v.running_seq, v.head_priority, v.head_seq) is distinct from (n.running_seq, n.head_priority, n.head_seq);

  delete from {{schema}}.exclusive_values v using (
      select k.ctid from unnest(p_values) p(value) cross join lateral (
        select k.ctid from {{schema}}.exclusive_values k
        where k.queue_no = q.no and k.value = p.value and k.running_seq is null and k.head_seq is null limit 1
      ) k
    ) k where v.ctid = k.ctid;
end $$;

-- Checks some values against their messages, walking round all of them over time: a value that says otherwise is
-- repaired and counted. Nothing is ever found unless there is a fault in the above.
create function {{schema}}.check_values(q {{schema}}.queues, p_limit integer) returns integer
language plpgsql
set plan_cache_mode = force_generic_plan set jit = off set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  from_value text;
  last_value text;
  wrong text[];
begin
  select t.checked into from_value from {{schema}}.value_turns t where t.queue_no = q.no for update skip locked;
  if not found then return 0; end if;
  with step as materialized (
    select m.value from {{schema}}.messages m
    where m.queue_no = q.no and m.state = 1 and m.value is not null and m.value > from_value
    order by m.value, m.priority, m.seq limit p_limit
  ), head as (
    select distinct s.value from step s
    where not exists (select from {{schema}}.value_changes c where c.queue_no = q.no and c.value = s.value)
  ), checked as (
    select h.value, (
        select v.running_seq is not null and not exists (
            select from {{schema}}.messages r where r.queue_no = q.no and r.value = h.value and r.state = 2)
          or v.running_seq is null and v.head_seq is distinct from (
            select m.seq from {{schema}}.messages m where m.queue_no = q.no and m.value = h.value and m.state = 1
            order by m.priority, m.seq limit 1)
        from {{schema}}.exclusive_values v where v.queue_no = q.no and v.value = h.value
      ) as is_wrong
    from head h
  )
  select array_agg(c.value order by c.value) filter (where c.is_wrong is not false), (select max(s.value) from step s)
  into wrong, last_value from checked c;

  if wrong is not null then perform {{schema}}.settle_values(q, wrong); end if;
  if last_value is not null or from_value <> '' then
    update {{schema}}.value_turns t
    set checked = coalesce(last_value, ''), repaired = t.repaired + coalesce(cardinality(wrong), 0)
    where t.queue_no = q.no;
  end if;
  return coalesce(cardinality(wrong), 0);
end $$;
