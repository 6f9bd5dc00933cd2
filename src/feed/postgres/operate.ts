/** What operators ask of the feed on Postgres: statistics, verification, vacuum. */
import type { Queryable } from '../../database/index.js';
import type { AuthorMode } from '../account.js';
import type { FeedStats, VerifyReport } from '../operate.js';
import type { Now, OperateStore } from '../store.js';
import { nowSql } from './time.js';

export function operateOperations(schema: string): OperateStore {
  return { ...statistics(schema), ...verification(schema), ...cleaning(schema), ...progressRows(schema) };
}

function statistics(
  schema: string,
): Pick<OperateStore, 'stats' | 'mostFollowed' | 'analyze' | 'timelineBytes'> {
  const bytes = `select pg_total_relation_size('${schema}.timeline') as bytes`;
  const counts = `
    select (select count(*) from ${schema}.accounts where erased_at is null) as accounts,
      (select count(*) from ${schema}.follows where kept_until is null) as follows,
      (select count(*) from ${schema}.posts where deleted_at is null) as posts,
      (select count(*) from ${schema}.readers where state = 'live') as live_timelines,
      (select count(*) from ${schema}.timeline where post > 0) as timeline_entries,
      (select count(*) from ${schema}.authors where mode = 'pull') as pull_authors`;
  const distribution = `
    select coalesce(percentile_disc(0.5) within group (order by followers), 0) as median,
      coalesce(percentile_disc(0.99) within group (order by followers), 0) as p99,
      coalesce(max(followers), 0) as max
    from ${schema}.authors where followers > 0`;
  const mostFollowed = `
    select a.id, w.followers, w.mode from ${schema}.authors w join ${schema}.accounts a on a.number = w.account
    where w.followers > 0 and a.erased_at is null
      and ($2::bigint is null or w.followers < $2 or (w.followers = $2 and a.id > $3))
    order by w.followers desc, a.id limit $1`;
  const fanOuts = `
    select lane, count(*) as unfinished, ${nowSql('$1')} - min(published_at) as oldest
    from ${schema}.fan_outs group by lane`;
  return {
    async timelineBytes(on) {
      return Number((await on.query<{ bytes: string }>(bytes, [])).rows[0]?.bytes);
    },

    async stats(on, { now }) {
      type CountRow = Record<
        'accounts' | 'follows' | 'posts' | 'live_timelines' | 'timeline_entries' | 'pull_authors',
        string
      >;
      const count = (await on.query<CountRow>(counts)).rows[0];
      const shape = (await on.query<Record<'median' | 'p99' | 'max', string>>(distribution)).rows[0];
      const open = await on.query<{ lane: 'small' | 'big'; unfinished: string; oldest: string }>(fanOuts, [
        now ?? null,
      ]);
      const lane = (name: 'small' | 'big') => {
        const row = open.rows.find((row) => row.lane === name);
        return { unfinished: Number(row?.unfinished ?? 0), oldestSeconds: Number(row?.oldest ?? 0) / 1_000 };
      };
      return {
        accounts: Number(count?.accounts),
        follows: Number(count?.follows),
        posts: Number(count?.posts),
        liveTimelines: Number(count?.live_timelines),
        timelineEntries: Number(count?.timeline_entries),
        pullAuthors: Number(count?.pull_authors),
        followers: { median: Number(shape?.median), p99: Number(shape?.p99), max: Number(shape?.max) },
        fanOuts: { small: lane('small'), big: lane('big') },
      } satisfies Omit<FeedStats, 'threshold'>;
    },

    async mostFollowed(on, { limit, after }) {
      type Row = { id: string; followers: string; mode: AuthorMode };
      const values = [limit, after?.followers ?? null, after?.id ?? null];
      const { rows } = await on.query<Row>(mostFollowed, values);
      return rows.map(({ id, followers, mode }) => ({ id, followers: Number(followers), mode }));
    },

    async analyze(on) {
      for (const table of ['accounts', 'readers', 'authors', 'follows', 'posts', 'timeline']) {
        await on.query(`analyze ${schema}.${table}`);
      }
    },
  };
}

function verification(schema: string): Pick<OperateStore, 'verify'> {
  const compare = `
    with me as materialized (
      select a.number, ${schema}.usable_floor(a.number, ${nowSql('$3')}, $2::bigint) as floor
      from ${schema}.accounts a where a.id = $1 and a.erased_at is null),
    expected as materialized (
      select p.id
      from me
      cross join lateral (
        select f.followee as author, coalesce(f.kept_until, 9223372036854775807) as until
        from ${schema}.follows f where f.follower = me.number
        union all select me.number, 9223372036854775807) f
      join ${schema}.posts p on p.author = f.author and p.deleted_at is null and p.id > me.floor and p.id <= f.until
        and (p.visibility = 'public' or f.until = 9223372036854775807)
      where f.author <> all (${schema}.merged_authors(me.number, me.floor))
        and not exists (select 1 from ${schema}.fan_outs w where w.post = p.id)),
    entries as materialized (
      select t.post from me join ${schema}.timeline t on t.reader = me.number and t.post > me.floor and t.post > 0)
    select me.floor < 9223372036854775807 as usable, (select count(*) from expected) as checked,
      array(select id from expected where not exists (select 1 from entries e where e.post = expected.id)
        order by id desc limit 10000) as missing,
      array(
        select e.post from entries e left join ${schema}.posts p on p.id = e.post and p.deleted_at is null
        where p.id is null or not (p.author = me.number or exists (
            select 1 from ${schema}.follows f where f.follower = me.number and f.followee = p.author
              and (f.kept_until is null or (p.id <= f.kept_until and p.visibility = 'public'))))
        order by e.post desc limit 10000) as superfluous
    from me`;
  return {
    async verify(on, { reader, activeMs, now }) {
      const { rows } = await on.query<{
        usable: boolean;
        checked: string;
        missing: string[];
        superfluous: string[];
      }>(compare, [reader, activeMs, now ?? null]);
      const row = rows[0];
      return (
        row &&
        ({
          reader,
          timeline: row.usable ? 'live' : 'none',
          missing: row.usable ? row.missing : [],
          superfluous: row.usable ? row.superfluous : [],
          checked: Number(row.checked),
        } satisfies VerifyReport)
      );
    },
  };
}

