-- Enqueues a batch in one call, so that it works through any client in any transaction. Locks nothing that outlives a
-- conflict on an id, and raises nothing: an error would kill the caller's transaction.
--
-- Short arrays are padded with null. Answers one row for each message that was not simply created (or for all with
-- p_detail), and before them one row (ord 0) whose `state` is what a message without a delay of its own became. Ended
-- messages are looked for state by state: a plan that was made while there were few would filter all of a queue's by a list.
create function {{schema}}.enqueue(
  p_queue text, p_ids text[], p_payloads text[], p_metadata text[], p_priorities bigint[], p_delays bigint[],
  p_attempts_max integer[], p_leases bigint[], p_unique boolean[], p_traces text[],
  p_channel text, p_detail boolean, p_new_ids boolean, p_now bigint
) returns table (ord integer, outcome text, state smallint, seq bigint)
language plpgsql
set plan_cache_mode = force_generic_plan set jit = off set enable_seqscan = off set enable_bitmapscan = off
as $$
#variable_conflict use_column
declare
  q {{schema}}.queues;
  t bigint := coalesce(p_now, floor(extract(epoch from statement_timestamp()) * 1000)::bigint);
  n integer := cardinality(p_ids);
  seqs bigint[];
  written integer;
  fresh boolean[];
  known {{schema}}.ids;
  found_state smallint;
  i integer;
begin
  select * into q from {{schema}}.queues where name = p_queue;
  if not found then
    insert into {{schema}}.queues (name) values (p_queue) on conflict do nothing;
    select * into q from {{schema}}.queues where name = p_queue;
  end if;
  if q.enqueue_blocked then
    return query select 0, 'blocked', null::smallint, null::bigint;
    -- What is known is answered all the same.
    return query select x.place::integer,
        case when k.payload_hash = hashtextextended(x.payload, 0) then 'known' else 'conflict' end, coalesce(m.state, f.state), k.seq
      from unnest(p_ids, p_payloads) with ordinality as x(id, payload, place)
        cross join lateral (select * from {{schema}}.ids k where k.queue_no = q.no and k.id = x.id limit 1) k
        left join lateral (select m.state from {{schema}}.messages m where m.seq = k.seq limit 1) m on true
        left join lateral (
          select f.state from unnest('{3,4,5}'::smallint[]) e(state) cross join lateral (
            select f.state from {{schema}}.finished f where f.queue_no = q.no and f.state = e.state and f.seq = k.seq limit 1
          ) f limit 1
        ) f on m.state is null
      where m.state is not null or f.state is not null;
    return;
  end if;

  seqs := array(select nextval('{{schema}}.seq') from generate_series(1, n));
  -- Ids that nobody has brought are new but for a call that is sent again. Asking the index first whether each is there, and
  -- confirming each row afterwards, is a third of what an id costs.
  if p_new_ids and n > 10 then
    begin
      insert into {{schema}}.ids (queue_no, id, seq, payload_hash)
        select q.no, x.id, x.seq, hashtextextended(x.payload, 0)
        from unnest(seqs, p_ids, p_payloads, p_metadata) as x(seq, id, payload, metadata)
        where q.exclusive_key is null or jsonb_exists(x.metadata::jsonb, q.exclusive_key)
        order by x.id collate "C";
      get diagnostics written = row_count;
    exception when unique_violation then
      written := null;
    end;
  end if;
  if written is null then
    -- Sorted: two batches that share ids wait for each other in one order.
    insert into {{schema}}.ids (queue_no, id, seq, payload_hash)
      select q.no, x.id, x.seq, hashtextextended(x.payload, 0)
      from unnest(seqs, p_ids, p_payloads, p_metadata) as x(seq, id, payload, metadata)
      where q.exclusive_key is null or jsonb_exists(x.metadata::jsonb, q.exclusive_key)
      order by x.id collate "C", x.seq
      on conflict do nothing;
    get diagnostics written = row_count;
  end if;

  if written < n then
    fresh := array(
      select exists (select from {{schema}}.ids where ids.queue_no = q.no and ids.id = x.id and ids.seq = x.seq)
      from unnest(seqs, p_ids) with ordinality as x(seq, id, place) order by x.place);
  end if;

  if written > 0 then
    perform {{schema}}.enqueue_fresh(q, t, fresh, seqs, p_ids, p_payloads, p_metadata, p_priorities, p_delays, p_attempts_max,
      p_leases, p_unique, p_traces);
    if p_channel is not null then perform pg_notify(p_channel, p_queue); end if;
  end if;

  return query select 0, 'default', (case when q.delay_ms > 0 then 0 else 1 end)::smallint, seqs[1];
  if written = n and not p_detail then return; end if;

  for i in 1..n loop
    if fresh is null or fresh[i] then
      if p_detail then
        return query select i, 'created', (case when coalesce(p_delays[i], q.delay_ms) > 0 then 0 else 1 end)::smallint, seqs[i];
      end if;
      continue;
    end if;
    select * into known from {{schema}}.ids where ids.queue_no = q.no and ids.id = p_ids[i];
    -- A message without the key is not made known by another of its batch.
    if not found or (known.seq >= seqs[1] and q.exclusive_key is not null
        and not coalesce(jsonb_exists(p_metadata[i]::jsonb, q.exclusive_key), false)) then
      -- Refused for want of the key, or set free this moment: the caller asks again.
      return query select i, case when q.exclusive_key is null or jsonb_exists(p_metadata[i]::jsonb, q.exclusive_key)
        then 'again' else 'key-missing:' || q.exclusive_key end, null::smallint, null::bigint;
      continue;
    end if;
    select m.state into found_state from {{schema}}.messages m where m.seq = known.seq;
    if not found then
      select f.state into found_state from unnest('{3,4,5}'::smallint[]) e(state) cross join lateral (
          select f.state from {{schema}}.finished f where f.queue_no = q.no and f.state = e.state and f.seq = known.seq limit 1
        ) f limit 1;
    end if;
    return query select i, case when found_state is null then 'again'
      when known.payload_hash = hashtextextended(p_payloads[i], 0) then 'known' else 'conflict' end, found_state, known.seq;
  end loop;
