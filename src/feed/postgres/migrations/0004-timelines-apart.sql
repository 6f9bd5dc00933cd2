-- Timelines that are kept outside the database, as lists in Redis. The database keeps who has one (readers, with a floor
-- of the largest bigint: the table holds none of it), which servers it trusts, and what those could lose with their last
-- moments. Homes are read from a window of the list that the caller has fetched.

-- The servers that hold timelines now, by run and replication id. A reply of any other server is not believed: what it
-- holds may be younger than what the database was told.
create table {{schema}}.timeline_servers (
  id text collate "C" primary key,
  -- Timelines built with a token below have been in doubt since this server came, and are built anew.
  tokens_from bigint not null default 0,
  -- Counts up while somebody works with this server: two servers that both count are two installations in one database.
  beats bigint not null default 0
);

-- What was written outside lately, as long as a server may lose it: fan-outs that have ended, and readers whose timeline
-- was filled in another way.
create table {{schema}}.timeline_journal (
  number bigint generated always as identity primary key,
  post bigint,
  author bigint,
  lane text,
  published_at bigint,
  reader bigint,
  at bigint not null
);
create index timeline_journal_by_time on {{schema}}.timeline_journal (at);

-- Who takes these batches (null: all followers of the post): followers in the range who have a timeline and were seen lately,
-- and the author, whose own entry goes with the fan-out. Posts of one author that go to the same range are one row; `asked` has
-- their places in p_posts. A batch that has been done is in no row.
create function {{schema}}.fan_out_takers(
  p_posts bigint[], p_batches integer[], p_active_ms bigint, p_entries boolean, p_now bigint)
returns table (asked integer[], followers text, author bigint)
language plpgsql stable
-- Thousands of rows each, which looks dear enough to be compiled, at several times the cost of the work; and no reader is
-- looked up twice.
set jit = off
set enable_memoize = off
as $$
#variable_conflict use_column
declare
  seen_after bigint := coalesce(p_now, floor(extract(epoch from statement_timestamp()) * 1000)::bigint) - p_active_ms;
begin
  return query
  with work as (
    select array_agg(a.place::integer) as asked, w.author, p.deleted_at is null and p_entries as lives,
      min(p.id) filter (where p.visibility = 'public') as oldest_public,
      coalesce(b.follower_from, 0) as from_number, coalesce(b.follower_until, 9223372036854775807) as until_number
    from unnest(p_posts, p_batches) with ordinality as a (post, batch, place)
    join {{schema}}.fan_outs w on w.post = a.post
    join {{schema}}.posts p on p.id = a.post
    left join {{schema}}.fan_out_batches b on b.post = a.post and b.batch = a.batch
    where a.batch is null or b.batch is not null
    group by w.author, lives, from_number, until_number)
  select work.asked, case when lives then nullif(concat_ws(',', (
      -- One text: an array of so many is dear to take apart.
      select string_agg(f.follower::text, ',') from {{schema}}.follows f
      join {{schema}}.readers r on r.account = f.follower and r.state in ('building', 'live') and r.seen_at > seen_after
      where f.followee = work.author and f.kept_until is null
        and f.follower > work.from_number and f.follower <= work.until_number), (
      -- Who keeps the author's history keeps what is dated back into it.
      select string_agg(f.follower::text, ',') from {{schema}}.follows f
      join {{schema}}.readers r on r.account = f.follower and r.state in ('building', 'live') and r.seen_at > seen_after
      where f.followee = work.author and f.kept_until >= work.oldest_public
        and f.follower > work.from_number and f.follower <= work.until_number)), '') end,
    (select r.account from {{schema}}.readers r
      where lives and r.account = work.author and r.state in ('building', 'live'))
  from work;
end $$;

-- Marks batches as done whose entries have been written outside, and ends the fan-outs that have none left; a batch of null is
-- a whole fan-out. Only if all these servers are trusted, which they stay until the commit. `p_wrote`: whether that batch
-- wrote anything, which the journal then notes. A fan-out that ends says so in the last row of its post.
create function {{schema}}.end_batches(
  p_posts bigint[], p_batches integer[], p_wrote boolean[], p_servers text[], p_now bigint)
returns table (place integer, holds boolean, done boolean, ended_after bigint, lane text)
language plpgsql as $$
#variable_conflict use_column
declare
  now_ms bigint := coalesce(p_now, floor(extract(epoch from clock_timestamp()) * 1000)::bigint);
  trusted integer;
