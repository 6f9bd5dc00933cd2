/**
 * A delete is one row, and reads filter: what the filter costs with 1 % deleted, what a DELETE by post from everybody's
 * timeline would cost with and without an index, what that index takes, and that a post deleted before its fan-out
 * appears nowhere.
 */
import type { Experiment, ExperimentContext, Figure, Report } from '../../experiment.js';
import { median } from '../../statistics.js';
import {
  addAccounts,
  addFollows,
  addPosts,
  drained,
  type Group,
  type LabFeed,
  member,
  openTimelines,
  settleTables,
  timeOf,
  withLab,
  withSlots,
} from './world.js';

const bare = (schema: string, filter: string) => `
  select p.id, p.author, p.body, p.created_at from ${schema}.timeline t join ${schema}.posts p on p.id = t.post
  where t.reader = $1 and t.post > 0 ${filter} order by t.post desc limit 50`;

/** Reading with the filter and 1 % deleted against reading without either, by number of followees. */
async function filterCost(
  lab: LabFeed,
  followees: number,
  turns: number,
): Promise<readonly [number, number]> {
  const readers = await addAccounts(lab, `reader${followees}`, 10);
  const authors = await addAccounts(lab, `author${followees}`, followees);
  await addFollows(lab, readers, authors);
  await addPosts(lab, authors, { perAuthor: Math.ceil(2_000 / followees), bytes: 200 });
  for (let index = 0; index < readers.count; index += 1) await lab.feed.rebuild(member(readers, index));
  await lab.database.query(
    `update ${lab.schema}.posts set deleted_at = 1 where author between $1 and $1::bigint + $2 - 1 and id % 100 = 0`,
    [authors.first, authors.count],
  );
  await settleTables(lab);
  const times: [number[], number[]] = [[], []];
  const texts = [bare(lab.schema, ''), bare(lab.schema, 'and p.deleted_at is null')] as const;
  for (let turn = -40; turn < turns; turn += 1) {
    for (const side of [0, 1] as const) {
      const reader = readers.first + (Math.abs(turn) % readers.count);
      const tookMs = await timeOf(() => lab.database.query(texts[side], [reader]));
      if (turn >= 0) times[side].push(tookMs);
    }
  }
  return [median(times[0]), median(times[1])];
}

interface Erasing {
  readonly smallMs: number;
  readonly bigMs: number;
}

/** A table of timelines in which one author of 101 and one of many followers has a post each. */
async function fillEntries(lab: LabFeed, readers: Group, perReader: number): Promise<void> {
  await lab.database.query(
    `insert into ${lab.schema}.timeline (reader, post)
     select r, 1000 + n * 7 from generate_series($1::bigint, $1::bigint + $2 - 1) r cross join generate_series(1, $3::integer) n`,
    [readers.first, readers.count, perReader],
  );
  await lab.database.query(
    `insert into ${lab.schema}.timeline (reader, post)
     select r, 1 from generate_series($1::bigint, $1::bigint + 100) r
     union all select r, 2 from generate_series($1::bigint, $1::bigint + $2 - 1) r`,
    [readers.first, readers.count],
  );
  await lab.database.query(`vacuum analyze ${lab.schema}.timeline`);
}

/** Rolled back, so that both forms delete the same rows. */
async function deleteEverywhere({ database, schema }: LabFeed): Promise<Erasing> {
  const once = async (post: number) => {
    let tookMs = 0;
    const undo = new Error('undo');
    await database
      .transaction(async (transaction) => {
        tookMs = await timeOf(() =>
          transaction.query(`delete from ${schema}.timeline where post = $1`, [post]),
        );
        throw undo;
      })
      .catch((error: unknown) => {
        if (error !== undo) throw error;
      });
    return tookMs;
  };
  const times: [number[], number[]] = [[], []];
  for (let turn = 0; turn < 4; turn += 1) {
    times[0].push(await once(1));
    times[1].push(await once(2));
  }
  return { smallMs: median(times[0].slice(1)), bigMs: median(times[1].slice(1)) };
}

async function sizeOf({ database, schema }: LabFeed, relation: string): Promise<number> {
  const { rows } = await database.query<{ size: string }>(
    `select pg_total_relation_size($1::regclass) as size`,
    [`${schema}.${relation}`],
  );
  return Number(rows[0]?.size);
}

/** How often a post that was deleted before its fan-out ran is in a home afterwards. */
async function deletedBeforeFanOut(lab: LabFeed, posts: number): Promise<number> {
  const readers = await addAccounts(lab, 'follower', 100);
  const authors = await addAccounts(lab, 'writer', 1);
  await addFollows(lab, readers, authors);
  await openTimelines(lab, readers);
  const deleted = new Set<string>();
  for (let index = 0; index < posts; index += 1) {
    const { post } = await lab.feed.publish({ author: member(authors, 0), text: 'a slip' });
    await lab.feed.deletePost({ id: post.id });
    deleted.add(post.id);
  }
  await withSlots(lab, 4, () => drained(lab));
  let shown = 0;
  for (let index = 0; index < readers.count; index += 1) {
    const { items } = await lab.feed.home({ reader: member(readers, index), limit: 100 });
    shown += items.filter(({ id }) => deleted.has(id)).length;
  }
  return shown;
}

