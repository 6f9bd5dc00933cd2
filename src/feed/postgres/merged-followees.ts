/**
 * Which merged authors a reader follows or is, kept as a list so that a read need not look all of them up. Authors are numbered by one
 * round of housekeeping after the other, each with the counter's row held until its commit: who sees the counter at a
 * number sees every author with that number or a smaller one. A list knows up to which it is good, and a read looks up
 * those after it.
 */
import type { GraphStore } from '../store.js';
import { largestBigint } from './time.js';

const counter = 'merged-authors';
/** Up to about a hundred names two probes each are cheaper than walking all followees beside all merged authors. */
const namesMax = 100;

export function mergedFollowees(schema: string): Pick<GraphStore, 'numberMerged' | 'listMergedFollowees'> {
  const waiting = `select 1 from ${schema}.authors where merge_number = ${largestBigint} and pushed_since > 0 limit 1`;
  const hold = `select "position" from ${schema}.progress where name = '${counter}' for update skip locked`;
  // An author whose row somebody holds is left for the next round: nothing waits, so nothing waits crosswise.
  const number = `
    with numbered as (
      update ${schema}.authors set merge_number = $1::bigint + 1 where account = any(array(
        select account from ${schema}.authors where merge_number = ${largestBigint} and pushed_since > 0
        limit $2 for no key update skip locked))
      returning 1),
    counted as (
      update ${schema}.progress set "position" = $1::bigint + 1
      where name = '${counter}' and exists (select 1 from numbered))
    select count(*) as numbered from numbered`;
  const lock = `
    select 1 from ${schema}.readers where account = $1 and state in ('building', 'live') for update skip locked`;
  // A later statement than the lock: it sees every follow of this reader that was written before.
  const list = `
    with upto as materialized (select "position" as number from ${schema}.progress where name = '${counter}'),
    names as materialized (
      select f.author from upto,
        (select followee as author from ${schema}.follows where follower = $1 union all select $1::bigint) f
        join ${schema}.authors a on a.account = f.author
      where a.pushed_since > 0 and a.merge_number <= upto.number limit ${namesMax} + 1)
    insert into ${schema}.merged_followees as m (reader, upto, authors)
    select $1, upto.number, (
      select case when count(*) <= ${namesMax} then coalesce(array_agg(author), '{}') end from names)
    from upto
    on conflict (reader) do update set upto = excluded.upto, authors = excluded.authors`;
  return {
    async numberMerged(on, { rowsMax }) {
      if ((await on.query(waiting)).rowCount === 0) return 0;
      const { rows: held } = await on.query<{ position: string }>(hold);
      if (!held[0]) return 0;
      const { rows } = await on.query<{ numbered: string }>(number, [held[0].position, rowsMax]);
      return Number(rows[0]?.numbered ?? 0);
    },

    async listMergedFollowees(on, { reader }) {
      if ((await on.query(lock, [reader])).rowCount === 0) return;
      await on.query(list, [reader]);
    },
  };
}
