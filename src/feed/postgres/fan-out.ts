/**
 * Fan-out on Postgres. The row in fan_outs says that a post has not reached everybody; it goes in the transaction of the
 * last entries. Entries go only to readers with a timeline who were seen lately, above their floor: one piece of SQL
 * decides that for every caller.
 */
import type { FanOutLane, FanOutProgress } from '../operate.js';
import type { BatchWritten, FanOutStore, OpenFanOut } from '../store.js';
import { largestBigint, nowSql, postIdSql } from './time.js';

export function fanOutOperations(schema: string): FanOutStore {
  return { ...splitOperations(schema), ...writeOperations(schema), ...watchOperations(schema) };
}

type OpenRow = {
  readonly post: string;
  readonly author: string;
  readonly lane: FanOutLane;
  readonly published_at: string;
  readonly batches: number | null;
  readonly left_over: number[];
};

function openFanOut({ post, author, lane, published_at, batches, left_over }: OpenRow): OpenFanOut {
  const publishedAt = Number(published_at);
  return { post, author, lane, publishedAt, batches: batches === null ? undefined : left_over };
}

function splitOperations(schema: string): Pick<FanOutStore, 'fanOut' | 'batchEnd' | 'storeRanges'> {
  const fanOut = `
    select w.post, w.author, w.lane, w.published_at, w.batches,
      array(select b.batch from ${schema}.fan_out_batches b where b.post = w.post order by b.batch) as left_over
    from ${schema}.fan_outs w where w.post = $1`;
  const batchEnd = `
    select f.follower from ${schema}.follows f
    where f.followee = $1 and f.follower > $2 and f.kept_until is null
    order by f.follower offset $3 limit 1`;
  const lock = `select batches from ${schema}.fan_outs where post = $1 for update`;
  const store = `
    with ranges as (
      insert into ${schema}.fan_out_batches (post, batch, follower_from, follower_until)
      select $1, r.batch, r.follower_from, r.follower_until
      from unnest($2::bigint[], $3::bigint[]) with ordinality as r (follower_from, follower_until, batch))
    update ${schema}.fan_outs set batches = cardinality($2::bigint[]) where post = $1`;
  return {
    async fanOut(on, post) {
      const row = (await on.query<OpenRow>(fanOut, [post])).rows[0];
      return row && openFanOut(row);
    },

    async batchEnd(on, { author, from, size }) {
      // The follower after the last one of the batch tells that there is another batch.
      const { rows } = await on.query<{ follower: string }>(batchEnd, [author, from, size]);
      return rows[0] && String(BigInt(rows[0].follower) - 1n);
    },

    async storeRanges(on, { post, ranges }) {
      const { rows } = await on.query<{ batches: number | null }>(lock, [post]);
      if (!rows[0] || rows[0].batches !== null) return false;
      await on.query(store, [post, ranges.map(({ from }) => from), ranges.map(({ until }) => until)]);
      return true;
    },
  };
}

function writeOperations(schema: string): Pick<FanOutStore, 'writeAll' | 'writeBatch'> {
  const all = `
    with work as (delete from ${schema}.fan_outs where post = $1 returning post, author, lane, published_at),
    entries as materialized (
      select ${schema}.write_entries(
        work.post, work.author, 0, ${largestBigint}, ${nowSql('$4')} - $2::bigint, $3::boolean) as written
      from work)
    select entries.written, work.lane, ${nowSql('$4')} - work.published_at as ended_after, array(
      select (f.follower % 64)::integer from ${schema}.follows f
      where f.followee = work.author and f.kept_until is null and entries.written > 0
      union select (work.author % 64)::integer) as buckets
    from work cross join entries`;
  const batch = `select written, ended_after, lane from ${schema}.write_batch($1, $2, $3, $4, $5)`;
  type EndedRow = { ended_after: string; lane: FanOutLane };
  const notLive: BatchWritten = {
    written: 0,
    buckets: [],
    live: false,
    endedAfterMs: undefined,
    lane: undefined,
  };

  return {
    async writeAll(on, { post, activeMs, entries, now }) {
      const { rows } = await on.query<EndedRow & { written: string; buckets: number[] }>(all, [
        post,
        activeMs,
        entries,
        now ?? null,
      ]);
      const row = rows[0];
      if (!row) return notLive;
      return {
        written: Number(row.written),
        buckets: row.buckets,
        live: true,
        endedAfterMs: Number(row.ended_after),
        lane: row.lane,
      };
    },

    async writeBatch(on, { post, batch: number, activeMs, entries, now }) {
      type BatchRow = { written: string; ended_after: string | null; lane: FanOutLane | null };
      const values = [post, number, activeMs, entries, now ?? null];
      const row = (await on.query<BatchRow>(batch, values)).rows[0];
      if (!row) return notLive;
      return {
        written: Number(row.written),
        buckets: undefined,
        live: true,
        endedAfterMs: row.ended_after === null ? undefined : Number(row.ended_after),
        lane: row.lane ?? undefined,
      };
    },
  };
}

