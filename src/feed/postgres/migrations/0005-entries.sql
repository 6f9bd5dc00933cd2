-- Followers in (p_from, p_until] who take a post: a timeline, seen lately, above the floor. The range stands on both sides of the
-- join because the planner does not carry it over, and would read all readers for one batch of followers. Part of the
-- statement that asks, as a view is.
create function {{schema}}.entry_takers(
  p_post bigint, p_author bigint, p_from bigint, p_until bigint, p_seen_after bigint)
returns setof bigint
language sql stable as $$
  select f.follower
  from {{schema}}.follows f
  join {{schema}}.readers r on r.account = f.follower and r.account > p_from and r.account <= p_until
    and r.state in ('building', 'live') and r.seen_at > p_seen_after and r.floor < p_post
  where f.followee = p_author and f.kept_until is null and f.follower > p_from and f.follower <= p_until
    and exists (select 1 from {{schema}}.posts p where p.id = p_post and p.deleted_at is null)
  order by f.follower
$$;

-- The entries of a post for the followers in (p_from, p_until] who take it, and its author's own. Answers how many there are
-- that were not there before. Nobody has one yet as a rule, so it is tried without ON CONFLICT, which costs a third record of
-- the log for every row: 1.3 to 1.5 times the whole.
--
-- The commit is not waited for: what a crash takes of the last moments it takes from the end of the log, entries and the
-- mark that they are written alike, so the fan-out is open again and its work is found.
create function {{schema}}.write_entries(
  p_post bigint, p_author bigint, p_from bigint, p_until bigint, p_seen_after bigint, p_followers boolean)
returns bigint
language plpgsql as $$
declare
  written bigint := 0;
  more bigint;
begin
  perform set_config('synchronous_commit', 'off', true);
  if p_followers then
    begin
      insert into {{schema}}.timeline (reader, post)
      select reader, p_post from {{schema}}.entry_takers(p_post, p_author, p_from, p_until, p_seen_after) reader;
    exception when unique_violation then
      -- A backfill or a build was here before.
      insert into {{schema}}.timeline (reader, post)
      select reader, p_post from {{schema}}.entry_takers(p_post, p_author, p_from, p_until, p_seen_after) reader
      on conflict do nothing;
    end;
    get diagnostics written = row_count;
    -- Who keeps the author's history keeps what is dated back into it; a new post is in nobody's.
    insert into {{schema}}.timeline (reader, post)
    select f.follower, p_post
    from {{schema}}.follows f
    join {{schema}}.readers r on r.account = f.follower
      and r.state in ('building', 'live') and r.seen_at > p_seen_after and r.floor < p_post
    where f.followee = p_author and f.kept_until >= p_post and f.follower > p_from and f.follower <= p_until
      and exists (
        select 1 from {{schema}}.posts p where p.id = p_post and p.deleted_at is null and p.visibility = 'public')
    on conflict do nothing;
    get diagnostics more = row_count;
    written := written + more;
  end if;
  -- The author's own entry again: the one of the publish may have met a timeline that was being built.
  insert into {{schema}}.timeline (reader, post)
  select r.account, p_post from {{schema}}.readers r
  where r.account = p_author and r.state in ('building', 'live') and r.floor < p_post
  on conflict do nothing;
  get diagnostics more = row_count;
  return written + more;
end $$;

-- One range of a fan-out with its mark, and the end of the fan-out if it was the last one; no row: it was done before.
create function {{schema}}.write_batch(
  p_post bigint, p_batch integer, p_active_ms bigint, p_followers boolean, p_now bigint)
returns table (written bigint, ended_after bigint, lane text)
language plpgsql as $$
#variable_conflict use_column
declare
  first bigint;
  last bigint;
  author_now bigint;
begin
  delete from {{schema}}.fan_out_batches b where b.post = p_post and b.batch = p_batch
  returning b.follower_from, b.follower_until into first, last;
  if not found then return; end if;
  select w.author into author_now from {{schema}}.fan_outs w where w.post = p_post;
  written := case when found then {{schema}}.write_entries(
    p_post, author_now, first, last,
    coalesce(p_now, floor(extract(epoch from statement_timestamp()) * 1000)::bigint) - p_active_ms, p_followers) else 0 end;
  -- Two last batches at once: the row is locked after the entries are written, and who comes second sees both ranges gone.
  perform 1 from {{schema}}.fan_outs w where w.post = p_post for update;
  delete from {{schema}}.fan_outs w
  where w.post = p_post and not exists (select 1 from {{schema}}.fan_out_batches b where b.post = w.post)
  returning coalesce(p_now, floor(extract(epoch from clock_timestamp()) * 1000)::bigint) - w.published_at, w.lane
  into ended_after, lane;
  return next;
end $$;
