-- Reading a home in one round trip: functions, so that the plans are kept by the session and dear sources are asked only
-- when a cheap one has run dry. All are STABLE: every statement inside sees one snapshot. Nothing here writes.

-- The earliest repost of a post by the reader or somebody the reader follows, which is its place when its author is not
-- followed. A post with few reposts is walked by reposts, one with many by followees.
create function {{schema}}.first_repost(p_reader bigint, p_post bigint) returns bigint
language plpgsql stable as $$
declare
  reposts bigint;
  answer bigint;
begin
  select count(*) into reposts from (
    select 1 from {{schema}}.posts r where r.repost_of = p_post and r.deleted_at is null limit 101) few;
  if reposts <= 100 then
    select r.id into answer
    from {{schema}}.posts r join {{schema}}.accounts a on a.number = r.author and a.erased_at is null
    where r.repost_of = p_post and r.deleted_at is null
      and (r.author = p_reader or exists (
        select 1 from {{schema}}.follows f
        where f.follower = p_reader and f.followee = r.author and (f.kept_until is null or r.id <= f.kept_until)))
      and not exists (select 1 from {{schema}}.mutes m where m.muter = p_reader and m.muted = r.author)
      and not exists (select 1 from {{schema}}.blocks b where b.blocker = p_reader and b.blocked = r.author)
      and not exists (select 1 from {{schema}}.blocks b where b.blocker = r.author and b.blocked = p_reader)
    order by r.id limit 1;
  else
    select min(r.id) into answer
    from (select f.followee as author, f.kept_until from {{schema}}.follows f where f.follower = p_reader
          union all select p_reader, null) f
    cross join lateral (
      select r.id, r.author from {{schema}}.posts r
      where r.author = f.author and r.repost_of = p_post and r.deleted_at is null
        and r.id <= coalesce(f.kept_until, 9223372036854775807)) r
    join {{schema}}.accounts a on a.number = r.author and a.erased_at is null
    where not exists (select 1 from {{schema}}.mutes m where m.muter = p_reader and m.muted = r.author)
      and not exists (select 1 from {{schema}}.blocks b where b.blocker = p_reader and b.blocked = r.author)
      and not exists (select 1 from {{schema}}.blocks b where b.blocker = r.author and b.blocked = p_reader);
  end if;
  return answer;
end $$;

create type {{schema}}.home_entry as (
  "position" bigint,
  source integer,
  post bigint,
  author text,
  key text,
  body text,
  data text,
  visibility text,
  repost_of bigint,
  created_at bigint,
  edited_at bigint,
  mode text,
  fan_out_done boolean,
  through text,
  reposted_by text,
  reposted_id bigint,
  reposted_at bigint
);

-- Candidates that the reader may see and that stand at their own place, hydrated: against the source of truth. Most posts
-- are no reposts and most readers hide nobody: what those need costs the others no probe of an index.
create function {{schema}}.visible_entries(
  p_reader bigint, p_ids bigint[], p_sources integer[], p_mutes boolean, p_blocks boolean)
