/**
 * Who takes a post: followers in the range who have a timeline and were seen lately, and the author, whose own entry goes
 * with the fan-out because homes show own posts on the way anyway. Batches that are in hand at once are looked up in one
 * statement, and posts of one author that go to the same followers (a thread) share its answer.
 */
import type { Now } from '../../store.js';
import { joined } from './joined.js';
import type { Apart } from './operations.js';

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

export function takersOf({ schema, database }: Apart): (asked: TakersAsked) => Promise<Takers> {
  const select = `
    select asked, followers, author
    from ${schema}.fan_out_takers($1::bigint[], $2::integer[], $3::bigint, $4::boolean, $5::bigint)`;

  async function ask(all: readonly TakersAsked[]): Promise<Takers[]> {
    const [first] = all as [TakersAsked];
    const values = [all.map(({ post }) => post), all.map(({ batch }) => batch ?? null)];
    const { rows } = await database.query<{
      asked: number[];
      followers: string | null;
      author: string | null;
    }>(select, [...values, first.activeMs, first.entries, first.now ?? null]);
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
