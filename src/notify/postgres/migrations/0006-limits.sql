-- How many of a kind one user, or one address, may be sent within a window.

-- A JSON list of { per, count, windowMs }.
alter table {{schema}}.kinds add column limits text not null default '[]';

-- When notifications of kinds with a limit were accepted, for each user (`user ann`) and address (`sms +41…`): as many as the
-- largest limit counts, oldest first.
create table {{schema}}.recent_sends (
  kind text collate "C" not null,
  subject text collate "C" not null,
  times bigint[] not null,
  kept_until bigint not null,
  primary key (kind, subject)
);
create index recent_sends_kept on {{schema}}.recent_sends (kept_until);

-- Counts notifications whose key is new against their limits; answers the places of those that are over one, which are not
-- counted. Limits stand one after the other in the order of their notifications, `p_ends` tells where those of each end.
-- With `p_all` either every one is counted or none. The rows of its subjects stay locked until the transaction ends, in one
-- order for everybody: of many at once no more get through than the limit says, and what is rolled back has not been counted.
create function {{schema}}.take_sends(
  p_users text[], p_kinds text[], p_keys text[], p_ends integer[], p_subject_kinds text[], p_subjects text[],
  p_counts integer[], p_windows_ms bigint[], p_all boolean, p_key_wait_ms bigint, p_now bigint
) returns table (place integer, retry_after_ms bigint)
language plpgsql
set plan_cache_mode = force_generic_plan set jit = off set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  t bigint;
  ends bigint;
  first_limit integer := 1;
  subjects text[];
  counts integer[];
  windows bigint[];
begin
  if p_key_wait_ms is not null then perform set_config('lock_timeout', p_key_wait_ms || 'ms', true); end if;
  t := coalesce(p_now, floor(extract(epoch from statement_timestamp()) * 1000)::bigint);

  insert into {{schema}}.recent_sends as r (kind, subject, times, kept_until)
  select distinct x.kind, x.subject, '{}'::bigint[], 0::bigint
  from unnest(p_subject_kinds, p_subjects) as x(kind, subject) order by 1, 2
  on conflict (kind, subject) do update set kept_until = r.kept_until;

  begin
    for i in 1 .. cardinality(p_users) loop
      subjects := p_subjects[first_limit:p_ends[i]];
      counts := p_counts[first_limit:p_ends[i]];
      windows := p_windows_ms[first_limit:p_ends[i]];
      first_limit := p_ends[i] + 1;
      -- A repeat is answered with the first one, whatever the limit.
      continue when exists (
        select from {{schema}}.notifications n
        where n.user_id = p_users[i] and n.kind = p_kinds[i] and n.key = p_keys[i]);
      select max(r.times[cardinality(r.times) - x.count + 1] + x.window_ms) into ends
      from unnest(subjects, counts, windows) as x(subject, count, window_ms)
      cross join lateral (
        -- One look a subject: a join may begin with every row of the kind.
        select r.times from {{schema}}.recent_sends r where r.kind = p_kinds[i] and r.subject = x.subject limit 1
      ) r;
      if ends > t then
        place := i;
        retry_after_ms := ends - t;
        if p_all then raise sqlstate 'HG429'; end if;
        return next;
      else
        -- Who has waited for the row has an older time than the one before.
        update {{schema}}.recent_sends r set
          times = (r.times || greatest(t, r.times[cardinality(r.times)]))[greatest(1, cardinality(r.times) + 2 - x.count):],
          kept_until = greatest(r.kept_until, t + x.window_ms)
        from (
          select r.place, x.count, x.window_ms
          from (
            select x.subject, max(x.count) as count, max(x.window_ms) as window_ms
            from unnest(subjects, counts, windows) as x(subject, count, window_ms) group by x.subject
          ) x cross join lateral (
            select r.ctid as place from {{schema}}.recent_sends r
            where r.kind = p_kinds[i] and r.subject = x.subject limit 1
          ) r
        ) x
        where r.ctid = x.place;
      end if;
    end loop;
  exception when sqlstate 'HG429' then
    return next;
  end;
end $$;