returns setof {{schema}}.home_entry
language sql stable as $$
  select c.id, case when p.author = p_reader then 1 else c.source end,
    coalesce(o.id, p.id), coalesce(oa.id, pa.id),
    case when o.id is null then p.key else o.key end,
    case when o.id is null then p.body else o.body end,
    case when o.id is null then p.data else o.data end,
    coalesce(o.visibility, p.visibility), null::bigint,
    coalesce(o.created_at, p.created_at),
    case when o.id is null then p.edited_at else o.edited_at end,
    coalesce(o.mode, p.mode), w.post is null,
    pa.id, ra.id, r.id, r.created_at
  from unnest(p_ids, p_sources) as c (id, source)
  join {{schema}}.posts p on p.id = c.id and p.deleted_at is null
  join {{schema}}.accounts pa on pa.number = p.author and pa.erased_at is null
  -- The original of a repost.
  left join {{schema}}.posts o on o.id = p.repost_of and o.deleted_at is null
  left join {{schema}}.accounts oa on oa.number = o.author and oa.erased_at is null
  cross join lateral (
    select case when coalesce(o.has_reposts, p.has_reposts)
      then {{schema}}.first_repost(p_reader, coalesce(o.id, p.id)) end as first) place
  left join {{schema}}.posts r on r.id = place.first
  left join {{schema}}.accounts ra on ra.number = r.author
  left join {{schema}}.fan_outs w on w.post = coalesce(o.id, p.id)
  where (p.author = p_reader or exists (
      select 1 from {{schema}}.follows f
      where f.follower = p_reader and f.followee = p.author
        and (f.kept_until is null or (p.id <= f.kept_until and p.visibility = 'public'))))
    and not (p_mutes and exists (select 1 from {{schema}}.mutes m where m.muter = p_reader and m.muted = p.author))
    and not (p_blocks and exists (select 1 from {{schema}}.blocks b where b.blocker = p_reader and b.blocked = p.author))
    and not (p_blocks and exists (select 1 from {{schema}}.blocks b where b.blocker = p.author and b.blocked = p_reader))
    -- A repost shows its original only where that has no place of its own: a followed author's, or the reader's own.
    and (p.repost_of is null or (
      place.first = p.id
      and oa.id is not null
      and o.author <> p_reader
      and o.visibility = 'public'
      and not exists (
        select 1 from {{schema}}.follows f
        where f.follower = p_reader and f.followee = o.author and (f.kept_until is null or o.id <= f.kept_until))
      and not (p_mutes and exists (select 1 from {{schema}}.mutes m where m.muter = p_reader and m.muted = o.author))
      and not (p_blocks and exists (select 1 from {{schema}}.blocks b where b.blocker = p_reader and b.blocked = o.author))
      and not (p_blocks and exists (select 1 from {{schema}}.blocks b where b.blocker = o.author and b.blocked = p_reader))))
$$;

-- The timeline of a reader as a read may use it: its floor, or the largest bigint when there is none.
create function {{schema}}.usable_floor(p_reader bigint, p_now bigint, p_active_ms bigint) returns bigint
language plpgsql stable as $$ begin return (
  select case when r.state = 'live' and r.seen_at > p_now - p_active_ms
      and exists (select 1 from {{schema}}.timeline t where t.reader = p_reader and t.post = -r.token)
    then r.floor else 9223372036854775807 end
  from {{schema}}.readers r where r.account = p_reader);
end $$;

-- Authors whose posts above the floor may be missing from the timeline: pulled, switched or failed since, or followed
-- while the backfill has not run. Where few authors are merged at all they are looked for among the reader's followees,
-- else the followees among them.
create function {{schema}}.merged_authors(p_reader bigint, p_floor bigint) returns bigint[]
language plpgsql stable as $$
declare
  answer bigint[];
begin
  perform 1 from {{schema}}.authors a where a.pushed_since > p_floor and a.pushed_since > 0 offset 60 limit 1;
  if found then
    answer := array(
      select a.account from {{schema}}.follows f join {{schema}}.authors a on a.account = f.followee
      where f.follower = p_reader and a.pushed_since > 0 and a.pushed_since > p_floor);
  else
    answer := array(
      select a.account from {{schema}}.authors a
      where a.pushed_since > p_floor and a.pushed_since > 0
        and exists (select 1 from {{schema}}.follows f where f.follower = p_reader and f.followee = a.account));
  end if;
  -- May name an author twice, which costs a probe and changes nothing.
  return answer
    || array(select f.followee from {{schema}}.follows f where f.follower = p_reader and f.pending)
    || array(
      select a.account from {{schema}}.authors a
      where a.account = p_reader and a.pushed_since > 0 and a.pushed_since > p_floor);
end $$;

create type {{schema}}.home_candidates as (
  ids bigint[],
  sources integer[],
  -- False: there is nothing beyond these.
  more boolean
);

