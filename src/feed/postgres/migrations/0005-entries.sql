-- The entries of a post for the followers in (p_from, p_until] who take it: a timeline, seen lately, above the floor; and
-- its author's own. Answers the readers who got one. Nobody has one yet as a rule, so it is tried without ON CONFLICT,
-- which costs a third record of the log for every row: 1.3 to 1.5 times the whole. The range stands on both sides of the
-- join because the planner does not carry it over, and would read all readers for one batch of followers.
create function {{schema}}.write_entries(
  p_post bigint, p_author bigint, p_from bigint, p_until bigint, p_seen_after bigint, p_followers boolean)
returns bigint[]
language plpgsql as $$
declare
  written bigint[] := '{}';
  own bigint;
begin
  if p_followers then
    begin
      with entries as (
        insert into {{schema}}.timeline (reader, post)
        select f.follower, p_post
        from {{schema}}.follows f
        join {{schema}}.readers r on r.account = f.follower and r.account > p_from and r.account <= p_until
          and r.state in ('building', 'live') and r.seen_at > p_seen_after and r.floor < p_post
        where f.followee = p_author and f.kept_until is null and f.follower > p_from and f.follower <= p_until
          and exists (select 1 from {{schema}}.posts p where p.id = p_post and p.deleted_at is null)
        order by f.follower
        returning reader)
      select coalesce(array_agg(reader), '{}') into written from entries;
    exception when unique_violation then
      -- A backfill or a build was here before.
      with entries as (
        insert into {{schema}}.timeline (reader, post)
        select f.follower, p_post
        from {{schema}}.follows f
        join {{schema}}.readers r on r.account = f.follower and r.account > p_from and r.account <= p_until
          and r.state in ('building', 'live') and r.seen_at > p_seen_after and r.floor < p_post
        where f.followee = p_author and f.kept_until is null and f.follower > p_from and f.follower <= p_until
          and exists (select 1 from {{schema}}.posts p where p.id = p_post and p.deleted_at is null)
        order by f.follower
        on conflict do nothing returning reader)
      select coalesce(array_agg(reader), '{}') into written from entries;
    end;
  end if;
  -- The author's own entry again: the one of the publish may have met a timeline that was being built.
  insert into {{schema}}.timeline (reader, post)
  select r.account, p_post from {{schema}}.readers r
  where r.account = p_author and r.state in ('building', 'live') and r.floor < p_post
  on conflict do nothing returning reader into own;
  return case when own is null then written else written || own end;
end $$;
