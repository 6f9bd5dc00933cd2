/**
 * Fan-out into timelines outside the database: the followers are looked up, the lists are written, and then the work is
 * marked as done, with a line in the journal. Killed in between, it is done again, which changes nothing.
 */
import type { FanOutLane } from '../../operate.js';
import type { BatchWritten, FanOutStore, Now } from '../../store.js';
import type { ListBounds } from '../../timeline-lists.js';
import { nowSql } from '../time.js';
import type { Apart } from './operations.js';
import { takersOf } from './takers.js';
import { inDoubt, trustedSql } from './trust.js';

const notLive: BatchWritten = {
  written: 0,
  buckets: [],
  live: false,
  endedAfterMs: undefined,
  lane: undefined,
};

/** Buckets of live hints. */
const hintBuckets = 64;

interface Work {
  readonly post: string;
  readonly activeMs: number;
  readonly entries: boolean;
  readonly timeline: ListBounds;
  readonly now: Now;
}

type EndedRow = { holds: boolean; ended_after: string | null; lane: FanOutLane | null };

export function fanOutApart(apart: Apart): Pick<FanOutStore, 'writeAll' | 'writeBatch'> {
  const { schema, database } = apart;
  const end = `
    with ${trustedSql(schema, '$2')},
    work as (
      delete from ${schema}.fan_outs where post = $1 and (select holds from trust)
      returning post, author, lane, published_at),
    journal as (
      insert into ${schema}.timeline_journal (post, author, lane, published_at, at)
      select post, author, lane, published_at, ${nowSql('$3')} from work where cardinality($2::text[]) > 0)
    select trust.holds, ${nowSql('$3')} - work.published_at as ended_after, work.lane
    from trust left join work on true`;
  const markBatch = `
    with ${trustedSql(schema, '$3')},
    range as (
      delete from ${schema}.fan_out_batches where post = $1 and batch = $2 and (select holds from trust)
      returning post),
    journal as (
      insert into ${schema}.timeline_journal (post, author, lane, published_at, at)
      select w.post, w.author, w.lane, w.published_at, ${nowSql('$4')}
      from range join ${schema}.fan_outs w on w.post = range.post where cardinality($3::text[]) > 0)
    select trust.holds, range.post is not null as done from trust left join range on true`;
  const lock = `select 1 from ${schema}.fan_outs where post = $1 for update`;
  const endLast = `
    delete from ${schema}.fan_outs w where w.post = $1
      and not exists (select 1 from ${schema}.fan_out_batches b where b.post = w.post)
    returning ${nowSql('$2')} - w.published_at as ended_after, w.lane`;
  const takers = takersOf(schema, database);

  async function push(work: Work, batch: number | undefined) {
    const { activeMs, entries, now } = work;
    const readers = await takers({ post: work.post, batch, activeMs, entries, now });
    if (readers === undefined) return undefined;
    if (readers.length === 0) return { written: 0, servers: [], buckets: [] };
    const { post, timeline } = work;
    const { written, servers } = await apart.lists.push({ post, readers, ...timeline });
    const buckets = hintBucketsOf(readers);
    return { written, servers, buckets };
  }

  return {
    async writeAll(on, work) {
      const pushed = await push(work, undefined);
      if (!pushed) return notLive;
      const { written, servers, buckets } = pushed;
      const row = (await on.query<EndedRow>(end, [work.post, servers, work.now ?? null])).rows[0];
      if (!row?.holds) throw inDoubt(servers);
      if (row.lane === null) return notLive;
      return { written, buckets, live: true, endedAfterMs: Number(row.ended_after), lane: row.lane };
    },

    async writeBatch(_, { batch, ...work }) {
      const pushed = await push(work, batch);
      if (!pushed) return notLive;
      const { written, servers, buckets } = pushed;
      return database.transaction(async (transaction) => {
        const values = [work.post, batch, servers, work.now ?? null];
        const { rows } = await transaction.query<{ holds: boolean; done: boolean }>(markBatch, values);
        if (!rows[0]?.holds) throw inDoubt(servers);
        if (!rows[0].done) return notLive;
        // Two last batches at once: who comes second sees both ranges gone.
        await transaction.query(lock, [work.post]);
        const ended = (await transaction.query<EndedRow>(endLast, [work.post, work.now ?? null])).rows[0];
        const endedAfterMs = ended && Number(ended.ended_after);
        return { written, buckets, live: true, endedAfterMs, lane: ended?.lane ?? undefined };
      });
    },
  };
}

function hintBucketsOf(readers: readonly string[]): number[] {
  const buckets = new Set<number>();
  for (const reader of readers) {
    buckets.add(Number(BigInt(reader) % BigInt(hintBuckets)));
    if (buckets.size === hintBuckets) break;
  }
  return [...buckets];
}
