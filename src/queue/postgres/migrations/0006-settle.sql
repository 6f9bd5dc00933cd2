-- What the holder of leases does with them. A lease is named by the message's seq and the lease text, both of which its
-- token holds; `lease || ''` keeps the planner from looking messages up by the lease, which a whole batch shares, and
-- `state + 0` from reading the index of running messages for each, which looks small whenever few ran at the last analyze. Each
-- function answers one row for each lease: kind is done (freed where that also frees an exclusivity value), canceled, busy
-- or lost. One row with ord 0 stands for all of them where all completions are alike, which they mostly are. No lease may be
-- named twice in one call; one lease text stands for all of them.

create function {{schema}}.complete(
  p_queue text, p_seqs bigint[], p_leases text[], p_ids text[], p_results text[], p_now bigint
) returns table (ord integer, kind text, state smallint, version bigint, attempts integer, metadata text)
language plpgsql
set plan_cache_mode = force_generic_plan set jit = off set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  q {{schema}}.queues;
  t bigint := coalesce(p_now, floor(extract(epoch from statement_timestamp()) * 1000)::bigint);
  tids tid[];
  done integer[];
  results text[];
  seqs bigint[];
  versions bigint[];
  spent integer[];
  pairs jsonb[];
  first_seq bigint;
  last_seq bigint;
  alike boolean;
  has_pairs boolean;
  frees_ids boolean;
