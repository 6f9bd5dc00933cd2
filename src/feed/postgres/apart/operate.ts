/** What operators ask about timelines outside the database: statistics, verification, vacuum. */
import type { VerifyReport } from '../../operate.js';
import type { FeedStore, OperateStore } from '../../store.js';
import { retireSql } from '../operate.js';
import { largestBigint, nowSql } from '../time.js';
import type { Apart } from './operations.js';

/** Lists that statistics count the entries of; past that they are estimated by the mean. */
const countedMax = 2_000;
const wholeList = 100_000;

export function operateApart(
  apart: Apart,
  inside: FeedStore,
): Pick<OperateStore, 'stats' | 'verify' | 'vacuumStep' | 'timelineBytes'> {
  return {
    timelineBytes: () => apart.lists.bytes(),
    ...statistics(apart, inside),
    ...verification(apart),
    ...cleaning(apart, inside),
  };
}

function statistics({ schema, lists }: Apart, inside: FeedStore): Pick<OperateStore, 'stats'> {
  const some = `select account from ${schema}.readers where state = 'live' order by account limit ${countedMax}`;
  return {
    async stats(on, input) {
      const stats = await inside.stats(on, input);
      const readers = (await on.query<{ account: string }>(some, [])).rows.map(({ account }) => account);
      const entries = await lists.count(readers);
      const mean = readers.length === 0 ? 0 : entries / readers.length;
      const isWhole = readers.length === stats.liveTimelines;
      return { ...stats, timelineEntries: isWhole ? entries : Math.round(mean * stats.liveTimelines) };
    },
  };
}

function verification({ schema, lists }: Apart): Pick<OperateStore, 'verify'> {
  const number = `select number from ${schema}.accounts where id = $1 and erased_at is null`;
  const compare = `
    with me as materialized (
      select r.account as number, case when r.state = 'live' and r.seen_at > ${nowSql('$3')} - $2 and r.token = $5 and r.list_version <= $8
          and exists (select 1 from ${schema}.timeline_servers s where s.id = $6 and s.tokens_from <= r.token)
        then $7::bigint else ${largestBigint} end as floor
      from ${schema}.readers r where r.account = $1),
    entries as materialized (select unnest($4::bigint[]) as post),
    expected as materialized (
      select p.id
      from me
      cross join lateral (
        select f.followee as author, coalesce(f.kept_until, ${largestBigint}) as until
        from ${schema}.follows f where f.follower = me.number
        union all select me.number, ${largestBigint}) f
      join ${schema}.posts p on p.author = f.author and p.deleted_at is null and p.id > me.floor and p.id <= f.until
        and (p.visibility = 'public' or f.until = 9223372036854775807)
      where f.author <> all (${schema}.merged_authors(me.number, me.floor))
        and not exists (select 1 from ${schema}.fan_outs w where w.post = p.id))
    select me.floor < ${largestBigint} as usable, (select count(*) from expected) as checked,
      array(select id from expected where not exists (select 1 from entries e where e.post = expected.id)
        order by id desc limit 10000) as missing,
      array(
        select e.post from entries e left join ${schema}.posts p on p.id = e.post and p.deleted_at is null
        where p.id is null or not (p.author = me.number or exists (
            select 1 from ${schema}.follows f where f.follower = me.number and f.followee = p.author
              and (f.kept_until is null or (p.id <= f.kept_until and p.visibility = 'public'))))
        order by e.post desc limit 10000) as superfluous
    from me`;
  type ReportRow = { usable: boolean; checked: string; missing: string[]; superfluous: string[] };
  return {
    async verify(on, { reader, activeMs, now }) {
      const me = (await on.query<{ number: string }>(number, [reader])).rows[0]?.number;
      if (me === undefined) return undefined;
      const list = await lists.read({ reader: me, position: largestBigint, older: true, count: wholeList });
      const values = [me, activeMs, now ?? null, list?.ids ?? []];
      const { rows } = await on.query<ReportRow>(compare, [
        ...values,
        list?.token ?? '-1',
        list?.server ?? null,
        list?.floor ?? '0',
        list?.version ?? '0',
      ]);
      const row = rows[0];
      if (!row) return undefined;
      return {
        reader,
        timeline: row.usable ? 'live' : 'none',
        missing: row.usable ? row.missing : [],
        superfluous: row.usable ? row.superfluous : [],
        checked: Number(row.checked),
      } satisfies VerifyReport;
    },
  };
}

function cleaning({ schema, lists }: Apart, inside: FeedStore): Pick<OperateStore, 'vacuumStep'> {
  const retire = retireSql(schema);
  const unused = `
    select k.reader from unnest($1::bigint[]) as k (reader)
    where not exists (
      select 1 from ${schema}.readers r where r.account = k.reader and r.state in ('building', 'live'))`;
  const hidden = `
    select e.post from unnest($2::bigint[]) as e (post) where not exists (
      select 1 from ${schema}.posts p where p.id = e.post and p.deleted_at is null and (p.author = $1 or exists (
        select 1 from ${schema}.follows f where f.follower = $1 and f.followee = p.author)))`;

  /** `lists:<where the scan stands>`, and before that what the database itself keeps. */
  return {
    async vacuumStep(on, { position, activeMs, now, ...rest }) {
      if (!position.startsWith('lists:')) {
        const step = await inside.vacuumStep(on, { position, activeMs, now, ...rest });
        return { ...step, position: step.position ?? 'lists:0' };
      }
      const scanned = await lists.scan(position.slice('lists:'.length));
      const readers = [...scanned.readers];
      const next = scanned.position === undefined ? undefined : `lists:${scanned.position}`;
      if (readers.length === 0) return { position: next, timelines: 0, entries: 0, rows: 0 };
      await on.query(retire, [readers, activeMs, now ?? null]);
      const gone = (await on.query<{ reader: string }>(unused, [readers])).rows.map(({ reader }) => reader);
      let entries = await lists.count(gone);
      await lists.drop(gone);
      const dropped = new Set(gone);
      for (const reader of readers.filter((reader) => !dropped.has(reader))) {
        const list = await lists.read({ reader, position: largestBigint, older: true, count: wholeList });
        if (!list) continue;
        const ids = (await on.query<{ post: string }>(hidden, [reader, list.ids])).rows.map(
          ({ post }) => post,
        );
        entries += await lists.remove({ reader, ...list, ids });
      }
      return { position: next, timelines: gone.length, entries, rows: 0 };
    },
  };
}