/** What a delete takes when the author has these followers; nothing of it depends on them. */
async function deleteMsOf(lab: LabFeed, followers: Group, posts: number): Promise<number> {
  const authors = await addAccounts(lab, `author-of-${followers.count}`, 1);
  await addFollows(lab, followers, authors);
  const times: number[] = [];
  for (let index = 0; index < posts; index += 1) {
    const { post } = await lab.feed.publish({ author: member(authors, 0), text: 'a slip' });
    times.push(await timeOf(() => lab.feed.deletePost({ id: post.id })));
  }
  return median(times);
}

async function run({ quick, tell }: ExperimentContext): Promise<Report> {
  return withLab({}, async (server) => {
    const lab = await server.open('deletes', {
      threshold: { pullFrom: 1_000_000_000, pushBelow: 0 },
      followeesMax: 5_000,
    });
    const turns = quick ? 500 : 3_000;
    tell('filter at read, 1 % deleted');
    const few = await filterCost(lab, 50, turns);
    const many = await filterCost(lab, 2_000, turns);
    tell('deleted before the fan-out');
    const shown = await deletedBeforeFanOut(lab, quick ? 50 : 500);
    const perReader = quick ? 50 : 95;
    const readers = await addAccounts(lab, 'everybody', quick ? 10_000 : 95_000);
    tell(`DELETE by post among ${(readers.count * perReader).toLocaleString('en')} entries`);
    await fillEntries(lab, readers, perReader);
    const headgate: Erasing = {
      smallMs: await deleteMsOf(lab, { ...readers, count: 101 }, 50),
      bigMs: await deleteMsOf(lab, readers, 50),
    };
    const without = await deleteEverywhere(lab);
    const before = await sizeOf(lab, 'timeline');
    await lab.database.query(`create index timeline_by_post on ${lab.schema}.timeline (post)`);
    const index = await sizeOf(lab, 'timeline_by_post');
    const withIndex = await deleteEverywhere(lab);
    return report({
      few,
      many,
      shown,
      headgate,
      without,
      withIndex,
      indexShare: index / before,
      followers: readers.count,
      durability: server.durability,
    });
  });
}

function report(input: {
  readonly few: readonly [number, number];
  readonly many: readonly [number, number];
  readonly shown: number;
  readonly headgate: Erasing;
  readonly without: Erasing;
  readonly withIndex: Erasing;
  readonly indexShare: number;
  readonly followers: number;
  readonly durability: string;
}): Report {
  const { few, many, shown, headgate, without, withIndex, indexShare, followers, durability } = input;
  const filter = { few: few[1] / few[0], many: many[1] / many[0] };
  const figures: Record<string, Figure> = {
    'filter, 50 followees: x without': filter.few,
    'filter, 2,000 followees: x without': filter.many,
    'DELETE by post without index, 101 followers: ms': without.smallMs,
    'DELETE by post without index, many followers: ms': without.bigMs,
    'DELETE by post with index, 101 followers: ms': withIndex.smallMs,
    'DELETE by post with index, many followers: ms': withIndex.bigMs,
    'index: share of the table': indexShare,
    'feed.deletePost, 101 followers: ms': headgate.smallMs,
    'feed.deletePost, many followers: ms': headgate.bigMs,
    'deleted before the fan-out and shown': shown,
  };
  const holds = shown === 0 && filter.few < 1.2 && filter.many < 1.2 && without.smallMs > headgate.bigMs;
  return {
    tables: [
      {
        columns: ['filter at read, 1 % deleted', 'without ms', 'with ms', 'x'],
        rows: [
          ['50 followees', few[0], few[1], filter.few],
          ['2,000 followees', many[0], many[1], filter.many],
        ],
      },
      {
        columns: [
          'taking a post out of all timelines',
          '101 followers ms',
          `${followers.toLocaleString('en')} followers ms`,
        ],
        rows: [
          ['DELETE by post, no index', without.smallMs, without.bigMs],
          [
            `DELETE by post, an index of ${(indexShare * 100).toFixed(0)} % more space`,
            withIndex.smallMs,
            withIndex.bigMs,
          ],
          ['headgate: one row, whatever the followers', headgate.smallMs, headgate.bigMs],
        ],
      },
    ],
    figures,
    reference: {
      'filter at read':
        '50 followees 0.102 -> 0.102 ms, 2,000 followees 0.193 -> 0.200 ms (prototype, PostgreSQL 16)',
      'DELETE by post, 9 million rows': '217 / 223 ms without index, 0.05 / 6 ms with one of 85 MB (+8.6 %)',
      'deleted before fan-out': 'must never appear',
    },
    durability,
    holds,
    verdict: `filtering costs ${filter.few.toFixed(2)} x and ${filter.many.toFixed(2)} x; a DELETE by post takes ${without.smallMs.toFixed(0)} ms without an index, headgate's delete ${headgate.bigMs.toFixed(1)} ms; ${shown} deleted posts were shown`,
  };
}

export const deleteExperiment: Experiment = {
  name: 'delete',
  shows: 'what filtering deleted posts at read costs, and what taking them out of all timelines would',
  run,
};
