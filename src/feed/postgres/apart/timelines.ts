/**
 * Timelines outside the database: built, filled, tidied and dropped. No list is asked while a transaction is open: the reader's
 * row is locked for what is read of the graph, and what was written outside counts when a second transaction finds the same
 * build still standing.
 */
import type { Queryable } from '../../../database/index.js';
import type { ReaderState, TimelineStore } from '../../store.js';
import { largestBigint, nowSql } from '../time.js';
import { noteReader } from './journal.js';
import type { Apart } from './operations.js';

export function timelinesApart(apart: Apart): TimelineStore {
  return { ...filling(apart), ...building(apart), ...watching(apart) };
}

const lockReader = (schema: string) =>
  `select state, token from ${schema}.readers where account = $1 for update`;

type LockedRow = { state: ReaderState; token: string };

function filling({
  schema,
  database,
  lists,
}: Apart): Pick<TimelineStore, 'insertNewest' | 'backfill' | 'forgetAuthor'> {
  const newest = `
    select p.id from ${schema}.follows f cross join lateral (
      select p.id from ${schema}.posts p
      where p.author = f.followee and p.deleted_at is null and p.id <= coalesce(f.kept_until, ${largestBigint})
      order by p.id desc limit $3) p
    where f.follower = $1 and f.followee = $2
      -- Merged at read whatever the timeline holds.
      and not exists (select 1 from ${schema}.authors w where w.account = $2 and w.mode = 'pull')
    order by p.id desc`;
  const settle = `update ${schema}.follows set pending = false where follower = $1 and followee = $2 and pending`;
  const own = `
    select p.id from ${schema}.posts p
    where p.id = any($3::bigint[]) and p.author = $2 and $1::bigint <> $2
      and not exists (select 1 from ${schema}.follows f where f.follower = $1 and f.followee = $2)`;
  const filled = `
    update ${schema}.readers set list_version = greatest(list_version, $3) where account = $1 and token = $2`;
  const note = noteReader(schema);
  return {
    // Until the backfill has run the follow is pending and its author merged at read: nothing has to be there at once.
    async insertNewest() {
      return 0;
    },

    async backfill(_, { reader, author, entriesMax, activeMs, now }) {
      const found = await database.transaction(async (transaction) => {
        const locked = (await transaction.query<LockedRow>(lockReader(schema), [reader])).rows[0];
        if (locked?.state !== 'live' && locked?.state !== 'building') {
          await transaction.query(settle, [reader, author]);
          return undefined;
        }
        const { rows } = await transaction.query<{ id: string }>(newest, [reader, author, entriesMax + 1]);
        return { token: locked.token, ids: rows.map(({ id }) => id) };
      });
      if (!found) return 0;
      const { token, ids } = found;
      const merged = await lists.merge({
        reader,
        token,
        ids: ids.slice(0, entriesMax),
        // More posts than a timeline may hold: the floor rises to the first one left out.
        floor: ids[entriesMax] ?? '0',
        entriesMax,
        keptMs: activeMs,
      });
      // The list is gone or another build's, which finds these posts by itself; until then the author is merged.
      if (!merged) return 0;
      await database.transaction(async (transaction) => {
        const locked = (await transaction.query<LockedRow>(lockReader(schema), [reader])).rows[0];
        if (locked?.token !== token) return;
        await note(transaction, { reader, servers: [merged.server], now });
        await transaction.query(filled, [reader, token, merged.version]);
        await transaction.query(settle, [reader, author]);
      });
      return merged.added;
    },

    async forgetAuthor(on, { reader, author }) {
      const list = await lists.read({ reader, position: largestBigint, older: true, count: 100_000 });
      if (!list) return 0;
      const { rows } = await on.query<{ id: string }>(own, [reader, author, list.ids]);
      return lists.remove({ reader, ...list, ids: rows.map(({ id }) => id) });
    },
  };
}

