/**
 * Who takes a post: followers in the range who have a timeline and were seen lately, and the author, whose own entry goes
 * with the fan-out because homes show own posts on the way anyway. Batches that are in hand at once are looked up in one
 * statement, and posts of one author that go to the same followers (a thread) share its answer.
 */
import type { Database } from '../../../database/index.js';
import type { Now } from '../../store.js';
import { largestBigint, nowSql } from '../time.js';
import { joined } from './joined.js';

export interface TakersAsked {
  readonly post: string;
  /** Undefined: all followers. */
  readonly batch: number | undefined;
  readonly activeMs: number;
  readonly entries: boolean;
  readonly now: Now;
}

/** Undefined: the work has been done. */
export type Takers = readonly string[] | undefined;

/** Of one statement: a bound for the answer, and for how long a small one waits for big ones. */
const askedMax = 8;

export function takersOf(schema: string, database: Database): (asked: TakersAsked) => Promise<Takers> {
  const select = `
    with work as (
      select array_agg(a.number::integer) as asked, w.author, p.deleted_at is null and $5 as lives,
        coalesce(b.follower_from, 0) as from_number, coalesce(b.follower_until, ${largestBigint}) as until_number
      from unnest($1::bigint[], $2::integer[]) with ordinality as a (post, batch, number)
      join ${schema}.fan_outs w on w.post = a.post
      join ${schema}.posts p on p.id = a.post
      left join ${schema}.fan_out_batches b on b.post = a.post and b.batch = a.batch
      where a.batch is null or b.batch is not null
      group by w.author, lives, from_number, until_number)
    select work.asked, case when lives then (
        -- One text: an array of so many is dear to take apart.
        select string_agg(f.follower::text, ',') from ${schema}.follows f
        join ${schema}.readers r on r.account = f.follower and r.state in ('building', 'live')
          -- Computed once, not for every reader.
          and r.seen_at > (select ${nowSql('$4')} - $3)
        where f.followee = work.author and f.kept_until is null
          and f.follower > work.from_number and f.follower <= work.until_number) end as followers,
      (select r.account from ${schema}.readers r
        where r.account = work.author and r.state in ('building', 'live') and lives) as author
    from work`;

  async function ask(all: readonly TakersAsked[]): Promise<Takers[]> {
    const [first] = all as [TakersAsked];
    const values = [all.map(({ post }) => post), all.map(({ batch }) => batch ?? null)];
    const { rows } = await database.query<{
      asked: number[];
      followers: string | null;
      author: string | null;
    }>(select, [...values, first.activeMs, first.now ?? null, first.entries]);
    const takers: Takers[] = all.map(() => undefined);
    for (const { asked, followers, author } of rows) {
      const readers = followers === null ? [] : followers.split(',');
      if (author !== null) readers.push(author);
      for (const number of asked) takers[number - 1] = readers;
    }
    return takers;
  }

  return joined(ask, {
    max: askedMax,
    isAlike: (one, other) =>
      one.activeMs === other.activeMs && one.entries === other.entries && one.now === other.now,
  });
}