function watchOperations(
  schema: string,
): Pick<FanOutStore, 'overdueFanOuts' | 'failFanOut' | 'fanOutProgress' | 'fanOutLag'> {
  const overdue = `
    select w.post, w.author, w.lane, w.published_at, w.batches,
      array(select b.batch from ${schema}.fan_out_batches b where b.post = w.post order by b.batch) as left_over
    from ${schema}.fan_outs w where w.published_at < ${nowSql('$2')} - $1
    order by w.published_at limit $3`;
  const fail = `
    with failed as (delete from ${schema}.fan_outs where post = $1 returning post, author),
    ranges as (delete from ${schema}.fan_out_batches b using failed where b.post = failed.post)
    insert into ${schema}.authors as w (account, pushed_since)
    select author, greatest(${postIdSql(schema, nowSql('$2'))}, post + 1) from failed
    on conflict (account) do update set pushed_since = greatest(w.pushed_since, excluded.pushed_since)`;
  const progress = `
    select p.id as post, a.id as author, p.mode, w.lane, coalesce(w.batches, 0) as batches, w.post is null as done,
      (select count(*) from ${schema}.fan_out_batches b where b.post = p.id) as left_over,
      coalesce(${nowSql('$2')} - w.published_at, 0) as age
    from ${schema}.posts p join ${schema}.accounts a on a.number = p.author
    left join ${schema}.fan_outs w on w.post = p.id
    where p.id = $1 and p.deleted_at is null`;
  const lag = `
    select lane, ${nowSql('$1')} - (
      select w.published_at from ${schema}.fan_outs w where w.lane = l.lane order by w.published_at limit 1) as age
    from (values ('small'), ('big')) as l (lane)`;

  return {
    async overdueFanOuts(on, { olderThanMs, limit, now }) {
      const { rows } = await on.query<OpenRow>(overdue, [olderThanMs, now ?? null, limit]);
      return rows.map(openFanOut);
    },

    async failFanOut(on, { post, now }) {
      return (await on.query(fail, [post, now ?? null])).rowCount > 0;
    },

    async fanOutProgress(on, { post, now }) {
      const { rows } = await on.query<{
        post: string;
        author: string;
        mode: FanOutProgress['mode'];
        lane: FanOutLane | null;
        batches: number;
        done: boolean;
        left_over: string;
        age: string;
      }>(progress, [post, now ?? null]);
      const row = rows[0];
      if (!row) return undefined;
      return {
        post: row.post,
        author: row.author,
        mode: row.mode,
        done: row.done,
        lane: row.lane ?? undefined,
        batches: row.batches,
        batchesDone: row.batches - Number(row.left_over),
        ageSeconds: Number(row.age) / 1_000,
      };
    },

    async fanOutLag(on, { now }) {
      const { rows } = await on.query<{ lane: FanOutLane; age: string | null }>(lag, [now ?? null]);
      const seconds: Record<FanOutLane, number> = { small: 0, big: 0 };
      for (const { lane, age } of rows) seconds[lane] = Number(age ?? 0) / 1_000;
      return seconds;
    },
  };
}
