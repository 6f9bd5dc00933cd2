-- Reading a home: one statement for what the reader is, one for the ids, one that hydrates and checks (0002).

-- The `p_count` newest posts of many authors in (p_above, p_position). Only the authors of the `p_count` newest "newest
-- posts" can have any of them, so the others are asked for one id and no more.
create function {{schema}}.newest_of(p_authors bigint[], p_above bigint, p_position bigint, p_count integer)
returns bigint[]
language plpgsql stable as $$
declare
  authors bigint[] := p_authors;
begin
  if cardinality(authors) > p_count then
    authors := array(
      select m.author from unnest(p_authors) as m (author) cross join lateral (
        select p.id from {{schema}}.posts p
        where p.author = m.author and p.deleted_at is null and p.id < p_position and p.id > p_above
        order by p.id desc limit 1) p
      order by p.id desc limit p_count);
  end if;
  return array(
    select p.id from unnest(authors) as m (author) cross join lateral (
      select p.id from {{schema}}.posts p
      where p.author = m.author and p.deleted_at is null and p.id < p_position and p.id > p_above
      order by p.id desc limit p_count) p
    order by p.id desc limit p_count);
end $$;

-- The `p_count` oldest posts of many authors in (p_above, p_until], in the same way.
create function {{schema}}.oldest_of(p_authors bigint[], p_above bigint, p_until bigint, p_count integer)
returns bigint[]
language plpgsql stable as $$
declare
  authors bigint[] := p_authors;
begin
  if cardinality(authors) > p_count then
    authors := array(
      select m.author from unnest(p_authors) as m (author) cross join lateral (
        select p.id from {{schema}}.posts p
        where p.author = m.author and p.deleted_at is null and p.id > p_above and p.id <= p_until
        order by p.id limit 1) p
      order by p.id limit p_count);
  end if;
  return array(
    select p.id from unnest(authors) as m (author) cross join lateral (
      select p.id from {{schema}}.posts p
      where p.author = m.author and p.deleted_at is null and p.id > p_above and p.id <= p_until
      order by p.id limit p_count) p
    order by p.id limit p_count);
end $$;

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
      -- What is older than a full timeline page is not of this page.
      merged := {{schema}}.newest_of(p_merged, greatest(p_floor, coalesce(recent[p_count], 0)), p_position, p_count);
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
    -- A followee costs about what a post of the scan does: the smaller number is tried first.
    perform 1 from {{schema}}.follows f where f.follower = p_reader offset p_scan_max limit 1;
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
      store := {{schema}}.newest_of(
        array(select f.followee from {{schema}}.follows f where f.follower = p_reader) || p_reader, 0, below, p_count);
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
    perform 1 from {{schema}}.follows f where f.follower = p_reader offset p_scan_max limit 1;
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
      store := {{schema}}.oldest_of(
        array(select f.followee from {{schema}}.follows f where f.follower = p_reader) || p_reader,
        p_position, p_floor, p_count);
    end if;
  end if;

  if p_floor < 9223372036854775807 and cardinality(store) < p_count then
    recent := array(
      select t.post from {{schema}}.timeline t
      where t.reader = p_reader and t.post > greatest(p_position, p_floor)
      order by t.post limit p_count);
    if cardinality(p_merged) > 0 then
      merged := {{schema}}.oldest_of(
        p_merged, greatest(p_position, p_floor), coalesce(recent[p_count], 9223372036854775807), p_count);
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
-- reached. The last row holds, in place of an entry, what was looked at: `told` is reader, state, usable, floor, seen at,
-- merged authors, candidates, rounds, exhausted, last position, time of the read, whether the list of merged followees is old.
create function {{schema}}.home_page(
  p_account text, p_position bigint, p_older boolean, p_limit integer, p_now bigint, p_lag_ms bigint,
  p_active_ms bigint, p_scan_max integer)
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
-- The plan that suits any reader is kept: planning these statements takes longer than running them.
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
  me bigint;
  state text;
  seen bigint;
  floor_now bigint;
  merged bigint[] := '{}';
  any_merged boolean;
  listed_upto bigint;
  list_is_old boolean := false;
  any_on_the_way boolean;
  mutes boolean;
  blocks boolean;
  batch {{schema}}.home_candidates;
  at bigint := p_position;
  count_now integer := p_limit + 1 + greatest(1, p_limit / 20);
  visible integer := 0;
  looked_at integer := 0;
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
      or exists (select 1 from {{schema}}.blocks b where b.blocked = a.number),
    case when l.authors is null then exists (select 1 from {{schema}}.authors w where w.pushed_since > 0)
      else l.authors <> '{}'
        or exists (select 1 from {{schema}}.authors w where w.merge_number > l.upto and w.pushed_since > 0) end
      or exists (select 1 from {{schema}}.follows f where f.follower = a.number and f.pending),
    l.upto,
    exists (select 1 from {{schema}}.fan_outs w where w.author = a.number)
      or exists (select 1 from {{schema}}.fan_outs w where w.lane = 'small' and w.published_at < now_ms - p_lag_ms)
      or exists (select 1 from {{schema}}.fan_outs w where w.lane = 'big' and w.published_at < now_ms - p_lag_ms)
  into me, state, seen, floor_now, mutes, blocks, any_merged, listed_upto, any_on_the_way
  from {{schema}}.accounts a join {{schema}}.readers r on r.account = a.number
  left join {{schema}}.merged_followees l on l.reader = a.number
  where a.id = p_account and a.erased_at is null;
  if me is null then return; end if;
  if any_merged and floor_now < 9223372036854775807 then
    merged := {{schema}}.merged_authors(me, floor_now);
    -- Each author numbered since costs a probe: worth a new list when they are many.
    list_is_old := exists (
      select 1 from {{schema}}.authors w
      where w.merge_number > coalesce(listed_upto, 0) and w.merge_number < 9223372036854775807 and w.pushed_since > 0
      offset case when listed_upto is null then 0 else 40 end limit 1);
  end if;
  loop
    round := round + 1;
    batch.ids := '{}';
    if p_older and not any_on_the_way and floor_now < 9223372036854775807 and cardinality(merged) = 0 then
      -- As a rule everything is in the timeline.
      batch.ids := array(
        select t.post from {{schema}}.timeline t
        where t.reader = me and t.post < at and t.post > floor_now
        order by t.post desc limit count_now);
      batch.sources := array_fill(2, array[cardinality(batch.ids)]);
      batch.more := cardinality(batch.ids) >= count_now;
    end if;
    if not batch.more or cardinality(batch.ids) = 0 then
      if p_older then
        batch := {{schema}}.candidates_older(me, floor_now, merged, at, count_now, now_ms - p_lag_ms, p_scan_max);
      else
        batch := {{schema}}.candidates_newer(me, floor_now, merged, at, count_now, now_ms - p_lag_ms, p_scan_max);
      end if;
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
    array[me::text, state, (floor_now < 9223372036854775807)::text, floor_now::text, seen::text, cardinality(merged)::text,
      looked_at::text, round::text, (cardinality(batch.ids) = 0 or not batch.more)::text, at::text, now_ms::text,
      list_is_old::text];
end $$;