-- The `p_count` newest candidates below a position. Each source gives as many, so the cut of their union is exact.
-- Sources: 1 own, 2 pushed, 3 pulled, 4 overdue, 5 store.
create function {{schema}}.candidates_older(
  p_reader bigint, p_floor bigint, p_merged bigint[], p_position bigint, p_count integer, p_overdue_before bigint,
  p_scan_max integer)
returns {{schema}}.home_candidates
language plpgsql stable as $$
declare
  recent bigint[] := '{}';
  merged bigint[] := '{}';
  own bigint[] := '{}';
  overdue bigint[] := '{}';
  store bigint[] := '{}';
  cut bigint := 0;
  raw_count integer;
  found_all boolean := false;
  below bigint;
  answer {{schema}}.home_candidates;
begin
  if p_floor < 9223372036854775807 then
    recent := array(
      select t.post from {{schema}}.timeline t
      where t.reader = p_reader and t.post < p_position and t.post > p_floor
      order by t.post desc limit p_count);
    if cardinality(p_merged) > 0 then
      merged := array(
        select p.id from unnest(p_merged) as m (author) cross join lateral (
          select p.id from {{schema}}.posts p
          where p.author = m.author and p.deleted_at is null and p.id < p_position and p.id > p_floor
          order by p.id desc limit p_count) p
        order by p.id desc limit p_count);
    end if;
    own := array(
      select w.post from {{schema}}.fan_outs w where w.author = p_reader and w.post < p_position
      order by w.post desc limit p_count);
    -- Overdue fan-outs of everybody are few; when they are not, nothing below the last one looked at is given yet.
    select coalesce(array_agg(o.post order by o.post desc) filter (where exists (
        select 1 from {{schema}}.follows f where f.follower = p_reader and f.followee = o.author)), '{}'),
      count(*), coalesce(min(o.post), 0)
    into overdue, raw_count, cut
    from (
      select w.post, w.author from {{schema}}.fan_outs w
      where w.published_at < p_overdue_before and w.post < p_position
      order by w.post desc limit 1000) o;
    if raw_count < 1000 then cut := 0; end if;
  end if;

  -- Past the timeline's end, or without one: the posts of everybody followed.
  if p_floor > 0 and cardinality(recent) < p_count then
    below := least(p_position, case when p_floor < 9223372036854775807 then p_floor + 1 else p_floor end);
    perform 1 from {{schema}}.follows f where f.follower = p_reader offset 300 limit 1;
    if found then
      -- Many followees: their posts are dense among all, so the newest of all are tried first, a bounded number.
      select coalesce(array_agg(s.id order by s.id desc) filter (where s.author = p_reader or exists (
          select 1 from {{schema}}.follows f where f.follower = p_reader and f.followee = s.author)), '{}'), count(*)
      into store, raw_count
      from (
        select p.id, p.author from {{schema}}.posts p
        where p.id < below and p.deleted_at is null order by p.id desc limit p_scan_max) s;
      found_all := raw_count < p_scan_max or cardinality(store) >= p_count;
    end if;
    if not found_all then
      store := array(
        select p.id from (
          select f.followee as author from {{schema}}.follows f where f.follower = p_reader
          union all select p_reader) f
        cross join lateral (
          select p.id from {{schema}}.posts p
          where p.author = f.author and p.deleted_at is null and p.id < below
          order by p.id desc limit p_count) p
        order by p.id desc limit p_count);
    end if;
  end if;

  -- As a rule everything is in the timeline.
  if cut = 0 and cardinality(merged) + cardinality(own) + cardinality(overdue) + cardinality(store) = 0 then
    answer.ids := recent;
    answer.sources := array_fill(2, array[cardinality(recent)]);
    answer.more := cardinality(recent) >= p_count;
    return answer;
  end if;
  select coalesce(array_agg(c.id order by c.id desc), '{}'), coalesce(array_agg(c.source order by c.id desc), '{}')
  into answer.ids, answer.sources
  from (
    select u.id, min(u.source) as source from (
      select unnest(own) as id, 1 as source
      union all select unnest(recent), 2
      union all select unnest(merged), 3
      union all select unnest(overdue), 4
      union all select unnest(store), 5) u
    where u.id >= cut
    group by u.id order by u.id desc limit p_count) c;
  answer.more := cardinality(answer.ids) >= p_count or cut > 0;
  -- Everything down to the cut has been looked at although nothing of it may be the reader's.
  if cut > 0 and cardinality(answer.ids) < p_count and (cardinality(answer.ids) = 0
      or answer.ids[cardinality(answer.ids)] > cut) then
    answer.ids := answer.ids || cut;
    answer.sources := answer.sources || 4;
  end if;
  return answer;