begin
  perform 1 from {{schema}}.timeline_servers s where s.id = any(p_servers) order by s.id for key share;
  get diagnostics trusted = row_count;
  if trusted < cardinality(p_servers) then
    return query select a.place::integer, false, false, null::bigint, null::text
      from unnest(p_posts) with ordinality as a (post, place);
    return;
  end if;
  -- Two last batches at once: who comes second waits here, and in its later statements sees both ranges gone.
  perform 1 from {{schema}}.fan_outs w where w.post = any(p_posts) order by w.post for update;
  return query
  with asked as (
    select a.post, a.batch, a.wrote, a.place::integer as place
    from unnest(p_posts, p_batches, p_wrote) with ordinality as a (post, batch, wrote, place)),
  ranges as (
    delete from {{schema}}.fan_out_batches b using asked a where b.post = a.post and b.batch = a.batch
    returning b.post, a.place, a.wrote),
  whole as (select w.post, a.place, a.wrote from asked a join {{schema}}.fan_outs w on w.post = a.post where a.batch is null),
  marked as (select * from ranges union all select * from whole),
  ended as (
    delete from {{schema}}.fan_outs w
    where w.post in (select m.post from whole m)
      or w.post in (select m.post from ranges m) and not exists (
        select 1 from {{schema}}.fan_out_batches b
        where b.post = w.post and b.batch not in (select a.batch from asked a where a.post = w.post and a.batch is not null))
    returning w.post, now_ms - w.published_at as after, w.lane),
  journal as (
    insert into {{schema}}.timeline_journal (post, author, lane, published_at, at)
    select w.post, w.author, w.lane, w.published_at, now_ms from {{schema}}.fan_outs w
    where w.post in (select m.post from marked m where m.wrote))
  select a.place, true, m.post is not null, e.after, e.lane
  from asked a left join marked m on m.place = a.place
  left join ended e on e.post = m.post and m.place = (select max(o.place) from marked o where o.post = m.post);
end $$;

-- Candidates of a list and of the database as one, down (or up) to where the shallower of the two ends.
create function {{schema}}.merge_listed(
  p_base {{schema}}.home_candidates, p_listed bigint[], p_listed_more boolean, p_older boolean, p_count integer)
returns {{schema}}.home_candidates
language plpgsql immutable as $$
declare
  sign bigint := case when p_older then 1 else -1 end;
  -- In the order of the walk a later candidate is a smaller one.
  shallowest bigint := -9223372036854775807;
  total integer;
  answer {{schema}}.home_candidates;
begin
  if p_listed_more and cardinality(p_listed) > 0 then
    shallowest := sign * p_listed[cardinality(p_listed)];
  end if;
  if p_base.more and cardinality(p_base.ids) > 0 then
    shallowest := greatest(shallowest, sign * p_base.ids[cardinality(p_base.ids)]);
  end if;
  select coalesce(array_agg(c.id order by sign * c.id desc), '{}'),
    coalesce(array_agg(c.source order by sign * c.id desc), '{}'), count(*)
  into answer.ids, answer.sources, total
  from (
    select u.id, min(u.source) as source from (
      select unnest(p_listed) as id, 2 as source
      union all select unnest(p_base.ids), unnest(p_base.sources)) u
    where sign * u.id >= shallowest
    group by u.id order by sign * u.id desc limit p_count) c;
  answer.more := p_base.more or p_listed_more or total >= p_count;
  return answer;
end $$;

-- One page of a home whose timeline is outside: `p_entries` are those of the list beyond the position, nearest first,
-- `p_more` says that the list goes on behind them. They count only if the server is trusted and the token is that of the
-- reader's build. Ends early, not exhausted, where the window ends. The last row holds, in place of an entry, what was
-- looked at: `told` is reader, state, usable, floor, seen at, merged authors, candidates, rounds, exhausted, last position,
-- time of the read.
create function {{schema}}.home_page_apart(
  p_account text, p_position bigint, p_older boolean, p_limit integer, p_now bigint, p_lag_ms bigint,
  p_active_ms bigint, p_scan_max integer,
  p_reader bigint, p_server text, p_token bigint, p_floor bigint, p_entries bigint[], p_more boolean)
returns table (
  "position" bigint, source integer, post bigint, author text, key text, body text, data text, visibility text,
  repost_of bigint, created_at bigint, edited_at bigint, mode text, fan_out_done boolean, through text, reposted_by text,
  reposted_id bigint, reposted_at bigint, told text[])
