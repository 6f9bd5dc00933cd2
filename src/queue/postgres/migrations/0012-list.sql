-- Pages of messages of one state, in the order of an index from the row after (p_after_key, p_after_seq) on. A page ends
-- with p_limit + 1 rows, or with the last of 10,000 rows that were walked for it: that one is answered whether it matches
-- or not, so that the next page can go on behind it. Nothing is sorted, and no more is walked than the page needs.
--
-- Functions for their settings alone: without them the planner reads every message of the state and sorts those, whenever
-- it believes that there are few.
create type {{schema}}.listed as (
  seq bigint, id text, payload text, metadata text, priority bigint, state smallint, attempts integer, attempts_max integer,
  visible_at bigint, lease_until bigint, version bigint, enqueued_at bigint, started_at bigint, finished_at bigint, result text,
  error text, trace text, key bigint, place bigint
);

-- Pending messages, in the order of dequeue.
create function {{schema}}.list_pending(p_queue text, p_where jsonb, p_after_key bigint, p_after_seq bigint, p_limit integer)
returns setof {{schema}}.listed
language plpgsql stable
set plan_cache_mode = force_generic_plan set jit = off set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off
as $$
declare
  no integer := (select q.no from {{schema}}.queues q where q.name = p_queue);
begin
  return query
    select w.seq, w.id, w.payload, w.metadata::text, w.priority, w.state, w.attempts, w.attempts_max, w.visible_at, null::bigint,
      w.version, w.enqueued_at, w.started_at, null::bigint, null::text, w.error, w.trace, w.priority, w.place
    from (
      select m.*, row_number() over (order by m.priority, m.seq) as place from {{schema}}.messages m
      where m.queue_no = no and m.state = 1 and (m.priority, m.seq) > (p_after_key, p_after_seq)
      order by m.priority, m.seq limit 10000
    ) w
    where coalesce(w.metadata, '{}') @> p_where or w.place = 10000
    order by w.priority, w.seq limit p_limit + 1;
end $$;

-- Invisible or running messages, in the order in which they move by themselves; both stand in one index.
create function {{schema}}.list_due(
  p_queue text, p_state smallint, p_where jsonb, p_after_key bigint, p_after_seq bigint, p_limit integer
) returns setof {{schema}}.listed
language plpgsql stable
set plan_cache_mode = force_generic_plan set jit = off set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off
as $$
declare
  no integer := (select q.no from {{schema}}.queues q where q.name = p_queue);
begin
  return query
    select w.seq, w.id, w.payload, w.metadata::text, w.priority, w.state, w.attempts, w.attempts_max, w.visible_at,
      case when w.state = 2 then w.due_at end, w.version, w.enqueued_at, w.started_at, null::bigint, null::text, w.error, w.trace,
      w.due_at, w.place
    from (
      select m.*, row_number() over (order by m.due_at, m.seq) as place from {{schema}}.messages m
      where m.queue_no = no and m.due_at is not null and (m.due_at, m.seq) > (p_after_key, p_after_seq)
      order by m.due_at, m.seq limit 10000
    ) w
    where w.state = p_state and coalesce(w.metadata, '{}') @> p_where or w.place = 10000
    order by w.due_at, w.seq limit p_limit + 1;
end $$;

-- Ended messages, in the order of enqueue.
create function {{schema}}.list_finished(p_queue text, p_state smallint, p_where jsonb, p_after_seq bigint, p_limit integer)
returns setof {{schema}}.listed
language plpgsql stable
set plan_cache_mode = force_generic_plan set jit = off set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off
as $$
declare
  no integer := (select q.no from {{schema}}.queues q where q.name = p_queue);
begin
  return query
    select w.seq, w.id, w.payload, w.metadata::text, w.priority, w.state, w.attempts, w.attempts_max, w.visible_at, null::bigint,
      w.version, w.enqueued_at, w.started_at, w.finished_at, w.result, w.error, w.trace, 0::bigint, w.place
    from (
      select f.*, row_number() over (order by f.seq) as place from {{schema}}.finished f
      where f.queue_no = no and f.state = p_state and f.seq > p_after_seq
      order by f.seq limit 10000
    ) w
    where coalesce(w.metadata, '{}') @> p_where or w.place = 10000
    order by w.seq limit p_limit + 1;
end $$;

-- The same from the other end: the last that were enqueued first, from the row before p_before_seq on.
create function {{schema}}.list_finished_newest(p_queue text, p_state smallint, p_where jsonb, p_before_seq bigint, p_limit integer)
returns setof {{schema}}.listed
language plpgsql stable
set plan_cache_mode = force_generic_plan set jit = off set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off
as $$
declare
  no integer := (select q.no from {{schema}}.queues q where q.name = p_queue);
begin
  return query
    select w.seq, w.id, w.payload, w.metadata::text, w.priority, w.state, w.attempts, w.attempts_max, w.visible_at, null::bigint,
      w.version, w.enqueued_at, w.started_at, w.finished_at, w.result, w.error, w.trace, 0::bigint, w.place
    from (
      select f.*, row_number() over (order by f.seq desc) as place from {{schema}}.finished f
      where f.queue_no = no and f.state = p_state and f.seq < p_before_seq
      order by f.seq desc limit 10000
    ) w
    where coalesce(w.metadata, '{}') @> p_where or w.place = 10000
    order by w.seq desc limit p_limit + 1;
end $$;
