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

-- Counts notifications whose key is new against their limits (`p_of`: the place of the notification); answers those that are
-- over one, which are not counted. With `p_all` either every one is counted or none. The rows of its subjects stay locked
-- until the transaction ends, in one order for everybody: of many at once no more get through than the limit says, and what
-- is rolled back has not been counted.
create function {{schema}}.take_sends(
  p_users text[], p_kinds text[], p_keys text[], p_of integer[], p_subjects text[], p_counts integer[], p_windows_ms bigint[],
  p_all boolean, p_key_wait_ms bigint, p_now bigint
) returns table (place integer, retry_after_ms bigint)
language plpgsql
as $$
#variable_conflict use_column
declare
  t bigint;
  ends bigint;
begin
  if p_key_wait_ms is not null then perform set_config('lock_timeout', p_key_wait_ms || 'ms', true); end if;
  t := coalesce(p_now, floor(extract(epoch from statement_timestamp()) * 1000)::bigint);

  insert into {{schema}}.recent_sends as r (kind, subject, times, kept_until)
  select distinct p_kinds[x.of], x.subject, '{}'::bigint[], 0::bigint
  from unnest(p_of, p_subjects) as x(of, subject) order by 1, 2
  on conflict (kind, subject) do update set kept_until = r.kept_until;

  begin
    for i in 1 .. cardinality(p_users) loop
      -- A repeat is answered with the first one, whatever the limit.
      continue when exists (
        select from {{schema}}.notifications n
        where n.user_id = p_users[i] and n.kind = p_kinds[i] and n.key = p_keys[i]);
      select max(r.times[cardinality(r.times) - x.count + 1] + x.window_ms) into ends
      from unnest(p_of, p_subjects, p_counts, p_windows_ms) as x(of, subject, count, window_ms)
      join {{schema}}.recent_sends r on r.kind = p_kinds[i] and r.subject = x.subject
      where x.of = i;
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
          select x.subject, max(x.count) as count, max(x.window_ms) as window_ms
          from unnest(p_of, p_subjects, p_counts, p_windows_ms) as x(of, subject, count, window_ms)
          where x.of = i group by x.subject
        ) x
        where r.kind = p_kinds[i] and r.subject = x.subject;
      end if;
    end loop;
  exception when sqlstate 'HG429' then
    return next;
  end;
end $$;
