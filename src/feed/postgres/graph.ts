/** Who follows, blocks and mutes whom, on Postgres. */
import type { GraphStore, ReaderState } from '../store.js';
import { accountLists } from './account-lists.js';
import { authorModes } from './author-modes.js';
import { importFollows } from './import-follows.js';
import { mergedFollowees } from './merged-followees.js';
import { nowSql } from './time.js';

type Relations = Omit<
  GraphStore,
  | 'listAccounts'
  | 'accountNumbers'
  | 'importFollows'
  | 'foldFollowers'
  | 'authorsToSwitch'
  | 'switchMode'
  | 'numberMerged'
  | 'listMergedFollowees'
>;

export function graphOperations(schema: string): GraphStore {
  return {
    ...relations(schema),
    ...accountLists(schema),
    ...importFollows(schema),
    ...authorModes(schema),
    ...mergedFollowees(schema),
  };
}

type CreatedRow = { readonly gone: boolean; readonly created: boolean };

function relations(schema: string): Relations {
  const blockedEitherWay = `
    select 1 from ${schema}.blocks where blocker = $1 and blocked = $2
    union all select 1 from ${schema}.blocks where blocker = $2 and blocked = $1`;
  // Both accounts, held so that an erasure which began in the meantime takes what is written here, too. What an index finds
  // unique is not changed by the beginning of an erasure, so that neither waits for the other.
  const alive = `
    select number from ${schema}.accounts where number in ($1, $2) and erased_at is null order by number for key share`;
  const lockReaders = `
    select account, state from ${schema}.readers where account = any($1::bigint[]) order by account for update`;
  // A kept history becomes a follow again, of a new generation.
  const insertFollow = `
    with alive as materialized (${alive}),
    barred as (${blockedEitherWay}),
    written as (
      insert into ${schema}.follows as f (follower, followee, created_at, pending)
      select $1, $2, ${nowSql('$4')}, $3 where (select count(*) from alive) = 2 and not exists (select 1 from barred)
      on conflict (follower, followee) do update
        set generation = excluded.generation, created_at = excluded.created_at, pending = excluded.pending, kept_until = null
        where f.kept_until is not null
      returning followee, generation),
    unlisted as (
      delete from ${schema}.merged_followees m using written, ${schema}.authors a
      where m.reader = $1 and a.account = written.followee and a.pushed_since > 0),
    answered as (
      delete from ${schema}.follow_requests q using written where q.follower = $1 and q.followee = written.followee),
    counted as (insert into ${schema}.follower_deltas (account, delta) select followee, 1 from written)
    select (select count(*) from alive) < 2 as gone, exists (select 1 from barred) as barred,
      (select generation from written) as generation`;
  const insertRequest = `
    with alive as materialized (${alive}),
    barred as (${blockedEitherWay}),
    following as (select 1 from ${schema}.follows where follower = $1 and followee = $2 and kept_until is null),
    written as (
      insert into ${schema}.follow_requests (follower, followee, created_at)
      select $1, $2, ${nowSql('$3')}
      where (select count(*) from alive) = 2 and not exists (select 1 from barred) and not exists (select 1 from following)
      on conflict (followee, follower) do nothing
      returning 1)
    select (select count(*) from alive) < 2 as gone, exists (select 1 from barred) as barred,
      exists (select 1 from following) as following,
      exists (select 1 from written) as created`;
  const deleteRequest = `delete from ${schema}.follow_requests where follower = $1 and followee = $2`;
  const deleteFollow = `
    with gone as (
      delete from ${schema}.follows where follower = $1 and followee = $2 and kept_until is null
      returning followee),
    withdrawn as (delete from ${schema}.follow_requests where follower = $1 and followee = $2 returning 1),
    counted as (insert into ${schema}.follower_deltas (account, delta) select followee, -1 from gone)
    select exists (select 1 from gone) or exists (select 1 from withdrawn) as existed`;
  // Pending: posts of before may not have reached the timeline, and their fan-outs will leave this reader out.
  const keepFollow = `
    with kept as (
      update ${schema}.follows set kept_until = ((${nowSql('$3')} + 1) << 20) - 1, pending = true
      where follower = $1 and followee = $2 and kept_until is null
      returning followee, generation),
    withdrawn as (delete from ${schema}.follow_requests where follower = $1 and followee = $2 returning 1),
    counted as (insert into ${schema}.follower_deltas (account, delta) select followee, -1 from kept)
    select exists (select 1 from kept) or exists (select 1 from withdrawn) as existed,
      (select generation from kept) as generation`;
  const forgetKept = `delete from ${schema}.follows where follower = $1 and followee = $2 and kept_until is not null`;
  const followState = `
    select 'following' as kind, created_at from ${schema}.follows
    where follower = $1 and followee = $2 and kept_until is null
    union all
    select 'requested', created_at from ${schema}.follow_requests where follower = $1 and followee = $2
    limit 1`;
  const followsMoreThan = `select 1 from ${schema}.follows where follower = $1 and kept_until is null offset $2 limit 1`;
  const insertBlock = `
    with alive as materialized (${alive}),
    written as (
      insert into ${schema}.blocks (blocker, blocked, created_at)
      select $1, $2, ${nowSql('$3')} where (select count(*) from alive) = 2
      on conflict do nothing returning 1),
    gone as (
      delete from ${schema}.follows where (follower = $1 and followee = $2) or (follower = $2 and followee = $1)
      returning followee, kept_until),
    withdrawn as (
      delete from ${schema}.follow_requests where (follower = $1 and followee = $2) or (follower = $2 and followee = $1)),
    counted as (
      insert into ${schema}.follower_deltas (account, delta) select followee, -1 from gone where kept_until is null)
    select (select count(*) from alive) < 2 as gone, exists (select 1 from written) as created`;
  const deleteBlock = `delete from ${schema}.blocks where blocker = $1 and blocked = $2`;
  const isBlocking = `select 1 from ${schema}.blocks where blocker = $1 and blocked = $2`;
  const insertMute = `
    with alive as materialized (${alive}),
    written as (
      insert into ${schema}.mutes (muter, muted, created_at)
      select $1, $2, ${nowSql('$3')} where (select count(*) from alive) = 2
      on conflict do nothing returning 1)
    select (select count(*) from alive) < 2 as gone, exists (select 1 from written) as created`;
  const deleteMute = `delete from ${schema}.mutes where muter = $1 and muted = $2`;
  const isMuting = `select 1 from ${schema}.mutes where muter = $1 and muted = $2`;

  return {
    async lockReaders(on, accounts) {
      const { rows } = await on.query<{ account: string; state: ReaderState }>(lockReaders, [accounts]);
      return new Map(rows.map(({ account, state }) => [account, state]));
    },

    async insertFollow(on, { follower, followee, pending, now }) {
      type FollowRow = { gone: boolean; barred: boolean; generation: string | null };
      const { rows } = await on.query<FollowRow>(insertFollow, [follower, followee, pending, now ?? null]);
      if (rows[0]?.gone) return { kind: 'gone', created: false };
      const generation = rows[0]?.generation ?? undefined;
      return {
        kind: rows[0]?.barred ? 'blocked' : 'following',
        created: generation !== undefined,
        generation,
      };
    },

    async insertRequest(on, { follower, followee, now }) {
      type RequestRow = { gone: boolean; barred: boolean; following: boolean; created: boolean };
      const { rows } = await on.query<RequestRow>(insertRequest, [follower, followee, now ?? null]);
      const row = rows[0];
      if (row?.gone) return { kind: 'gone', created: false };
      if (row?.barred) return { kind: 'blocked', created: false };
      return { kind: row?.following ? 'following' : 'requested', created: row?.created ?? false };
    },

    async deleteRequest(on, { follower, followee }) {
      return (await on.query(deleteRequest, [follower, followee])).rowCount > 0;
    },

    async deleteFollow(on, { follower, followee, keepHistory, now }) {
      if (keepHistory) {
        type KeptRow = { existed: boolean; generation: string | null };
        const { rows } = await on.query<KeptRow>(keepFollow, [follower, followee, now ?? null]);
        return { existed: rows[0]?.existed ?? false, kept: rows[0]?.generation ?? undefined };
      }
      const { rows } = await on.query<{ existed: boolean }>(deleteFollow, [follower, followee]);
      await on.query(forgetKept, [follower, followee]);
      return { existed: rows[0]?.existed ?? false, kept: undefined };
    },

    async followState(on, { follower, followee }) {
      const { rows } = await on.query<{ kind: 'following' | 'requested'; created_at: string }>(followState, [
        follower,
        followee,
      ]);
      return rows[0] && { kind: rows[0].kind, since: Number(rows[0].created_at) };
    },

    async followsMoreThan(on, { account, max }) {
      return (await on.query(followsMoreThan, [account, max])).rowCount > 0;
    },

    async insertBlock(on, { blocker, blocked, now }) {
      const { rows } = await on.query<CreatedRow>(insertBlock, [blocker, blocked, now ?? null]);
      return rows[0]?.gone ? undefined : rows[0]?.created;
    },

    async deleteBlock(on, { blocker, blocked }) {
      return (await on.query(deleteBlock, [blocker, blocked])).rowCount > 0;
    },

    async isBlocking(on, { blocker, blocked }) {
      return (await on.query(isBlocking, [blocker, blocked])).rowCount > 0;
    },

    async insertMute(on, { muter, muted, now }) {
      const { rows } = await on.query<CreatedRow>(insertMute, [muter, muted, now ?? null]);
      return rows[0]?.gone ? undefined : rows[0]?.created;
    },

    async deleteMute(on, { muter, muted }) {
      return (await on.query(deleteMute, [muter, muted])).rowCount > 0;
    },

    async isMuting(on, { muter, muted }) {
      return (await on.query(isMuting, [muter, muted])).rowCount > 0;
    },
  };
}