begin
  select * into q from {{schema}}.queues where name = p_queue;
  if cardinality(p_leases) < cardinality(p_seqs) then p_leases := array_fill(p_leases[1], array[cardinality(p_seqs)]); end if;

  -- What every completion needs. What few need comes below, each by itself: a statement is made ready anew for every call,
  -- and each of its parts has its price then.
  select array_agg(m.ctid), array_agg(x.place::integer), array_agg(x.result), array_agg(m.seq), array_agg(m.version + 1), array_agg(m.attempts),
    min(m.seq), max(m.seq), min(m.version) = max(m.version) and min(m.attempts) = max(m.attempts), count(m.metadata) > 0,
    q.completed_ms = 0 or bool_or(m.unique_while_live)
  into tids, done, results, seqs, versions, spent, first_seq, last_seq, alike, has_pairs, frees_ids
  from (
      select * from unnest(p_seqs, p_leases, p_ids, p_results) with ordinality as x(seq, lease, id, result, place) order by seq
    ) x cross join lateral (
      select m.ctid, m.seq, m.version, m.attempts, m.metadata, m.unique_while_live from {{schema}}.messages m
      where m.seq = x.seq and m.state + 0 = 2 and m.lease || '' = x.lease and m.id = x.id and m.queue_no = q.no
        and (m.attempts < m.attempts_max or m.due_at > t)
      for update skip locked
    ) m;

  if done is null then
    return query select * from {{schema}}.lost(q, t, p_seqs, p_leases, p_ids, done, 1::smallint);
    return;
  end if;

  -- The rows are locked from here on: the statements below see them as they were read.
  if has_pairs then
    pairs := array(select m.metadata from unnest(tids) with ordinality as x(ctid, place) join {{schema}}.messages m on m.ctid = x.ctid order by x.place);
  end if;
  if has_pairs or q.history = 'message' then
    perform {{schema}}.record(q, t, array(
      select row(m.seq, null, m.version + 1, m.attempts, 2, 3, m.metadata, m.value, null)::{{schema}}.moved
      from {{schema}}.messages m where m.ctid = any (tids)));
  else
    if q.history = 'batch' then
      insert into {{schema}}.events (queue_no, from_state, to_state, at, first_seq, last_seq, seqs, versions, attempts)
      values (q.no, 2, 3, t, first_seq, last_seq,
        case when not alike or last_seq - first_seq + 1 > cardinality(seqs) then seqs end,
        case when not alike or last_seq - first_seq + 1 > cardinality(seqs) then versions else versions[:1] end,
        case when not alike or last_seq - first_seq + 1 > cardinality(seqs) then spent else spent[:1] end);
    end if;
    insert into {{schema}}.depth_changes (queue_no, pair, invisible, pending, running) values (q.no, '', 0, 0, -cardinality(seqs));
  end if;

  if q.completed_ms = 0 then
    insert into {{schema}}.departed (seq, ended_at, version, minute, state, lease_end, lease)
    select m.seq, t, m.version + 1, (t / 60000) % 4, 3, 1, m.lease from {{schema}}.messages m where m.ctid = any (tids);
  elsif p_results = '{}' then
    insert into {{schema}}.finished (seq, priority, visible_at, enqueued_at, started_at, finished_at, expires_at, version, lease_ms,
      queue_no, attempts, attempts_max, state, lease_end, unique_while_live, id, lease, value, payload, metadata, trace, worker)
    select m.seq, m.priority, m.visible_at, m.enqueued_at, m.started_at, t, t + q.completed_ms, m.version + 1, m.lease_ms,
      m.queue_no, m.attempts, m.attempts_max, 3, 1, m.unique_while_live, m.id, m.lease, m.value, m.payload, m.metadata, m.trace, m.worker
    from {{schema}}.messages m where m.ctid = any (tids);
  else
    insert into {{schema}}.finished (seq, priority, visible_at, enqueued_at, started_at, finished_at, expires_at, version, lease_ms,
      queue_no, attempts, attempts_max, state, lease_end, unique_while_live, id, lease, value, payload, metadata, trace, worker, result)
    select m.seq, m.priority, m.visible_at, m.enqueued_at, m.started_at, t, t + q.completed_ms, m.version + 1, m.lease_ms,
      m.queue_no, m.attempts, m.attempts_max, 3, 1, m.unique_while_live, m.id, m.lease, m.value, m.payload, m.metadata, m.trace, m.worker, x.result
    from unnest(tids, results) as x(ctid, result) join {{schema}}.messages m on m.ctid = x.ctid;
  end if;
  if frees_ids then
    delete from {{schema}}.ids i where i.ctid = any (array(
      select k.ctid from (
          select m.id, m.seq from {{schema}}.messages m where m.ctid = any (tids) and (q.completed_ms = 0 or m.unique_while_live)
        ) m cross join lateral (
          select k.ctid from {{schema}}.ids k where k.queue_no = q.no and k.id = m.id and k.seq = m.seq limit 1
        ) k
    ));
  end if;
  delete from {{schema}}.messages m where m.ctid = any (tids);

  if alike and not has_pairs and cardinality(done) = cardinality(p_seqs) then
    return query select 0, case when q.exclusive_key is null then 'done' else 'freed' end, 3::smallint, versions[1], spent[1], null;
    return;
  end if;

  return query select x.place, case when q.exclusive_key is null then 'done' else 'freed' end, 3::smallint, x.version, x.attempts, x.metadata::text
    from unnest(done, versions, spent, pairs) as x(place, version, attempts, metadata);
  if cardinality(done) < cardinality(p_seqs) then
    return query select * from {{schema}}.lost(q, t, p_seqs, p_leases, p_ids, done, 1::smallint);
  end if;
end $$;

-- Why leases were not accepted: their holder has ended them so before (the same answer again), the message has been
-- canceled, somebody else holds the row this moment, or the lease is lost. A last attempt that has run out ends here.
create function {{schema}}.lost(
  q {{schema}}.queues, t bigint, p_seqs bigint[], p_leases text[], p_ids text[], p_done integer[], p_lease_end smallint
) returns table (ord integer, kind text, state smallint, version bigint, attempts integer, metadata text)
language plpgsql
set plan_cache_mode = force_generic_plan set jit = off set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  i integer;
  m {{schema}}.messages;
  f record;
  expired tid[];
