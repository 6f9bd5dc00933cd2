-- In all of these functions a list drives the look-ups (lateral, with a lock or a limit that keeps the planner from turning
-- it round) and rows that are locked are found again by ctid: no plan depends on what the planner believes of tables that
-- are empty in one minute and hold millions in the next.

-- What several operations share: the record of a batch of moves, and the two ways in which a running message ends.

-- One event a batch and kind of move (or a message), and the change in depth. `moves` holds, for each message: seq,
-- version, attempts, from, to, and its
-- exclusivity value, which is noted as changed.
create type {{schema}}.moved as (
  seq bigint, priority bigint, version bigint, attempts integer, from_state smallint, to_state smallint, metadata jsonb,
  value text, id text
);

create function {{schema}}.record(q {{schema}}.queues, t bigint, moves {{schema}}.moved[]) returns void
language plpgsql
as $$
#variable_conflict use_column
begin
  if moves is null then return; end if;
  if q.history <> 'off' then
    insert into {{schema}}.events (queue_no, from_state, to_state, at, first_seq, last_seq, seqs, versions, attempts)
    select q.no, b.from_state, b.to_state, t, b.first_seq, b.last_seq, case when not b.alike then b.seqs end,
      case when b.alike then b.versions[:1] else b.versions end, case when b.alike then b.attempts[:1] else b.attempts end
    from (
      select m.from_state, m.to_state, min(m.seq) as first_seq, max(m.seq) as last_seq, array_agg(m.seq) as seqs,
        array_agg(m.version) as versions, array_agg(m.attempts) as attempts,
        max(m.seq) - min(m.seq) + 1 = count(*) and min(m.version) = max(m.version) and min(m.attempts) = max(m.attempts) as alike
      from unnest(moves) m
      group by m.from_state, m.to_state, case when q.history = 'message' then m.seq end
    ) b;
  end if;
  if q.exclusive_key is not null then
    insert into {{schema}}.value_changes (queue_no, value)
    select distinct q.no, m.value from unnest(moves) m where m.value is not null;
  end if;
  insert into {{schema}}.dips (queue_no, priority, seq)
    select q.no, m.priority, m.seq from unnest(moves) m join {{schema}}.marks k on k.queue_no = q.no
    where m.to_state = 1 and (m.priority, m.seq) < (k.priority, k.seq)
    order by m.priority, m.seq limit 1;
  perform {{schema}}.count_moves(q, moves);
end $$;

create function {{schema}}.count_moves(q {{schema}}.queues, moves {{schema}}.moved[]) returns void
language plpgsql
set plan_cache_mode = force_generic_plan set jit = off set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
#variable_conflict use_column
begin
  with change as (
    select e.pair,
      sum(case when m.to_state = 0 then 1 else 0 end - case when m.from_state = 0 then 1 else 0 end)::integer as invisible,
      sum(case when m.to_state = 1 then 1 else 0 end - case when m.from_state = 1 then 1 else 0 end)::integer as pending,
      sum(case when m.to_state = 2 then 1 else 0 end - case when m.from_state = 2 then 1 else 0 end)::integer as running
    from unnest(moves) m cross join lateral (
      select '' as pair union all select {{schema}}.pair_of(p.key, p.value) from jsonb_each_text(m.metadata) p
    ) e
    group by e.pair
  )
  insert into {{schema}}.depth_changes (queue_no, pair, invisible, pending, running)
  select q.no, c.pair, c.invisible, c.pending, c.running from change c
  where c.invisible <> 0 or c.pending <> 0 or c.running <> 0;

  -- The pair index holds what is pending, so nothing is done for messages without metadata.
  delete from {{schema}}.pairs p using (
      select k.ctid from unnest(moves) m cross join lateral jsonb_each_text(m.metadata) e cross join lateral (
        select k.ctid from {{schema}}.pairs k
        where k.queue_no = q.no and k.pair = hashtextextended({{schema}}.pair_of(e.key, e.value), 0)
          and k.priority = m.priority and k.seq = m.seq limit 1
      ) k
      where m.from_state = 1
    ) k
    where p.ctid = k.ctid;
  insert into {{schema}}.pairs (queue_no, pair, priority, seq)
    select q.no, hashtextextended({{schema}}.pair_of(e.key, e.value), 0), m.priority, m.seq
    from unnest(moves) m cross join lateral jsonb_each_text(m.metadata) e
    where m.to_state = 1
    on conflict do nothing;
end $$;