function building({
  schema,
  database,
  lists,
}: Apart): Pick<TimelineStore, 'dropTimeline' | 'beginBuild' | 'finishBuild'> {
  const setState = `
    with unlisted as (delete from ${schema}.merged_followees where reader = $1)
    update ${schema}.readers set state = $2, token = 0, floor = 0 where account = $1`;
  const begin = `
    with unlisted as (delete from ${schema}.merged_followees where reader = $1)
    update ${schema}.readers set state = 'building', floor = ${largestBigint}, seen_at = ${nowSql('$2')},
      list_version = 0, token = nextval('${schema}.timeline_tokens')
    where account = $1 returning token`;
  const newest = `
    with newest as (
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
    settled as (
      -- A kept history has a backfill of its own to come, which sees what is committed later.
      update ${schema}.follows set pending = false where follower = $1 and pending and kept_until is null)
    select id from newest order by id desc`;
  const finish = `
    update ${schema}.readers set state = 'live', seen_at = ${nowSql('$2')}, list_version = greatest(list_version, $3)
    where account = $1`;
  const note = noteReader(schema);
  return {
    async dropTimeline(on, { reader, state }) {
      await on.query(setState, [reader, state]);
      // Not waited for inside the caller's transaction. If that is rolled back the list is built anew, if the list stays nobody
      // reads it, and vacuum takes it.
      lists.drop([reader]).catch(() => {});
    },

    async beginBuild(on, { reader, now }) {
      return (await on.query<{ token: string }>(begin, [reader, now ?? null])).rows[0]?.token ?? '0';
    },

    async finishBuild(_, { reader, token, entriesMax, activeMs, now }) {
      // Takes entries from now on: what is committed after the posts have been looked up arrives by its fan-out.
      await lists.begin({ reader, token, keptMs: activeMs });
      const stands = async (on: Queryable) => {
        const locked = (await on.query<LockedRow>(lockReader(schema), [reader])).rows[0];
        return locked?.state === 'building' && locked.token === token;
      };
      const ids = await database.transaction(async (transaction) => {
        if (!(await stands(transaction))) return undefined;
        const { rows } = await transaction.query<{ id: string }>(newest, [reader, entriesMax]);
        return rows.map(({ id }) => id);
      });
      if (!ids) return undefined;
      const merged = await lists.merge({
        reader,
        token,
        ids: ids.slice(0, entriesMax),
        floor: ids[entriesMax] ?? '0',
        entriesMax,
        keptMs: activeMs,
      });
      if (!merged) return undefined;
      return database.transaction(async (transaction) => {
        if (!(await stands(transaction))) return undefined;
        await note(transaction, { reader, servers: [merged.server], now });
        await transaction.query(finish, [reader, now ?? null, merged.version]);
        return merged.added;
      });
    },
  };
}

function watching({ schema, lists }: Apart): Pick<TimelineStore, 'readerState' | 'touchReader' | 'trimStep'> {
  const state = `
    select r.state, r.state = 'live' and r.seen_at > ${nowSql('$3')} - $2 and r.token = $4 and exists (
        select 1 from ${schema}.timeline_servers s where s.id = $5 and s.tokens_from <= r.token) as usable
    from ${schema}.readers r join ${schema}.accounts a on a.number = r.account and a.erased_at is null
    where r.account = $1`;
  // Not once it counts as inactive: entries may have been left out since, and only a build knows.
  const touch = `
    update ${schema}.readers r set seen_at = ${nowSql('$3')}
    where r.account = $1 and r.state = 'live' and r.seen_at > ${nowSql('$3')} - $2`;
  return {
    async readerState(on, { reader, activeMs, now }) {
      const list = await lists.read({ reader, position: largestBigint, older: true, count: 1 });
      const values = [reader, activeMs, now ?? null, list?.token ?? null, list?.server ?? null];
      const row = (await on.query<{ state: ReaderState; usable: boolean | null }>(state, values)).rows[0];
      return row && { state: row.state, usable: row.usable === true };
    },

    async touchReader(on, { reader, activeMs, now }) {
      const { rowCount } = await on.query(touch, [reader, activeMs, now ?? null]);
      // A day more than counts for a read, so that the list never goes first.
      if (rowCount > 0) await lists.renew({ reader, keptMs: activeMs + 86_400_000 });
    },

    // The push that makes a list too long trims it.
    async trimStep() {
      return { position: undefined, trimmed: 0 };
    },
  };
}
