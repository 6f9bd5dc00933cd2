/**
 * Timelines on Postgres: per reader a bounded list of post ids, derived from posts and follows. All but `insertNewest`
 * run with the reader's row locked, so a build, a backfill, a trim and a clean-up of one reader never interleave.
 */
import type { ReaderState, TimelineStore } from '../store.js';
import { largestBigint, nowSql } from './time.js';

export function timelineOperations(schema: string): TimelineStore {
  return { ...entryOperations(schema), ...buildOperations(schema), ...readerOperations(schema) };
}

function entryOperations(schema: string): Pick<TimelineStore, 'insertNewest' | 'backfill' | 'forgetAuthor'> {
  const insert = `
    insert into ${schema}.timeline (reader, post)
    select r.account, p.id
    from ${schema}.readers r join ${schema}.follows f on f.follower = $1 and f.followee = $2
    cross join lateral (
      select p.id from ${schema}.posts p
      where p.author = $2 and p.deleted_at is null and p.id > r.floor and p.id <= coalesce(f.kept_until, ${largestBigint})
      order by p.id desc limit $3) p
    where r.account = $1 and r.state in ('building', 'live')
      -- Merged at read whatever the timeline holds.
      and not exists (select 1 from ${schema}.authors w where w.account = $2 and w.mode = 'pull')
    on conflict do nothing`;
  // More posts above the floor than a timeline may hold: the floor rises to the first one left out.
  const raiseFloor = `
    update ${schema}.readers r set floor = greatest(r.floor, coalesce((
      select p.id from ${schema}.posts p
      where p.author = $2 and p.deleted_at is null and p.id > r.floor
      order by p.id desc offset $3 limit 1), 0))
    where r.account = $1
      and not exists (select 1 from ${schema}.authors w where w.account = $2 and w.mode = 'pull')`;
  const settle = `update ${schema}.follows set pending = false where follower = $1 and followee = $2 and pending`;
  const forget = `
    delete from ${schema}.timeline t using ${schema}.posts p
    where t.reader = $1 and t.post > 0 and p.id = t.post and p.author = $2 and $1 <> $2
      and not exists (select 1 from ${schema}.follows f where f.follower = $1 and f.followee = $2)`;
  return {
    async insertNewest(on, { reader, author, limit }) {
      return (await on.query(insert, [reader, author, limit])).rowCount;
    },

    async backfill(on, { reader, author, entriesMax }) {
      await on.query(raiseFloor, [reader, author, entriesMax]);
      const { rowCount } = await on.query(insert, [reader, author, entriesMax]);
      await on.query(settle, [reader, author]);
      return rowCount;
    },

    async forgetAuthor(on, { reader, author }) {
      return (await on.query(forget, [reader, author])).rowCount;
    },
  };
}

