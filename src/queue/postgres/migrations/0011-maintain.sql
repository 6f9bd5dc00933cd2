-- What keeps history small without deleting rows one by one: terminal messages and events lie in partitions of a day,
-- which are dropped whole, and the tokens of a minute are emptied whole. Called once a minute by any number of processes.
-- Nothing here waits longer than 50 ms for a lock, so that a reader of history holds up neither this nor a completion;
-- what could not be done is done the next time.

create table {{schema}}.expiring (
  partition text primary key,
  next_block bigint not null default 0
);

create index events_default_at on {{schema}}.events_default (at);

create function {{schema}}.maintain(p_now bigint) returns void
language plpgsql
set lock_timeout = '50ms'
as $$
#variable_conflict use_column
declare
  t bigint := coalesce(p_now, floor(extract(epoch from statement_timestamp()) * 1000)::bigint);
  day constant bigint := 86400000;
  retention bigint;
  kept bigint := greatest(day, (select max(greatest(q.completed_ms, q.canceled_ms, q.errored_ms)) from {{schema}}.queues q));
begin
  perform {{schema}}.empty_tokens(t);
  -- Always for tomorrow: attaching a partition refuses rows that are on their way into the default one for its range.
  perform {{schema}}.make_partition('events', t / day + 1);
  for retention in
    select distinct r.ms from {{schema}}.queues q cross join lateral (values (q.completed_ms), (q.canceled_ms), (q.errored_ms)) r(ms)
    where r.ms >= 3600000
  loop
    perform {{schema}}.make_partition('finished', (t + retention) / day + 1);
  end loop;
  perform {{schema}}.drop_partitions('events', (t - kept) / day - 1);
  perform {{schema}}.expire_partition(t / day);
  delete from {{schema}}.events_default e
    where e.ctid = any (array(select x.ctid from {{schema}}.events_default x where x.at < t - kept - day limit 5000));
end $$;

-- Empties the minute after next: what is in it has ended two minutes ago or more.
create function {{schema}}.empty_tokens(t bigint) returns void
language plpgsql
as $$
begin
  case (t / 60000 + 2) % 4
    when 0 then if pg_relation_size('{{schema}}.departed_0') > 0 then truncate {{schema}}.departed_0; end if;
    when 1 then if pg_relation_size('{{schema}}.departed_1') > 0 then truncate {{schema}}.departed_1; end if;
    when 2 then if pg_relation_size('{{schema}}.departed_2') > 0 then truncate {{schema}}.departed_2; end if;
    else if pg_relation_size('{{schema}}.departed_3') > 0 then truncate {{schema}}.departed_3; end if;
  end case;
exception when lock_not_available or deadlock_detected then
  null;
end $$;

-- A partition for one day, unless it exists, or the default partition already holds rows of that day.
create function {{schema}}.make_partition(p_table text, p_day bigint) returns void
language plpgsql
as $$
declare
  partition text := format('%s_day_%s', p_table, p_day);
begin
  if to_regclass(format('{{schema}}.%I', partition)) is not null then return; end if;
  execute format('create table {{schema}}.%I (like {{schema}}.%I including defaults including constraints)', partition, p_table);
  execute format('alter table {{schema}}.%I attach partition {{schema}}.%I for values from (%s) to (%s)',
    p_table, partition, p_day * 86400000, (p_day + 1) * 86400000);
exception when lock_not_available or deadlock_detected or check_violation or duplicate_table or unique_violation then
  null;
end $$;

-- The days of a table that have partitions, up to `p_last`.
create function {{schema}}.partition_days(p_table text, p_last bigint) returns setof bigint
language sql stable
as $$
  select d.day from (
    select substring(c.relname from '_day_(\d+)$')::bigint as day
    from pg_inherits i join pg_class c on c.oid = i.inhrelid
    where i.inhparent = format('{{schema}}.%I', p_table)::regclass and c.relname ~ '_day_\d+$'
  ) d
  where d.day <= p_last order by d.day
$$;

create function {{schema}}.drop_partitions(p_table text, p_last bigint) returns void
language plpgsql
as $$
declare
  day bigint;
begin
  for day in select * from {{schema}}.partition_days(p_table, p_last) loop
    execute format('alter table {{schema}}.%I detach partition {{schema}}.%I', p_table, format('%s_day_%s', p_table, day));
    execute format('drop table {{schema}}.%I', format('%s_day_%s', p_table, day));
  end loop;
exception when lock_not_available or deadlock_detected or undefined_table then
  null;
end $$;

-- A day of terminal messages whose retention has passed: its ids are set free in steps of some blocks, then it goes. Each
-- id is looked up: a join that reads all ids looks cheaper to the planner while a step is a good part of them.
create function {{schema}}.expire_partition(p_today bigint) returns void
language plpgsql
set jit = off set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  day bigint := (select min(d) from {{schema}}.partition_days('finished', p_today - 1) d);
  name text := format('finished_day_%s', day);
  block bigint;
  blocks bigint;
begin
  if day is null then return; end if;
  insert into {{schema}}.expiring (partition) values (name) on conflict do nothing;
  select e.next_block into block from {{schema}}.expiring e where e.partition = name for update skip locked;
  if not found then return; end if;
  blocks := pg_relation_size(format('{{schema}}.%I', name)) / current_setting('block_size')::bigint;
  for step in 1..20 loop
    exit when block >= blocks;
    execute format(
      'delete from {{schema}}.ids i using {{schema}}.%I f
       where f.ctid >= %L::tid and f.ctid < %L::tid and i.queue_no = f.queue_no and i.id = f.id and i.seq = f.seq',
      name, format('(%s,0)', block), format('(%s,0)', block + 100));
    block := block + 100;
  end loop;
  if block < blocks then
    update {{schema}}.expiring e set next_block = block where e.partition = name;
  else
    delete from {{schema}}.expiring e where e.partition = name;
    perform {{schema}}.drop_partitions('finished', day);
  end if;
end $$;