end $$;

-- Writes the messages of a batch whose ids are new; `fresh` null means all of them.
create function {{schema}}.enqueue_fresh(
  q {{schema}}.queues, t bigint, fresh boolean[], seqs bigint[], p_ids text[], p_payloads text[], p_metadata text[],
  p_priorities bigint[], p_delays bigint[], p_attempts_max integer[], p_leases bigint[], p_unique boolean[], p_traces text[]
) returns void
language plpgsql
as $$
#variable_conflict use_column
declare
  written bigint[];
  states smallint[];
  values text[];
  waiting integer;
  first_seq bigint;
  last_seq bigint;
  low_priority bigint;
  low_seq bigint;
  with_metadata boolean := cardinality(p_metadata) > 0;
begin
  insert into {{schema}}.messages (seq, priority, due_at, visible_at, enqueued_at, lease_ms, queue_no, attempts_max, state,
    unique_while_live, id, value, payload, metadata, trace)
  select x.seq, coalesce(x.priority, t), case when d.delay > 0 then t + d.delay end, t + d.delay, t, x.lease_ms, q.no,
    coalesce(x.attempts_max, q.attempts_max), case when d.delay > 0 then 0 else 1 end, coalesce(x.is_unique, false), x.id,
    x.metadata::jsonb ->> q.exclusive_key, x.payload, x.metadata::jsonb, x.trace
  from unnest(seqs, p_ids, p_payloads, p_metadata, p_priorities, p_delays, p_attempts_max, p_leases, p_unique, p_traces, fresh)
      as x(seq, id, payload, metadata, priority, delay, attempts_max, lease_ms, is_unique, trace, fresh)
    cross join lateral (select coalesce(x.delay, q.delay_ms) as delay) d
  where fresh is null or x.fresh;

  -- What was written follows from what was given: rows that come back from an insert cost a tenth of it.
  if fresh is null and p_delays = '{}' and q.exclusive_key is null then
    written := seqs;
    first_seq := seqs[1];
    last_seq := seqs[cardinality(seqs)];
    waiting := 0;
    if q.delay_ms = 0 then
      waiting := cardinality(seqs);
      low_seq := first_seq;
      low_priority := t;
      if p_priorities <> '{}' then low_priority := (select min(coalesce(x, t)) from unnest(p_priorities) x); end if;
    end if;
    states := array[case when waiting = 0 then 0 else 1 end];
  else
    select array_agg(w.seq), array_agg(w.state), array_agg(w.value) filter (where w.value is not null and w.state = 1),
      count(*) filter (where w.state = 1), min(w.seq), max(w.seq), min(w.priority) filter (where w.state = 1), min(w.seq) filter (where w.state = 1)
    into written, states, values, waiting, first_seq, last_seq, low_priority, low_seq
    from (
      select x.seq, coalesce(x.priority, t) as priority, case when coalesce(x.delay, q.delay_ms) > 0 then 0 else 1 end as state,
        x.metadata::jsonb ->> q.exclusive_key as value
      from unnest(seqs, p_priorities, p_delays, p_metadata, fresh) as x(seq, priority, delay, metadata, fresh)
      where fresh is null or x.fresh
    ) w;
  end if;

  -- A dip may lie before its message, not behind it.
  insert into {{schema}}.dips (queue_no, priority, seq)
    select q.no, low_priority, low_seq from {{schema}}.marks k
    where k.queue_no = q.no and (low_priority, low_seq) < (k.priority, k.seq);
  if values is not null then
    insert into {{schema}}.value_changes (queue_no, value) select distinct q.no, x.value from unnest(values) x(value);
  end if;
  if q.history = 'batch' and waiting in (0, cardinality(written)) then
    insert into {{schema}}.events (queue_no, to_state, at, first_seq, last_seq, seqs)
    values (q.no, states[1], t, first_seq, last_seq, case when last_seq - first_seq + 1 > cardinality(written) then written end);
  elsif q.history <> 'off' then
    if cardinality(states) < cardinality(written) then states := array_fill(states[1], array[cardinality(written)]); end if;
    insert into {{schema}}.events (queue_no, to_state, at, first_seq, last_seq, seqs)
    select q.no, x.state, t, min(x.seq), max(x.seq), case when max(x.seq) - min(x.seq) + 1 > count(*) then array_agg(x.seq) end
    from unnest(written, states) x(seq, state)
    group by x.state, case when q.history = 'message' then x.seq end;
  end if;
  insert into {{schema}}.depth_changes (queue_no, pair, invisible, pending, running)
  values (q.no, '', cardinality(written) - waiting, waiting, 0);
  if not with_metadata then return; end if;

  with pair as (
    select {{schema}}.pair_of(e.key, e.value) as pair, coalesce(x.priority, t) as priority, x.seq,
      coalesce(x.delay, q.delay_ms) > 0 as is_delayed
    from unnest(seqs, p_metadata, p_priorities, p_delays, fresh) as x(seq, metadata, priority, delay, fresh)
      cross join lateral jsonb_each_text(x.metadata::jsonb) e
    where fresh is null or x.fresh
  ), indexed as (
    insert into {{schema}}.pairs (queue_no, pair, priority, seq)
    select q.no, hashtextextended(p.pair, 0), p.priority, p.seq from pair p where not p.is_delayed
    on conflict do nothing
  )
  insert into {{schema}}.depth_changes (queue_no, pair, invisible, pending, running)
    select q.no, p.pair, count(*) filter (where p.is_delayed), count(*) filter (where not p.is_delayed), 0
    from pair p group by p.pair;
end $$;
