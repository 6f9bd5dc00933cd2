/**
 * Fan-out into timelines outside the database: the followers are looked up, the lists are written, and then the work is
 * marked as done, with a line in the journal. Killed in between, it is done again, which changes nothing.
 */
import type { FanOutLane } from '../../operate.js';
import type { BatchWritten, FanOutStore, Now } from '../../store.js';
import type { ListBounds } from '../../timeline-lists.js';
import { joined } from './joined.js';
import type { Apart } from './operations.js';
import { takersOf } from './takers.js';
import { inDoubt } from './trust.js';

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

/** Of one statement: as many as look for their readers together, and more while a commit takes its time. */
const endedMax = 32;

interface Ended {
  readonly done: boolean;
  readonly endedAfterMs: number | undefined;
  readonly lane: FanOutLane | undefined;
}

export function fanOutApart(apart: Apart): Pick<FanOutStore, 'writeAll' | 'writeBatch'> {
  const takers = takersOf(apart);
  const end = ends(apart);

  async function write(work: Work, batch: number | undefined): Promise<BatchWritten> {
    const { post, timeline, activeMs, entries, now } = work;
    const readers = await takers({ post, batch, activeMs, entries, now });
    if (readers === undefined) return notLive;
    const { written, servers } =
      readers.length === 0
        ? { written: 0, servers: [] }
        : await apart.lists.push({ post, readers, ...timeline });
    const { done, endedAfterMs, lane } = await end({ post, batch, servers, now });
    return done ? { written, buckets: hintBucketsOf(readers), live: true, endedAfterMs, lane } : notLive;
  }

  return {
    writeAll: (_, work) => write(work, undefined),
    writeBatch: (_, { batch, ...work }) => write(work, batch),
  };
}

interface Ending {
  readonly post: string;
  readonly batch: number | undefined;
  /** That took entries. */
  readonly servers: readonly string[];
  readonly now: Now;
}

/** Marks as done, those that come meanwhile in one commit; throws `timelines-in-doubt`. */
function ends({ schema, database }: Apart): (ending: Ending) => Promise<Ended> {
  const mark = `
    select place, holds, done, ended_after, lane
    from ${schema}.end_batches($1::bigint[], $2::integer[], $3::boolean[], $4::text[], $5) order by place`;

  async function endAll(all: readonly Ending[]): Promise<Ended[]> {
    const servers = [...new Set(all.flatMap((ending) => ending.servers))];
    const { rows } = await database.query<{
      holds: boolean;
      done: boolean;
      ended_after: string | null;
      lane: FanOutLane | null;
    }>(mark, [
      all.map(({ post }) => post),
      all.map(({ batch }) => batch ?? null),
      all.map((ending) => ending.servers.length > 0),
      servers,
      all[0]?.now ?? null,
    ]);
    if (!rows.every(({ holds }) => holds)) throw inDoubt(servers);
    return rows.map(({ done, ended_after, lane }) => ({
      done,
      endedAfterMs: ended_after === null ? undefined : Number(ended_after),
      lane: lane ?? undefined,
    }));
  }

  return joined(endAll, { max: endedMax, isAlike: (one, other) => one.now === other.now });
}

function hintBucketsOf(readers: readonly string[]): number[] {
  const buckets = new Set<number>();
  for (const reader of readers) {
    buckets.add(Number(BigInt(reader) % BigInt(hintBuckets)));
    if (buckets.size === hintBuckets) break;
  }
  return [...buckets];
}
