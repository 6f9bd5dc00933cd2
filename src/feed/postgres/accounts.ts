/** Accounts on Postgres: the caller's id and the number behind it. */
import type { AuthorMode } from '../account.js';
import type { AccountStore, KnownAccount } from '../store.js';
import { nowSql } from './time.js';

export function accountOperations(schema: string): AccountStore {
  const create = `
    with made as (
      insert into ${schema}.accounts (id, created_at)
      select wanted.id, ${nowSql('$2')} from (select distinct unnest($1::text[]) collate "C" as id order by 1) wanted
      on conflict (id) do nothing
      returning number)
    insert into ${schema}.readers (account) select number from made`;
  const setApproval = `update ${schema}.accounts set approves_followers = $2 where id = $1 and approves_followers <> $2`;
  const account = `
    select a.id, a.created_at, a.approves_followers, coalesce(w.mode, 'push') as mode,
      coalesce(w.followers, 0) + coalesce((select sum(d.delta) from ${schema}.follower_deltas d where d.account = a.number), 0)
        as followers,
      (select count(*) from ${schema}.follows f where f.follower = a.number and f.kept_until is null) as followees
    from ${schema}.accounts a left join ${schema}.authors w on w.account = a.number
    where a.id = $1 and a.erased_at is null`;
  const resolve = `
    select a.id, a.number, a.approves_followers from ${schema}.accounts a
    where a.id = any($1::text[]) and a.erased_at is null`;
  const markErased = `
    update ${schema}.accounts set erased_at = coalesce(erased_at, ${nowSql('$2')}) where id = $1 returning number`;

  return {
    async createAccounts(on, { ids, now }) {
      return (await on.query(create, [ids, now ?? null])).rowCount;
    },

    async setApproval(on, { id, approvesFollowers }) {
      await on.query(setApproval, [id, approvesFollowers]);
    },

    async account(on, id) {
      const { rows } = await on.query<{
        id: string;
        created_at: string;
        approves_followers: boolean;
        mode: AuthorMode;
        followers: string;
        followees: string;
      }>(account, [id]);
      const row = rows[0];
      return (
        row && {
          id: row.id,
          createdAt: Number(row.created_at),
          approvesFollowers: row.approves_followers,
          followers: Number(row.followers),
          followees: Number(row.followees),
          mode: row.mode,
        }
      );
    },

    async resolve(on, ids) {
      const { rows } = await on.query<{ id: string; number: string; approves_followers: boolean }>(resolve, [
        ids,
      ]);
      return new Map<string, KnownAccount>(
        rows.map((row) => [
          row.id,
          { id: row.id, number: row.number, approvesFollowers: row.approves_followers },
        ]),
      );
    },

    async markErased(on, { id, now }) {
      return (await on.query<{ number: string }>(markErased, [id, now ?? null])).rows[0]?.number;
    },

    eraseStep: eraseStep(schema),
  };
}

/**
 * Each step takes a bounded number of rows of the first kind that has any; the account itself goes last, so that its
 * posts stay hidden until they are gone.
 */
function eraseStep(schema: string): AccountStore['eraseStep'] {
  const bounded = (table: string, condition: string) =>
    `delete from ${schema}.${table} where ctid = any(array(select ctid from ${schema}.${table} where ${condition} limit $2))`;
  const follows = `
    with gone as (
      delete from ${schema}.follows where ctid = any(array(
        select ctid from ${schema}.follows where follower = $1 limit $2))
      returning followee, kept_until),
    counted as (
      insert into ${schema}.follower_deltas (account, delta) select followee, -1 from gone where kept_until is null)
    select 1 from gone`;
  const steps = [
    bounded('follows', 'followee = $1 and kept_until is null'),
    bounded('follows', 'followee = $1 and kept_until is not null'),
    bounded('follow_requests', 'followee = $1'),
    bounded('follow_requests', 'follower = $1'),
    bounded('blocks', 'blocker = $1'),
    bounded('blocks', 'blocked = $1'),
    bounded('mutes', 'muter = $1'),
    bounded('mutes', 'muted = $1'),
    bounded('fan_out_batches', `post in (select post from ${schema}.fan_outs where author = $1)`),
    bounded('fan_outs', 'author = $1'),
    bounded('posts', 'author = $1 and deleted_at is null'),
    bounded('rankings', 'reader = $1'),
    bounded('timeline', 'reader = $1'),
    bounded('merged_followees', 'reader = $1'),
    bounded('follower_deltas', 'account = $1'),
  ];
  // In the order of all who write: the reader, then the account. Who held it has written before the statements below look.
  const holds = [
    `select 1 from ${schema}.readers where account = $1 for update`,
    `select 1 from ${schema}.accounts where number = $1 for update`,
  ];
  const rest = [
    `delete from ${schema}.authors where account = $1`,
    `delete from ${schema}.readers where account = $1`,
    `delete from ${schema}.accounts where number = $1`,
  ];
  return async (on, { account, rowsMax }) => {
    for (const text of holds) await on.query(text, [account]);
    // The count of each followee changes with its row.
    const ended = await on.query(follows, [account, rowsMax]);
    if (ended.rowCount > 0) return true;
    for (const text of steps) {
      const { rowCount } = await on.query(text, [account, rowsMax]);
      if (rowCount > 0) return true;
    }
    for (const text of rest) await on.query(text, [account]);
    return false;
  };
}