begin
  for i in 1..cardinality(p_seqs) loop
    continue when i = any(p_done);
    select x.* into m from {{schema}}.messages x where x.seq = p_seqs[i] and x.queue_no = q.no and x.id = p_ids[i];
    if found then
      if m.lease is distinct from p_leases[i] then
        return query select i, 'lost', null::smallint, null::bigint, null::integer, null::text;
      elsif m.state = 2 and (m.attempts < m.attempts_max or m.due_at > t) then
        return query select i, 'busy', null::smallint, null::bigint, null::integer, null::text;
      elsif m.state = 2 then
        expired := array(select x.ctid from {{schema}}.messages x where x.seq = m.seq and x.version = m.version for update skip locked);
        if cardinality(expired) > 0 then
          perform {{schema}}.finish(q, t, expired, 5::smallint, 5::smallint, array['lease expired on the last attempt']);
        end if;
        return query select i, 'lost', null::smallint, null::bigint, null::integer, null::text;
      elsif m.lease_end = p_lease_end then
        return query select i, 'done', m.state, m.version, null::integer, null::text;
      else
        return query select i, 'lost', null::smallint, null::bigint, null::integer, null::text;
      end if;
      continue;
    end if;
    select x.state, x.version, x.lease_end into f from unnest('{3,4,5}'::smallint[]) e(state) cross join lateral (
        select * from {{schema}}.finished x where x.queue_no = q.no and x.state = e.state and x.seq = p_seqs[i] limit 1
      ) x where x.lease = p_leases[i] and x.id = p_ids[i];
    if not found then
      select x.state, x.version, x.lease_end into f from {{schema}}.departed x where x.seq = p_seqs[i] and x.lease = p_leases[i];
    end if;
    if not found then
      return query select i, 'lost', null::smallint, null::bigint, null::integer, null::text;
    elsif f.lease_end = 4 then
      return query select i, 'canceled', null::smallint, null::bigint, null::integer, null::text;
    elsif f.lease_end = p_lease_end then
      return query select i, 'done', f.state, f.version, null::integer, null::text;
    else
      return query select i, 'lost', null::smallint, null::bigint, null::integer, null::text;
    end if;
  end loop;
end $$;

-- Ends leases without completing: `p_lease_end` 2 fail, 3 release. A null delay, or no attempts left (unless refunded),
-- makes the message errored.
create function {{schema}}.give_back(
  p_queue text, p_seqs bigint[], p_leases text[], p_ids text[], p_delays bigint[], p_errors text[], p_refunds boolean[],
  p_lease_end smallint, p_now bigint
) returns table (ord integer, kind text, state smallint, version bigint, attempts integer, metadata text)
language plpgsql
set plan_cache_mode = force_generic_plan set jit = off set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  q {{schema}}.queues;
  t bigint := coalesce(p_now, floor(extract(epoch from statement_timestamp()) * 1000)::bigint);
  moves {{schema}}.moved[];
  ended {{schema}}.moved[];
  ending tid[];
  errors text[];
  places integer[];
  done integer[];
begin
  select * into q from {{schema}}.queues where name = p_queue;
  if cardinality(p_leases) < cardinality(p_seqs) then p_leases := array_fill(p_leases[1], array[cardinality(p_seqs)]); end if;

  with held as materialized (
    select x.place, x.delay, x.error, coalesce(x.refund, false) as refund, m.ctid,
      x.delay is null or (m.attempts >= m.attempts_max and not coalesce(x.refund, false)) as is_end
    from (
        select * from unnest(p_seqs, p_leases, p_ids, p_delays, p_errors, p_refunds) with ordinality as x(seq, lease, id, delay, error, refund, place) order by seq
      ) x cross join lateral (
        select m.ctid, m.attempts, m.attempts_max from {{schema}}.messages m
        where m.seq = x.seq and m.state + 0 = 2 and m.lease || '' = x.lease and m.id = x.id and m.queue_no = q.no
          and (m.attempts < m.attempts_max or m.due_at > t)
        for update skip locked
      ) m
  ), back as (
    update {{schema}}.messages m
    set state = case when h.delay > 0 then 0 else 1 end, visible_at = t + h.delay, due_at = case when h.delay > 0 then t + h.delay end,
      version = m.version + 1, lease_end = p_lease_end, attempts = m.attempts - h.refund::integer, error = coalesce(h.error, m.error)
    from held h where m.ctid = h.ctid and not h.is_end
    returning m.seq, m.priority, m.version, m.attempts, m.state as to_state, m.metadata, m.value, m.id, h.place
  )
  select
    (select array_agg(row(b.seq, b.priority, b.version, b.attempts, 2, b.to_state, b.metadata, b.value, b.id)::{{schema}}.moved order by b.place)
      from back b),
    (select array_agg(b.place::integer order by b.place) from back b),
    array_agg(h.ctid) filter (where h.is_end), array_agg(coalesce(h.error, 'released with no attempts left')) filter (where h.is_end),
    array_agg(h.place::integer) filter (where h.is_end)
  into moves, places, ending, errors, done
  from held h;

  perform {{schema}}.record(q, t, moves);
  if ending is not null then
    ended := {{schema}}.finish(q, t, ending, 5::smallint, p_lease_end, errors);
    return query
      select x.place::integer, case when q.exclusive_key is null then 'done' else 'freed' end, (x.move).to_state, (x.move).version,
        (x.move).attempts, (x.move).metadata::text
      from {{schema}}.beside_moves(p_ids, ended) x where (x.move).seq = p_seqs[x.place];
  end if;
  return query
    select m.place, case when q.exclusive_key is null then 'done' else 'freed' end, m.to_state, m.version, m.attempts, m.metadata::text
    from unnest(places, moves) as m(place, seq, priority, version, attempts, from_state, to_state, metadata, value, id);
  if coalesce(cardinality(done || places), 0) < cardinality(p_seqs) then
    return query select * from {{schema}}.lost(q, t, p_seqs, p_leases, p_ids, done || places, p_lease_end);
  end if;