language plpgsql stable
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_bitmapscan = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
  me bigint;
  state text;
  seen bigint;
  usable boolean;
  floor_now bigint;
  merged bigint[] := '{}';
  any_merged boolean;
  any_on_the_way boolean;
  mutes boolean;
  blocks boolean;
  listed bigint[];
  listed_more boolean;
  batch {{schema}}.home_candidates;
  at bigint := p_position;
  count_now integer := p_limit + 1 + greatest(1, p_limit / 20);
  visible integer := 0;
  looked_at integer := 0;
  round integer := 0;
  changed integer;
  window_ended boolean := false;
  now_ms bigint := coalesce(p_now, floor(extract(epoch from statement_timestamp()) * 1000)::bigint);
begin
  select a.number, r.state, r.seen_at,
    coalesce(a.number = p_reader and r.state = 'live' and r.token = p_token and r.seen_at > now_ms - p_active_ms
      and exists (select 1 from {{schema}}.timeline_servers s where s.id = p_server and s.tokens_from <= p_token), false),
    exists (select 1 from {{schema}}.mutes m where m.muter = a.number),
    exists (select 1 from {{schema}}.blocks b where b.blocker = a.number)
      or exists (select 1 from {{schema}}.blocks b where b.blocked = a.number),
    exists (select 1 from {{schema}}.authors w where w.pushed_since > 0)
      or exists (select 1 from {{schema}}.follows f where f.follower = a.number and f.pending),
    exists (select 1 from {{schema}}.fan_outs w where w.author = a.number)
      or exists (select 1 from {{schema}}.fan_outs w where w.lane = 'small' and w.published_at < now_ms - p_lag_ms)
      or exists (select 1 from {{schema}}.fan_outs w where w.lane = 'big' and w.published_at < now_ms - p_lag_ms)
  into me, state, seen, usable, mutes, blocks, any_merged, any_on_the_way
  from {{schema}}.accounts a join {{schema}}.readers r on r.account = a.number
  where a.id = p_account and a.erased_at is null;
  if me is null then return; end if;
  floor_now := case when usable then p_floor else 9223372036854775807 end;
  if usable and any_merged then merged := {{schema}}.merged_authors(me, floor_now); end if;
  loop
    round := round + 1;
    listed := '{}';
    listed_more := false;
    if usable then
      if p_older then
        listed := array(
          select e from unnest(p_entries) e where e < at and e > floor_now order by e desc limit count_now);
      else
        listed := array(
          select e from unnest(p_entries) e where e > at and e > floor_now order by e limit count_now);
      end if;
      listed_more := p_more or cardinality(listed) >= count_now;
      window_ended := p_more and cardinality(listed) = 0;
      exit when window_ended;
    end if;
    if p_older and usable and not any_on_the_way and cardinality(merged) = 0 and (listed_more or floor_now = 0) then
      -- As a rule everything is in the list.
      batch.ids := listed;
      batch.sources := array_fill(2, array[cardinality(listed)]);
      batch.more := listed_more;
    elsif p_older then
      -- As long as the list has more, nothing below its floor can be among the next ones.
      batch := {{schema}}.candidates_older(
        me, case when listed_more then 0 else floor_now end, merged, at, count_now, now_ms - p_lag_ms, p_scan_max);
      if usable then batch := {{schema}}.merge_listed(batch, listed, listed_more, true, count_now); end if;
    else
      batch := {{schema}}.candidates_newer(me, floor_now, merged, at, count_now, now_ms - p_lag_ms, p_scan_max);
      if usable then batch := {{schema}}.merge_listed(batch, listed, listed_more, false, count_now); end if;
    end if;
    exit when cardinality(batch.ids) = 0;
    looked_at := looked_at + cardinality(batch.ids);
    at := batch.ids[cardinality(batch.ids)];
    return query select v.*, null::text[] from {{schema}}.visible_entries(me, batch.ids, batch.sources, mutes, blocks) v;
    get diagnostics changed = row_count;
    visible := visible + changed;
    exit when visible > p_limit or not batch.more or round >= 60;
    -- Much was hidden: look further at once.
    count_now := least(count_now * 4, 2000);
  end loop;
  return query select null::bigint, null::integer, null::bigint, null::text, null::text, null::text, null::text, null::text,
    null::bigint, null::bigint, null::bigint, null::text, null::boolean, null::text, null::text, null::bigint, null::bigint,
    array[me::text, state, usable::text, floor_now::text, seen::text, cardinality(merged)::text, looked_at::text,
      round::text, (not window_ended and (cardinality(batch.ids) = 0 or not batch.more))::text, at::text, now_ms::text];
end $$;
