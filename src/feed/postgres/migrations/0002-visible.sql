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

-- Followees among many merged authors: both indexes are walked in the order of account numbers. For a reader of 500
-- followees in a world of 1,000 merged authors 500 probes of the authors took 0.44 ms, this takes 0.08 to 0.2.
create function {{schema}}.merged_side_by_side(p_reader bigint, p_floor bigint) returns bigint[]
language plpgsql stable
set enable_nestloop = off
set enable_hashjoin = off
set enable_mergejoin = on
as $$ begin return array(
  select a.account from {{schema}}.follows f join {{schema}}.authors a on a.account = f.followee
  where f.follower = p_reader and a.pushed_since > 0 and a.pushed_since > p_floor); end $$;

-- Authors whose posts above the floor may be missing from the timeline: pulled, switched or failed since, or followed
-- while the backfill has not run. As a rule the reader's list names them, all but those numbered since. Without one: where
-- few authors are merged at all they are looked for among the reader's followees, where many are the followees among them,
-- or both side by side; how many there are is told by the statistics, which choose the way and nothing else.
create function {{schema}}.merged_authors(p_reader bigint, p_floor bigint) returns bigint[]
language plpgsql stable set enable_memoize = off as $$
declare
  answer bigint[];
  listed bigint[];
  listed_upto bigint;
  newer bigint[];
  merged_about real;
begin
  select m.authors, m.upto into listed, listed_upto from {{schema}}.merged_followees m where m.reader = p_reader;
  if listed is not null then
    -- First by themselves: in one join the planner would look every followee up.
    newer := array(
      select a.account from {{schema}}.authors a where a.merge_number > listed_upto and a.pushed_since > 0 limit 61);
  end if;
  if cardinality(newer) <= 60 then
    answer := array(
      select a.account from unnest(listed || newer) l (account) join {{schema}}.authors a on a.account = l.account
      where a.pushed_since > p_floor and a.pushed_since > 0
        and exists (select 1 from {{schema}}.follows f where f.follower = p_reader and f.followee = a.account));
  else
    perform 1 from {{schema}}.authors a where a.pushed_since > p_floor and a.pushed_since > 0 offset 60 limit 1;
    if not found then
      answer := array(
        select a.account from {{schema}}.authors a
        where a.pushed_since > p_floor and a.pushed_since > 0
          and exists (select 1 from {{schema}}.follows f where f.follower = p_reader and f.followee = a.account));
    else
      select c.reltuples into merged_about from pg_class c where c.oid = '{{schema}}.authors_merged'::regclass;
      if merged_about between 0 and 4000 then
        answer := {{schema}}.merged_side_by_side(p_reader, p_floor);
      else
        answer := array(
          select a.account from {{schema}}.follows f join {{schema}}.authors a on a.account = f.followee
          where f.follower = p_reader and a.pushed_since > 0 and a.pushed_since > p_floor);
      end if;
    end if;
  end if;
  -- Each author once: the newest posts of a list that names one twice would leave out somebody else's.
  return answer
    || array(
      select f.followee from {{schema}}.follows f
      where f.follower = p_reader and f.pending and f.followee <> all (answer))
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
