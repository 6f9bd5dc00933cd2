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