end $$;

-- The `p_count` oldest candidates above a position: those directly newer than it.
create function {{schema}}.candidates_newer(
  p_reader bigint, p_floor bigint, p_merged bigint[], p_position bigint, p_count integer, p_overdue_before bigint,
  p_scan_max integer)
returns {{schema}}.home_candidates
language plpgsql stable as $$
declare
  recent bigint[] := '{}';
  merged bigint[] := '{}';
  own bigint[] := '{}';
  overdue bigint[] := '{}';
  store bigint[] := '{}';
  cut bigint := 9223372036854775807;
  raw_count integer;
  found_all boolean := false;
  answer {{schema}}.home_candidates;
begin
  -- Below the floor, or without a timeline, the directly newer ones are in the store.
  if p_position < p_floor then
    perform 1 from {{schema}}.follows f where f.follower = p_reader offset 300 limit 1;
    if found then
      select coalesce(array_agg(s.id order by s.id) filter (where s.author = p_reader or exists (
          select 1 from {{schema}}.follows f where f.follower = p_reader and f.followee = s.author)), '{}'), count(*)
      into store, raw_count
      from (
        select p.id, p.author from {{schema}}.posts p
        where p.id > p_position and p.id <= p_floor and p.deleted_at is null order by p.id limit p_scan_max) s;
      found_all := raw_count < p_scan_max or cardinality(store) >= p_count;
    end if;
    if not found_all then
      store := array(
        select p.id from (
          select f.followee as author from {{schema}}.follows f where f.follower = p_reader
          union all select p_reader) f
        cross join lateral (
          select p.id from {{schema}}.posts p
          where p.author = f.author and p.deleted_at is null and p.id > p_position and p.id <= p_floor
          order by p.id limit p_count) p
        order by p.id limit p_count);
    end if;
  end if;

  if p_floor < 9223372036854775807 and cardinality(store) < p_count then
    recent := array(
      select t.post from {{schema}}.timeline t
      where t.reader = p_reader and t.post > greatest(p_position, p_floor)
      order by t.post limit p_count);
    if cardinality(p_merged) > 0 then
      merged := array(
        select p.id from unnest(p_merged) as m (author) cross join lateral (
          select p.id from {{schema}}.posts p
          where p.author = m.author and p.deleted_at is null and p.id > greatest(p_position, p_floor)
          order by p.id limit p_count) p
        order by p.id limit p_count);
    end if;
    own := array(
      select w.post from {{schema}}.fan_outs w where w.author = p_reader and w.post > p_position
      order by w.post limit p_count);
    select coalesce(array_agg(o.post order by o.post) filter (where exists (
        select 1 from {{schema}}.follows f where f.follower = p_reader and f.followee = o.author)), '{}'),
      count(*), coalesce(max(o.post), 0)
    into overdue, raw_count, cut
    from (
      select w.post, w.author from {{schema}}.fan_outs w
      where w.published_at < p_overdue_before and w.post > p_position
      order by w.post limit 1000) o;
    if raw_count < 1000 then cut := 9223372036854775807; end if;
  end if;

  select coalesce(array_agg(c.id order by c.id), '{}'), coalesce(array_agg(c.source order by c.id), '{}')
  into answer.ids, answer.sources
  from (
    select u.id, min(u.source) as source from (
      select unnest(own) as id, 1 as source
      union all select unnest(recent), 2
      union all select unnest(merged), 3
      union all select unnest(overdue), 4
      union all select unnest(store), 5) u
    where u.id <= cut
    group by u.id order by u.id limit p_count) c;
  answer.more := cardinality(answer.ids) >= p_count or cut < 9223372036854775807;
  if cut < 9223372036854775807 and cardinality(answer.ids) < p_count and (cardinality(answer.ids) = 0
      or answer.ids[cardinality(answer.ids)] < cut) then
    answer.ids := answer.ids || cut;
    answer.sources := answer.sources || 4;
  end if;
  return answer;
