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

-- What stands at a repost, or beside a post that has reposts: the columns of the original, null for a post that stands for
-- itself, and the repost that is told.
create type {{schema}}.repost_place as (
  post bigint,
  author text,
  key text,
  body text,
  data text,
  visibility text,
  created_at bigint,
  edited_at bigint,
  mode text,
  reposted_by text,
  reposted_id bigint,
  reposted_at bigint
);

-- Null: the repost `p_id` shows nothing here. It shows its original only where that has no place of its own: a followed
-- author's, or the reader's own. `p_original` is null for a post that is no repost.
create function {{schema}}.place_of(p_reader bigint, p_id bigint, p_original bigint) returns {{schema}}.repost_place
language plpgsql stable as $$
declare
  first bigint := {{schema}}.first_repost(p_reader, coalesce(p_original, p_id));
  answer {{schema}}.repost_place;
begin
  if p_original is null then
    select a.id, r.id, r.created_at into answer.reposted_by, answer.reposted_id, answer.reposted_at
    from {{schema}}.posts r join {{schema}}.accounts a on a.number = r.author where r.id = first;
  elsif first = p_id then
    select o.id, oa.id, o.key, o.body, o.data, o.visibility, o.created_at, o.edited_at, o.mode, a.id, r.id, r.created_at
    into answer
    from {{schema}}.posts o
    join {{schema}}.accounts oa on oa.number = o.author and oa.erased_at is null
    join {{schema}}.posts r on r.id = first
    join {{schema}}.accounts a on a.number = r.author
    where o.id = p_original and o.deleted_at is null
      and o.author <> p_reader
      and o.visibility = 'public'
      and not exists (
        select 1 from {{schema}}.follows f
        where f.follower = p_reader and f.followee = o.author and (f.kept_until is null or o.id <= f.kept_until))
      and not exists (select 1 from {{schema}}.mutes m where m.muter = p_reader and m.muted = o.author)
      and not exists (select 1 from {{schema}}.blocks b where b.blocker = p_reader and b.blocked = o.author)
      and not exists (select 1 from {{schema}}.blocks b where b.blocker = o.author and b.blocked = p_reader);
  end if;
  return answer;
end $$;

-- Whom a reader does not see, among the authors of these posts: muted, blocked or blocking.
create function {{schema}}.hidden_authors(p_reader bigint, p_ids bigint[]) returns bigint[]
language plpgsql stable as $$ begin return array(
  select distinct p.author from unnest(p_ids) c (id) join {{schema}}.posts p on p.id = c.id
  where exists (select 1 from {{schema}}.mutes m where m.muter = p_reader and m.muted = p.author)
    or exists (select 1 from {{schema}}.blocks b where b.blocker = p_reader and b.blocked = p.author)
    or exists (select 1 from {{schema}}.blocks b where b.blocker = p.author and b.blocked = p_reader)); end $$;

-- Candidates that the reader may see and that stand at their own place, hydrated: against the source of truth. `p_hidden` are
-- those whom the reader does not see, at least all among the authors of the candidates. Most posts are no reposts and have
-- none: what only those need is in a function, because a plan is made ready as a whole for every page.
create function {{schema}}.visible_entries(p_reader bigint, p_ids bigint[], p_sources integer[], p_hidden bigint[])
returns setof {{schema}}.home_entry
language sql stable as $$
  select p.id, case when p.author = p_reader then 1 else c.source end,
    coalesce((s.place).post, p.id), coalesce((s.place).author, pa.id),
    case when p.repost_of is null then p.key else (s.place).key end,
    case when p.repost_of is null then p.body else (s.place).body end,
    case when p.repost_of is null then p.data else (s.place).data end,
    coalesce((s.place).visibility, p.visibility), null::bigint,
    coalesce((s.place).created_at, p.created_at),
    case when p.repost_of is null then p.edited_at else (s.place).edited_at end,
    coalesce((s.place).mode, p.mode),
    -- One probe of the key a row whatever the statistics say: this table is empty at one moment and full at the next.
    (select w.post from {{schema}}.fan_outs w where w.post = coalesce((s.place).post, p.id) limit 1) is null,
    pa.id, (s.place).reposted_by, (s.place).reposted_id, (s.place).reposted_at
  from unnest(p_ids, p_sources) as c (id, source)
  join {{schema}}.posts p on p.id = c.id and p.deleted_at is null
  join {{schema}}.accounts pa on pa.number = p.author and pa.erased_at is null
  -- The offset keeps it one call.
  cross join lateral (
    select case when p.repost_of is not null or p.has_reposts
      then {{schema}}.place_of(p_reader, p.id, p.repost_of) end as place offset 0) s
  where (p.author = p_reader or exists (
      select 1 from {{schema}}.follows f
      where f.follower = p_reader and f.followee = p.author
        and (f.kept_until is null or (p.id <= f.kept_until and p.visibility = 'public'))))
    and p.author <> all (p_hidden)
    and (p.repost_of is null or (s.place).post is not null)
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
