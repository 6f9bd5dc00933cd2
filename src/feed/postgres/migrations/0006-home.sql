-- Reading a home: one statement for what the reader is, one for the ids (0003), one that hydrates and checks (0002).

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

-- One page: visible entries until there is one more than the limit, the sources have run dry, or the bound of rounds is
-- reached. Where timelines are kept outside (`p_apart`) `p_entries` are those of the list beyond the position, nearest first,
-- and `p_more` says that the list goes on behind them; they count only if the server is trusted, the token is that of
-- the reader's build, and the list has not been filled since they were read. Such a page ends early, not exhausted, where the
-- window of the list ends.
--
-- The last row holds, in place of an entry, what was looked at: `told` is reader, state, usable, floor, seen at, merged authors,
-- candidates, rounds, exhausted, last position, time of the read, whether the list of merged followees is old.
create function {{schema}}.home_page(
  p_account text, p_position bigint, p_older boolean, p_limit integer, p_now bigint, p_lag_ms bigint,
  p_active_ms bigint, p_scan_max integer,
  p_apart boolean default false, p_reader bigint default null, p_server text default null, p_token bigint default null,
  p_version bigint default null, p_floor bigint default null, p_entries bigint[] default null, p_more boolean default false)
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
  usable boolean;
  floor_now bigint;
  merged bigint[] := '{}';
  any_merged boolean;
  listed_upto bigint;
  list_is_old boolean := false;
  any_on_the_way boolean;
  hidden bigint[];
  hides_many boolean;
  listed bigint[] := '{}';
  listed_more boolean := false;
  found_all boolean;
  batch {{schema}}.home_candidates;
  at bigint := p_position;
  count_now integer := p_limit + 1 + greatest(1, p_limit / 20);
  visible integer := 0;
  looked_at integer := 0;
  round integer := 0;
  changed integer;
  window_ended boolean := false;
  now_ms bigint := coalesce(p_now, floor(extract(epoch from statement_timestamp()) * 1000)::bigint);
  -- A fan-out may end after the list was read and before this: own posts are looked up themselves for a minute.
  own_since bigint := case when p_apart then (now_ms - 60000) << 20 end;
begin
  select a.number, r.state, r.seen_at,
    r.state = 'live' and r.seen_at > now_ms - p_active_ms and case when p_apart
      then a.number = p_reader and r.token = p_token and r.list_version <= p_version and exists (
        select 1 from {{schema}}.timeline_servers s where s.id = p_server and s.tokens_from <= p_token)
      else exists (select 1 from {{schema}}.timeline t where t.reader = r.account and t.post = -r.token) end,
    case when p_apart then p_floor else r.floor end,
    -- Most readers hide nobody, and few so many that they are looked up for each page.
    array(select m.muted from {{schema}}.mutes m where m.muter = a.number limit 101)
      || array(select b.blocked from {{schema}}.blocks b where b.blocker = a.number limit 101)
      || array(select b.blocker from {{schema}}.blocks b where b.blocked = a.number limit 101),
    case when l.authors is null then exists (select 1 from {{schema}}.authors w where w.pushed_since > 0)
      else l.authors <> '{}'
        or exists (select 1 from {{schema}}.authors w where w.merge_number > l.upto and w.pushed_since > 0) end
      or exists (select 1 from {{schema}}.follows f where f.follower = a.number and f.pending),
    l.upto,
    exists (select 1 from {{schema}}.fan_outs w where w.author = a.number)
      or exists (select 1 from {{schema}}.posts p
        where p.author = a.number and p.deleted_at is null and p.id > own_since)
      or exists (select 1 from {{schema}}.fan_outs w
        where w.lane in ('small', 'big') and w.published_at < now_ms - p_lag_ms)
  into me, state, seen, usable, floor_now, hidden, any_merged, listed_upto, any_on_the_way
  from {{schema}}.accounts a join {{schema}}.readers r on r.account = a.number
  left join {{schema}}.merged_followees l on l.reader = a.number
  where a.id = p_account and a.erased_at is null;
  if me is null then return; end if;
  if usable is not true then
    usable := false;
    floor_now := 9223372036854775807;
  elsif any_merged then
    merged := {{schema}}.merged_authors(me, floor_now);
    -- Each author numbered since costs a probe: worth a new list when they are many.
    list_is_old := exists (
      select 1 from {{schema}}.authors w
      where w.merge_number > coalesce(listed_upto, 0) and w.merge_number < 9223372036854775807 and w.pushed_since > 0
      offset case when listed_upto is null then 0 else 40 end limit 1);
  end if;
  hides_many := cardinality(hidden) > 100;
  loop
    round := round + 1;
    batch.ids := '{}';
    found_all := false;
    if p_apart and usable then
      -- The first time the window begins where the page does.
      if round = 1 then
        listed := p_entries[1:count_now];
      elsif p_older then
        listed := array(select e from unnest(p_entries) e where e < at order by e desc limit count_now);
      else
        listed := array(select e from unnest(p_entries) e where e > at order by e limit count_now);
      end if;
      listed_more := p_more or cardinality(listed) >= count_now;
      window_ended := p_more and cardinality(listed) = 0;
      exit when window_ended;
    end if;
    if p_older and usable and not any_on_the_way and cardinality(merged) = 0 then
      -- As a rule everything is in the timeline.
      if p_apart then
        batch.ids := listed;
        batch.more := listed_more;
      else
        batch.ids := array(
          select t.post from {{schema}}.timeline t
          where t.reader = me and t.post < at and t.post > floor_now
          order by t.post desc limit count_now);
        batch.more := cardinality(batch.ids) >= count_now;
      end if;
      batch.sources := array_fill(2, array[cardinality(batch.ids)]);
      found_all := batch.more or floor_now = 0;
    end if;
    if not found_all then
      if p_older then
        -- As long as the list has more, nothing below its floor can be among the next ones.
        batch := {{schema}}.candidates_older(
          me, case when listed_more then 0 else floor_now end, merged, at, count_now, now_ms - p_lag_ms, p_scan_max,
          own_since);
      else
        batch := {{schema}}.candidates_newer(
          me, floor_now, merged, at, count_now, now_ms - p_lag_ms, p_scan_max, own_since);
      end if;
      if p_apart and usable then
        batch := {{schema}}.merge_listed(batch, listed, listed_more, p_older, count_now);
      end if;
    end if;
    exit when cardinality(batch.ids) = 0;
    looked_at := looked_at + cardinality(batch.ids);
    at := batch.ids[cardinality(batch.ids)];
    if hides_many then hidden := {{schema}}.hidden_authors(me, batch.ids); end if;
    return query select v.*, null::text[] from {{schema}}.visible_entries(me, batch.ids, batch.sources, hidden) v;
    get diagnostics changed = row_count;
    visible := visible + changed;
    exit when visible > p_limit or not batch.more or round >= 60;
    -- Much was hidden: look further at once.
    count_now := least(count_now * 4, 2000);
  end loop;
  return query select null::bigint, null::integer, null::bigint, null::text, null::text, null::text, null::text, null::text,
    null::bigint, null::bigint, null::bigint, null::text, null::boolean, null::text, null::text, null::bigint, null::bigint,
    array[me::text, state, usable::text, floor_now::text, seen::text, cardinality(merged)::text, looked_at::text,
      round::text, (not window_ended and (cardinality(batch.ids) = 0 or not batch.more))::text, at::text, now_ms::text,
      list_is_old::text];
end $$;