end $$;

-- One page: visible entries until there is one more than the limit, the sources have run dry, or the bound of rounds is
-- reached. The last row holds, in place of an entry, what was looked at.
create function {{schema}}.home_page(
  p_account text, p_position bigint, p_older boolean, p_limit integer, p_now bigint, p_lag_ms bigint,
  p_active_ms bigint, p_scan_max integer)
returns table (
  entry {{schema}}.home_entry,
  reader bigint,
  timeline_state text,
  timeline_usable boolean,
  timeline_floor bigint,
  seen_at bigint,
  pulled_authors integer,
  candidates integer,
  rounds integer,
  exhausted boolean,
  last_position bigint,
  read_at bigint)
language plpgsql stable
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_bitmapscan = off
set jit = off
-- The plan that suits any reader is kept: planning these statements takes longer than running them.
set plan_cache_mode = force_generic_plan
as $$
declare
  me bigint;
  floor_now bigint;
  merged bigint[] := '{}';
  mutes boolean;
  blocks boolean;
  batch {{schema}}.home_candidates;
  at bigint := p_position;
  count_now integer := p_limit + 1 + greatest(3, p_limit / 10);
  visible integer := 0;
  seen integer := 0;
  round integer := 0;
  changed integer;
  now_ms bigint := coalesce(p_now, floor(extract(epoch from statement_timestamp()) * 1000)::bigint);
begin
  select a.number, r.state, r.seen_at,
    case when r.state = 'live' and r.seen_at > now_ms - p_active_ms
        and exists (select 1 from {{schema}}.timeline t where t.reader = r.account and t.post = -r.token)
      then r.floor else 9223372036854775807 end,
    exists (select 1 from {{schema}}.mutes m where m.muter = a.number),
    exists (select 1 from {{schema}}.blocks b where b.blocker = a.number)
      or exists (select 1 from {{schema}}.blocks b where b.blocked = a.number)
  into me, timeline_state, seen_at, floor_now, mutes, blocks
  from {{schema}}.accounts a join {{schema}}.readers r on r.account = a.number
  where a.id = p_account and a.erased_at is null;
  if me is null then return; end if;
  if floor_now < 9223372036854775807 then merged := {{schema}}.merged_authors(me, floor_now); end if;
  loop
    round := round + 1;
    if p_older then
      batch := {{schema}}.candidates_older(me, floor_now, merged, at, count_now, now_ms - p_lag_ms, p_scan_max);
    else
      batch := {{schema}}.candidates_newer(me, floor_now, merged, at, count_now, now_ms - p_lag_ms, p_scan_max);
    end if;
    exit when cardinality(batch.ids) = 0;
    seen := seen + cardinality(batch.ids);
    at := batch.ids[cardinality(batch.ids)];
    return query
      select v::{{schema}}.home_entry, null::bigint, null::text, null::boolean, null::bigint, null::bigint, null::integer,
        null::integer, null::integer, null::boolean, null::bigint, null::bigint
      from {{schema}}.visible_entries(me, batch.ids, batch.sources, mutes, blocks) v;
    get diagnostics changed = row_count;
    visible := visible + changed;
    exit when visible > p_limit or not batch.more or round >= 60;
    -- Much was hidden: look further at once.
    count_now := least(count_now * 4, 2000);
  end loop;
  entry := null;
  reader := me;
  timeline_usable := floor_now < 9223372036854775807;
  timeline_floor := floor_now;
  pulled_authors := cardinality(merged);
  candidates := seen;
  rounds := round;
  exhausted := cardinality(batch.ids) = 0 or not batch.more;
  last_position := at;
  read_at := now_ms;
  return next;
end $$;
