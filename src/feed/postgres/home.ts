/** Reading a home: one round trip to the function of the migration 0006-home.sql. */
import type { AuthorMode } from '../account.js';
import type { EntrySource, HomeItem } from '../home.js';
import type { Visibility } from '../post.js';
import type { HomePage, HomeStore, ReaderState } from '../store.js';
import { nowSql } from './time.js';

type EntryRow = {
  position: string;
  source: number;
  post: string;
  author: string;
  key: string | null;
  body: string | null;
  data: string | null;
  visibility: Visibility;
  repost_of: string | null;
  created_at: string;
  edited_at: string | null;
  mode: AuthorMode;
  fan_out_done: boolean;
  through: string;
  reposted_by: string | null;
  reposted_id: string | null;
  reposted_at: string | null;
};

/** What a page has looked at, in the order of the function's `told`. */
type Told = [
  reader: string,
  state: ReaderState,
  usable: string,
  floor: string,
  seenAt: string,
  pulledAuthors: string,
  candidates: string,
  rounds: string,
  exhausted: string,
  lastPosition: string,
  readAt: string,
  mergedListIsOld: string,
];

export type PageRow = EntryRow & { told: string[] | null };

const sources: readonly EntrySource[] = ['store', 'own', 'pushed', 'pulled', 'overdue', 'store'];

// Posts looked at in one go before a reader of many is served followee by followee: some 3 ms.
export const scanMax = 4_000;

export function homeOperations(schema: string): HomeStore {
  const page = `
    select h.*
    from ${schema}.home_page($1, $2, $3, $4, $8, $5, $6, $7) h`;
  const visible = `
    select v.* from ${schema}.accounts a cross join lateral ${schema}.visible_entries(
      a.number, $2::bigint[], array(select 0 from unnest($2::bigint[])), ${schema}.hidden_authors(a.number, $2::bigint[])) v
    where a.id = $1 and a.erased_at is null
    order by array_position($2::bigint[], v."position")`;
  const store = `
    with old as (
      delete from ${schema}.rankings where number = any(array(
        select r.number from ${schema}.rankings r join ${schema}.accounts a on a.number = r.reader
        where a.id = $1 order by r.number desc offset $3 - 1)))
    insert into ${schema}.rankings (reader, posts, created_at)
    select number, $2::bigint[], ${nowSql('$4')} from ${schema}.accounts where id = $1 returning number`;
  const ranking = `
    select r.posts from ${schema}.rankings r join ${schema}.accounts a on a.number = r.reader
    where a.id = $1 and r.number = $2 and r.created_at > ${nowSql('$4')} - $3`;

  return {
    async homePage(on, { reader, position, older, limit, lagMaxMs, activeMs, now }) {
      const values = [reader, position, older, limit, lagMaxMs, activeMs, scanMax, now ?? null];
      return pageFromRows((await on.query<PageRow>(page, values)).rows, older);
    },

    async visibleEntries(on, { reader, positions }) {
      return (await on.query<EntryRow>(visible, [reader, positions])).rows.map(itemFromRow);
    },

    async storeRanking(on, { reader, positions, perReaderMax, now }) {
      const { rows } = await on.query<{ number: string }>(store, [
        reader,
        positions,
        perReaderMax,
        now ?? null,
      ]);
      return rows[0]?.number ?? '0';
    },

    async ranking(on, { reader, number, keptMs, now }) {
      const { rows } = await on.query<{ posts: string[] }>(ranking, [reader, number, keptMs, now ?? null]);
      return rows[0]?.posts;
    },
  };
}

/** A page out of the rows of `home_page`; undefined: there is no such reader. */
export function pageFromRows(rows: PageRow[], older: boolean): HomePage | undefined {
  // The last row tells what was looked at.
  const told = rows.pop()?.told;
  if (!told) return undefined;
  const items = rows.map(itemFromRow);
  items.sort((a, b) => (a.position < b.position === older ? 1 : -1));
  const [
    me,
    state,
    usable,
    floor,
    seenAt,
    pulledAuthors,
    candidates,
    rounds,
    exhausted,
    last,
    readAt,
    listIsOld,
  ] = told as Told;
  return {
    items,
    reader: me,
    timeline: state,
    usable: usable === 'true',
    floor,
    seenAt: Number(seenAt),
    readAt: Number(readAt),
    pulledAuthors: Number(pulledAuthors),
    candidates: Number(candidates),
    rounds: Number(rounds),
    exhausted: exhausted === 'true',
    lastPosition: last,
    mergedListIsOld: listIsOld === 'true',
  } satisfies HomePage;
}

function itemFromRow(row: EntryRow): HomeItem & { readonly position: string } {
  const source = sources[row.source] ?? 'store';
  const repostedBy =
    row.reposted_id === null
      ? undefined
      : { author: row.reposted_by ?? '', id: row.reposted_id, createdAt: Number(row.reposted_at) };
  return {
    position: row.position,
    id: row.post,
    author: row.author,
    key: row.key ?? undefined,
    text: row.body ?? undefined,
    data: row.data === null ? undefined : JSON.parse(row.data),
    visibility: row.visibility,
    repostOf: row.repost_of ?? undefined,
    createdAt: Number(row.created_at),
    editedAt: row.edited_at === null ? undefined : Number(row.edited_at),
    mode: row.mode,
    fanOutDone: row.fan_out_done,
    why: { source, through: row.through, text: reasonText(source, row) },
    repostedBy,
  };
}

function reasonText(source: EntrySource, row: EntryRow): string {
  const what = row.position === row.post ? `${row.through} posted it` : `${row.through} reposted it`;
  switch (source) {
    case 'own':
      return row.position === row.post ? 'The reader’s own post.' : 'The reader reposted it.';
    case 'pushed':
      return `${what}; the fan-out wrote it into the timeline.`;
    case 'pulled':
      return `${what}; this author is merged at read.`;
    case 'overdue':
      return `${what}; its fan-out is late, so it was merged at read.`;
    case 'store':
      return `${what}; read from the posts, past the timeline’s end or without one.`;
  }
}
