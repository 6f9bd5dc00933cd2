/**
 * One bounded step of a bulk import of follows: accounts, follows, follower counts, timelines dropped.
 */
import type { GraphStore, ReaderState } from '../store.js';
import { nowSql } from './time.js';

export function importFollows(schema: string): Pick<GraphStore, 'accountNumbers' | 'importFollows'> {
  const createAccounts = `
    with made as (
      insert into ${schema}.accounts (id, created_at)
      select wanted.id, ${nowSql('$2')} from (select unnest($1::text[]) collate "C" as id order by 1) wanted
      on conflict (id) do nothing
      returning id, number),
    readers as (insert into ${schema}.readers (account) select number from made)
    select id, number, true as made from made
    union all
    select a.id, a.number, false from ${schema}.accounts a where a.id = any($1::text[]) and a.erased_at is null`;
  // A number may have been learned before the account was erased. Those that live are held as by a single follow.
  const alive = `
    select number from ${schema}.accounts where number = any($1::bigint[]) and erased_at is null order by number for key share`;
  // A kept history becomes a follow again.
  const insert = `
    with written as (
      insert into ${schema}.follows as f (follower, followee, created_at)
      select p.follower, p.followee, ${nowSql('$3')} from unnest($1::bigint[], $2::bigint[]) as p (follower, followee)
      where not exists (select 1 from ${schema}.blocks b where b.blocker = p.follower and b.blocked = p.followee)
        and not exists (select 1 from ${schema}.blocks b where b.blocker = p.followee and b.blocked = p.follower)
      on conflict (follower, followee) do update
        set generation = excluded.generation, created_at = excluded.created_at, pending = false, kept_until = null
        where f.kept_until is not null
      returning follower, followee),
    unlisted as (delete from ${schema}.merged_followees m using written where m.reader = written.follower),
    answered as (
      delete from ${schema}.follow_requests q using written w where q.follower = w.follower and q.followee = w.followee),
    counted as (
      -- Added at once and not as changes: an import names each followee once a step and in order, so that two imports
      -- wait for each other and never crosswise.
      insert into ${schema}.authors as w (account, followers)
      select followee, count(*) from written group by followee order by followee
      on conflict (account) do update set followers = w.followers + excluded.followers)
    select count(*) as created,
      array(select distinct follower from written where follower = any($4::bigint[])) as changed
    from written`;
  const blockedAmong = `
    select count(*) as blocked from unnest($1::bigint[], $2::bigint[]) as p (follower, followee)
    where exists (select 1 from ${schema}.blocks b where b.blocker = p.follower and b.blocked = p.followee)
      or exists (select 1 from ${schema}.blocks b where b.blocker = p.followee and b.blocked = p.follower)`;
  const drop = `update ${schema}.readers set state = 'none', token = 0 where account = any($1::bigint[])`;
  const lock = `
    select account, state from ${schema}.readers where account = any($1::bigint[]) order by account for update`;

  return {
    async accountNumbers(on, { ids, now }) {
      const { rows } = await on.query<{ id: string; number: string; made: boolean }>(createAccounts, [
        ids,
        now ?? null,
      ]);
      return {
        numbers: new Map(rows.map(({ id, number }) => [id, number])),
        created: rows.filter(({ made }) => made).length,
      };
    },

    async importFollows(on, { now, ...given }) {
      const locked = await on.query<{ account: string; state: ReaderState }>(lock, [
        [...new Set(given.followers)],
      ]);
      const named = [...new Set([...given.followers, ...given.followees])];
      const held = await on.query<{ number: string }>(alive, [named]);
      const living = new Set(held.rows.map(({ number }) => number));
      const isWhole = (_: string, index: number): boolean =>
        living.has(given.followers[index] ?? '') && living.has(given.followees[index] ?? '');
      const [followers, followees] = [given.followers.filter(isWhole), given.followees.filter(isWhole)];
      const live = locked.rows.filter(({ state }) => state === 'live' || state === 'building');
      const values = [followers, followees, now ?? null, live.map(({ account }) => account)];
      const { rows } = await on.query<{ created: string; changed: string[] }>(insert, values);
      const created = Number(rows[0]?.created ?? 0);
      const dropped = rows[0]?.changed ?? [];
      if (dropped.length > 0) await on.query(drop, [dropped]);
      // Only what was not written can have been blocked.
      const blocked =
        created === followers.length
          ? 0
          : Number(
              (await on.query<{ blocked: string }>(blockedAmong, [followers, followees])).rows[0]?.blocked,
            );
      return { created, blocked, dropped };
    },
  };
}
