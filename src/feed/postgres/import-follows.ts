/** One bounded step of a bulk import of follows: accounts, follows, follower counts, timelines dropped. */
import type { GraphStore } from '../store.js';
import { nowSql } from './time.js';

export function importFollows(schema: string): Pick<GraphStore, 'importFollows'> {
  const createAccounts = `
    with made as (
      insert into ${schema}.accounts (id, created_at)
      select wanted.id, ${nowSql('$2')} from (select unnest($1::text[]) collate "C" as id order by 1) wanted
      where not exists (select 1 from ${schema}.accounts a where a.id = wanted.id)
      on conflict (id) do nothing
      returning number)
    insert into ${schema}.readers (account) select number from made`;
  // An erased account takes no new follows; its number is missing and its pairs are left out.
  const numbers = `
    select a.number from unnest($1::text[]) with ordinality as wanted (id, place)
    left join ${schema}.accounts a on a.id = wanted.id and a.erased_at is null
    order by wanted.place`;
  const lock = `
    select 1 from ${schema}.readers where account = any($1::bigint[]) order by account for update`;
  const insert = `
    with pairs as (select * from unnest($1::bigint[], $2::bigint[]) as p (follower, followee)),
    barred as (
      select p.follower, p.followee from pairs p
      where exists (select 1 from ${schema}.blocks b where b.blocker = p.follower and b.blocked = p.followee)
        or exists (select 1 from ${schema}.blocks b where b.blocker = p.followee and b.blocked = p.follower)),
    written as (
      insert into ${schema}.follows as f (follower, followee, created_at)
      select p.follower, p.followee, ${nowSql('$3')} from pairs p
      where not exists (select 1 from barred b where b.follower = p.follower and b.followee = p.followee)
      on conflict (follower, followee) do update
        set generation = excluded.generation, created_at = excluded.created_at, pending = false, kept_until = null
        where f.kept_until is not null
      returning follower, followee),
    counted as (
      insert into ${schema}.follower_deltas (account, delta)
      select followee, count(*) from written group by followee),
    dropped as (
      update ${schema}.readers r set state = 'none', token = 0
      where r.account in (select follower from written) and r.state in ('live', 'building')
      returning r.account)
    select (select count(*) from written) as created, (select count(*) from barred) as barred,
      array(select account from dropped) as dropped`;

  return {
    async importFollows(on, { ids, followers, followees, now }) {
      const accountsCreated = (await on.query(createAccounts, [ids, now ?? null])).rowCount;
      const { rows } = await on.query<{ number: string | null }>(numbers, [ids]);
      const pairs = { followers: [] as string[], followees: [] as string[] };
      for (const [place, followerIndex] of followers.entries()) {
        const follower = rows[followerIndex]?.number;
        const followee = rows[followees[place] ?? -1]?.number;
        if (!follower || !followee) continue;
        pairs.followers.push(follower);
        pairs.followees.push(followee);
      }
      await on.query(lock, [[...new Set(pairs.followers)]]);
      const answer = await on.query<{ created: string; barred: string; dropped: string[] }>(insert, [
        pairs.followers,
        pairs.followees,
        now ?? null,
      ]);
      const row = answer.rows[0];
      return {
        created: Number(row?.created ?? 0),
        blocked: Number(row?.barred ?? 0),
        accountsCreated,
        dropped: row?.dropped ?? [],
      };
    },
  };
}
