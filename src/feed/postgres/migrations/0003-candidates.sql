-- Candidates of a home: the ids, newest or oldest first, that the tables name; what may be shown is decided later (0002).

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
-- The reader's own posts newer than `p_own_since` count as on their way, whatever has become of their fan-outs; null: none.
-- Sources: 1 own, 2 pushed, 3 pulled, 4 overdue, 5 store.
create function {{schema}}.candidates_older(
  p_reader bigint, p_floor bigint, p_merged bigint[], p_position bigint, p_count integer, p_overdue_before bigint,
  p_scan_max integer, p_own_since bigint)
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
      (select w.post from {{schema}}.fan_outs w where w.author = p_reader and w.post < p_position
        order by w.post desc limit p_count)
      union
      (select p.id from {{schema}}.posts p
        where p.author = p_reader and p.deleted_at is null and p.id < p_position and p.id > p_own_since
        order by p.id desc limit p_count)
      order by 1 desc limit p_count);
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
  p_scan_max integer, p_own_since bigint)
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
      (select w.post from {{schema}}.fan_outs w where w.author = p_reader and w.post > p_position
        order by w.post limit p_count)
      union
      (select p.id from {{schema}}.posts p
        where p.author = p_reader and p.deleted_at is null and p.id > p_position and p.id > p_own_since
        order by p.id limit p_count)
      order by 1 limit p_count);
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