end $$;

-- New ends for leases: `p_lease_ms` from now, else the message's own, else the queue's.
create function {{schema}}.extend(
  p_queue text, p_seqs bigint[], p_leases text[], p_ids text[], p_lease_ms bigint[], p_now bigint
) returns table (ord integer, kind text, state smallint, version bigint, attempts integer, metadata text, lease_until bigint)
language plpgsql
set plan_cache_mode = force_generic_plan set jit = off set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  q {{schema}}.queues;
  t bigint := coalesce(p_now, floor(extract(epoch from statement_timestamp()) * 1000)::bigint);
  moves {{schema}}.moved[];
  done integer[];
  untils bigint[];
begin
  select * into q from {{schema}}.queues where name = p_queue;
  if cardinality(p_leases) < cardinality(p_seqs) then p_leases := array_fill(p_leases[1], array[cardinality(p_seqs)]); end if;
  with held as materialized (
    select x.place, x.lease_ms, m.ctid
    from (
        select * from unnest(p_seqs, p_leases, p_ids, p_lease_ms) with ordinality as x(seq, lease, id, lease_ms, place) order by seq
      ) x cross join lateral (
        select m.ctid, m.attempts, m.attempts_max from {{schema}}.messages m
        where m.seq = x.seq and m.state + 0 = 2 and m.lease || '' = x.lease and m.id = x.id and m.queue_no = q.no
          and (m.attempts < m.attempts_max or m.due_at > t)
        for update skip locked
      ) m
  ), longer as (
    update {{schema}}.messages m
    set due_at = t + coalesce(h.lease_ms, m.lease_ms, q.lease_ms), version = m.version + 1
    from held h where m.ctid = h.ctid
    returning m.seq, m.priority, m.version, m.attempts, m.metadata, m.due_at, m.id, h.place
  )
  select array_agg(row(l.seq, l.priority, l.version, l.attempts, 2, 2, l.metadata, null, l.id)::{{schema}}.moved order by l.place),
    array_agg(l.place::integer order by l.place), array_agg(l.due_at order by l.place)
  into moves, done, untils
  from longer l;

  perform {{schema}}.record(q, t, moves);
  return query
    select m.place, 'done', 2::smallint, m.version, m.attempts, m.metadata::text, m.until
    from unnest(done, untils, moves) as m(place, until, seq, priority, version, attempts, from_state, to_state, metadata, value, id);
  if coalesce(cardinality(done), 0) < cardinality(p_seqs) then
    return query select l.*, null::bigint from {{schema}}.lost(q, t, p_seqs, p_leases, p_ids, done, 0::smallint) l;
  end if;
end $$;
