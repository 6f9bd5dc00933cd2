/**
 * Follower counts and the mode that follows from them. A switch takes the author's row FOR UPDATE while every publish
 * holds it FOR SHARE, so the mode stored with a post is the one it was published under.
 */
import type { AuthorMode } from '../account.js';
import type { GraphStore } from '../store.js';
import { largestBigint, nowSql, postIdSql } from './time.js';

export function authorModes(
  schema: string,
): Pick<GraphStore, 'foldFollowers' | 'authorsToSwitch' | 'switchMode'> {
  // Authors in the order of their numbers: two folds at once then wait for each other and never crosswise.
  const fold = `
    with taken as (
      delete from ${schema}.follower_deltas where number = any(array(
        select number from ${schema}.follower_deltas order by number limit $1 for update skip locked))
      returning account, delta),
    sums as (select account, sum(delta) as delta from taken group by account order by account),
    folded as (
      insert into ${schema}.authors as w (account, followers) select account, delta from sums order by account
      on conflict (account) do update set followers = w.followers + excluded.followers
      returning account, mode, followers)
    select (select count(*) from taken) as taken, array(
      select account from folded
      where (mode = 'push' and followers >= $2) or (mode = 'pull' and followers < $3)) as crossed`;
  const page = `
    select account, (mode = 'push' and followers >= $2) or (mode = 'pull' and followers < $3) as crossed
    from ${schema}.authors where account > $1 order by account limit $4`;
  const lock = `select mode from ${schema}.authors where account = $1 for update`;
  const change = `
    update ${schema}.authors w set
      mode = case when w.mode = 'push' then 'pull' else 'push' end,
      -- Back to push: what was published until now is in no timeline. Not below any post there is, whatever the clock says.
      pushed_since = case when w.mode = 'push' then ${largestBigint} else greatest(
        ${postIdSql(schema, nowSql('$4'))},
        (select max(p.id) + 1 from ${schema}.posts p where p.author = w.account and p.deleted_at is null)) end
    where w.account = $1
      and ((w.mode = 'push' and w.followers >= $2) or (w.mode = 'pull' and w.followers < $3))
    returning w.mode`;
  return {
    async foldFollowers(on, { rowsMax, pullFrom, pushBelow }) {
      const { rows } = await on.query<{ taken: string; crossed: string[] }>(fold, [
        rowsMax,
        pullFrom,
        pushBelow,
      ]);
      return { taken: Number(rows[0]?.taken ?? 0), crossed: rows[0]?.crossed ?? [] };
    },

    async authorsToSwitch(on, { position, pullFrom, pushBelow, rowsMax }) {
      const values = [position, pullFrom, pushBelow, rowsMax];
      const { rows } = await on.query<{ account: string; crossed: boolean }>(page, values);
      return {
        crossed: rows.filter(({ crossed }) => crossed).map(({ account }) => account),
        position: rows.length < rowsMax ? undefined : rows.at(-1)?.account,
      };
    },

    async switchMode(on, { account, pullFrom, pushBelow, now }) {
      // Waits for publishes of this author; the change is a later statement and sees their posts.
      await on.query(lock, [account]);
      const { rows } = await on.query<{ mode: AuthorMode }>(change, [
        account,
        pullFrom,
        pushBelow,
        now ?? null,
      ]);
      return rows[0]?.mode;
    },
  };
}