/** Lists of merged followees looked at in one step of a vacuum. */
const listedMax = 1_000;
const listedPosition = 'merged:';

/** Takes the timelines of those of $1 who have not been seen for $2 milliseconds; a list of merged followees goes with it. */
export function retireSql(schema: string): string {
  return `
    with retired as (
      update ${schema}.readers set state = 'none', token = 0, floor = 0
      where account = any($1::bigint[]) and state in ('building', 'live') and seen_at <= ${nowSql('$3')} - $2
      returning account)
    delete from ${schema}.merged_followees where reader in (select account from retired)`;
}

function cleaning(schema: string): Pick<OperateStore, 'vacuumStep'> {
  // Walks the readers that have entries, ten at a time: at most some 9,000 entries a step.
  const page = `
    with recursive walk (reader, number) as (
      (select t.reader, 1 from ${schema}.timeline t where t.reader > $1 order by t.reader limit 1)
      union all
      select (select t.reader from ${schema}.timeline t where t.reader > walk.reader order by t.reader limit 1), walk.number + 1
      from walk where walk.reader is not null and walk.number < 10)
    select w.reader, r.state is null or r.state in ('none', 'pull') or r.seen_at <= ${nowSql('$3')} - $2 as unused
    from walk w left join ${schema}.readers r on r.account = w.reader where w.reader is not null`;
  const lock = `select 1 from ${schema}.readers where account = any($1::bigint[]) order by account for update`;
  const retire = retireSql(schema);
  const listed = `select reader from ${schema}.merged_followees where reader > $1 order by reader limit ${listedMax}`;
  const clear = `
    delete from ${schema}.timeline t where t.reader = any($1::bigint[])
      and not exists (select 1 from ${schema}.readers r where r.account = t.reader and r.state in ('building', 'live'))`;
  const tidy = `
    delete from ${schema}.timeline t where t.reader = any($1::bigint[]) and t.post > 0 and not exists (
      select 1 from ${schema}.posts p where p.id = t.post and p.deleted_at is null and (p.author = t.reader or exists (
        select 1 from ${schema}.follows f where f.follower = t.reader and f.followee = p.author)))`;
  const posts = `
    delete from ${schema}.posts where id = any(array(
      select id from ${schema}.posts where deleted_at is not null and deleted_at <= ${nowSql('$3')} - $1 limit $2))`;
  const rankings = `
    delete from ${schema}.rankings where number = any(array(
      select number from ${schema}.rankings where created_at <= ${nowSql('$3')} - $1 limit $2))`;

  /** Readers unseen for long whose timeline has been lost: no walk of the timelines meets them. */
  async function vacuumListed(on: Queryable, position: string, activeMs: number, now: Now) {
    const readers = (await on.query<{ reader: string }>(listed, [position])).rows.map(({ reader }) => reader);
    if (readers.length > 0) {
      await on.query(lock, [readers]);
      await on.query(retire, [readers, activeMs, now ?? null]);
    }
    const last = readers.length < listedMax ? undefined : readers.at(-1);
    return { position: last && `${listedPosition}${last}`, timelines: 0, entries: 0, rows: 0 };
  }

  return {
    /** `position` is that of a reader among the timelines, and after these `merged:` and a reader among the lists. */
    async vacuumStep(on, { position, activeMs, deletedKeptMs, rankingKeptMs, rowsMax, now }) {
      if (position.startsWith(listedPosition))
        return vacuumListed(on, position.slice(listedPosition.length), activeMs, now);
      const { rows } = await on.query<{ reader: string; unused: boolean }>(page, [
        position,
        activeMs,
        now ?? null,
      ]);
      const readers = rows.map(({ reader }) => reader);
      const unused = rows.filter((row) => row.unused).map(({ reader }) => reader);
      let entries = 0;
      if (readers.length > 0) {
        await on.query(lock, [readers]);
        if (unused.length > 0) await on.query(retire, [unused, activeMs, now ?? null]);
        entries += (await on.query(clear, [readers])).rowCount;
        entries += (await on.query(tidy, [readers])).rowCount;
      }
      const gone = await on.query(posts, [deletedKeptMs, rowsMax, now ?? null]);
      const expired = await on.query(rankings, [rankingKeptMs, rowsMax, now ?? null]);
      const taken = gone.rowCount + expired.rowCount;
      // Rows that expire are many or few whatever the timelines are: go on while a step was full.
      const more = readers.length === 10 || gone.rowCount === rowsMax || expired.rowCount === rowsMax;
      return {
        position: more ? (readers.at(-1) ?? position) : `${listedPosition}0`,
        timelines: unused.length,
        entries,
        rows: taken,
      };
    },
  };
}

function progressRows(schema: string): Pick<OperateStore, 'progress' | 'setProgress'> {
  const get = `select "position" from ${schema}.progress where name = $1`;
  const set = `
    insert into ${schema}.progress (name, "position") values ($1, $2)
    on conflict (name) do update set "position" = excluded."position"`;
  return {
    async progress(on, name) {
      return (await on.query<{ position: string }>(get, [name])).rows[0]?.position ?? '0';
    },

    async setProgress(on, { name, position }) {
      await on.query(set, [name, position]);
    },
  };
}