function buildOperations(schema: string): Pick<TimelineStore, 'dropTimeline' | 'beginBuild' | 'finishBuild'> {
  const clear = `
    with unlisted as (delete from ${schema}.merged_followees where reader = $1)
    delete from ${schema}.timeline where reader = $1`;
  const setState = `update ${schema}.readers set state = $2, token = 0, floor = 0 where account = $1`;
  const begin = `
    with build as (
      update ${schema}.readers set state = 'building', floor = 0, token = nextval('${schema}.timeline_tokens'),
        seen_at = ${nowSql('$2')}
      where account = $1 returning account, token),
    marker as (insert into ${schema}.timeline (reader, post) select account, -token from build)
    select token from build`;
  const current = `select 1 from ${schema}.readers where account = $1 and state = 'building' and token = $2`;
  // One more than the timeline keeps: the first one left out becomes the floor.
  const fill = `
    with newest as materialized (
      select p.id from (
        select f.followee as author, coalesce(f.kept_until, ${largestBigint}) as until
        from ${schema}.follows f where f.follower = $1
        union all select $1::bigint, ${largestBigint}) f
      cross join lateral (
        select p.id from ${schema}.posts p
        where p.author = f.author and p.deleted_at is null and p.id <= f.until
          and not exists (select 1 from ${schema}.authors w where w.account = f.author and w.mode = 'pull')
        order by p.id desc limit $2 + 1) p
      order by p.id desc limit $2 + 1),
    entries as (
      insert into ${schema}.timeline (reader, post)
      select $1, id from (select id from newest order by id desc limit $2) kept on conflict do nothing
      returning 1),
    settled as (
      -- A kept history has a backfill of its own to come, which sees what is committed later.
      update ${schema}.follows set pending = false where follower = $1 and pending and kept_until is null)
    update ${schema}.readers set state = 'live', seen_at = ${nowSql('$3')},
      floor = coalesce((select id from newest order by id desc offset $2 limit 1), 0)
    where account = $1
    returning (select count(*) from entries) as entries`;
  return {
    async dropTimeline(on, { reader, state }) {
      await on.query(clear, [reader]);
      await on.query(setState, [reader, state]);
    },

    async beginBuild(on, { reader, now }) {
      await on.query(clear, [reader]);
      const { rows } = await on.query<{ token: string }>(begin, [reader, now ?? null]);
      return rows[0]?.token ?? '0';
    },

    async finishBuild(on, { reader, token, entriesMax, now }) {
      if ((await on.query(current, [reader, token])).rowCount === 0) return undefined;
      const { rows } = await on.query<{ entries: string }>(fill, [reader, entriesMax, now ?? null]);
      return Number(rows[0]?.entries ?? 0);
    },
  };
}

function readerOperations(schema: string): Pick<TimelineStore, 'readerState' | 'touchReader' | 'trimStep'> {
  const state = `
    select r.state, ${schema}.usable_floor(r.account, ${nowSql('$3')}, $2::bigint) < 9223372036854775807 as usable
    from ${schema}.readers r join ${schema}.accounts a on a.number = r.account and a.erased_at is null
    where r.account = $1`;
  // Not once it counts as inactive: entries may have been left out since, and only a build knows.
  const touch = `
    update ${schema}.readers r set seen_at = ${nowSql('$3')}
    where r.account = $1 and r.state = 'live' and r.seen_at > ${nowSql('$3')} - $2`;
  const page = `
    select r.account, (
      select t.post from ${schema}.timeline t where t.reader = r.account and t.post > r.floor
      order by t.post desc offset $2 limit 1) is not null as over
    from ${schema}.readers r where r.account > $1 and r.state = 'live' order by r.account limit 100`;
  const lock = `select 1 from ${schema}.readers where account = $1 and state = 'live' for update`;
  const trim = `
    with cut as (
      select t.post from ${schema}.timeline t join ${schema}.readers r on r.account = $1
      where t.reader = $1 and t.post > r.floor order by t.post desc offset $2 limit 1),
    raised as (
      update ${schema}.readers set floor = greatest(floor, (select post from cut))
      where account = $1 and exists (select 1 from cut))
    delete from ${schema}.timeline where reader = $1 and post > 0 and post <= (select post from cut)`;
  return {
    async readerState(on, { reader, activeMs, now }) {
      const { rows } = await on.query<{ state: ReaderState; usable: boolean }>(state, [
        reader,
        activeMs,
        now ?? null,
      ]);
      return rows[0];
    },

    async touchReader(on, { reader, activeMs, now }) {
      await on.query(touch, [reader, activeMs, now ?? null]);
    },

    async trimStep(on, { position, entriesMax, slack }) {
      const { rows } = await on.query<{ account: string; over: boolean }>(page, [
        position,
        entriesMax + slack,
      ]);
      let trimmed = 0;
      for (const { account } of rows.filter(({ over }) => over)) {
        if ((await on.query(lock, [account])).rowCount === 0) continue;
        trimmed += (await on.query(trim, [account, entriesMax])).rowCount;
      }
      return { position: rows.length < 100 ? undefined : rows.at(-1)?.account, trimmed };
    },
  };
}
