/**
 * Whoever posts looks for it at once. Without a worker running: does the home show it, and what do the ways to make it
 * so cost a reader of 500 followees: the timeline alone, own posts merged at every read, and the entry of the publish.
 */
import type { Experiment, ExperimentContext, Figure, Report } from '../../experiment.js';
import { median } from '../../statistics.js';
import {
  addAccounts,
  addFollows,
  addPosts,
  type LabFeed,
  member,
  settleTables,
  timeOf,
  withLab,
} from './world.js';

const limit = 50;
const followees = 500;

const columns = 'p.id, p.author, p.key, p.body, p.data, p.visibility, p.repost_of, p.created_at, p.mode';

/** What fan-out has brought, and nothing else: the entries of others. */
const timelineAlone = (schema: string) => `
  select ${columns} from ${schema}.timeline t join ${schema}.posts p on p.id = t.post
  where t.reader = $1 and t.post > 0 and p.author <> $1 order by t.post desc limit ${limit}`;

const mergedAtRead = (schema: string) => `
  select ${columns} from (
    select id from (
      (select t.post as id from ${schema}.timeline t join ${schema}.posts p on p.id = t.post
        where t.reader = $1 and t.post > 0 and p.author <> $1 order by t.post desc limit ${limit})
      union all
      (select p.id from ${schema}.posts p
        where p.author = $1 and p.deleted_at is null order by p.id desc limit ${limit})) both_sides
    order by id desc limit ${limit}) newest
  join ${schema}.posts p on p.id = newest.id order by p.id desc`;

const entryOfPublish = (schema: string) => `
  select ${columns} from ${schema}.timeline t join ${schema}.posts p on p.id = t.post
  where t.reader = $1 and t.post > 0 order by t.post desc limit ${limit}`;

interface Way {
  readonly label: string;
  readonly text: string;
  readonly times: number[];
  shown: number;
}

async function lookFor(
  lab: LabFeed,
  ways: readonly Way[],
  reader: { id: string; number: number },
  posts: number,
) {
  let byHome = 0;
  for (let turn = 0; turn < posts; turn += 1) {
    const { post } = await lab.feed.publish({ author: reader.id, text: `number ${turn}` });
    for (const way of ways) {
      const { rows } = await lab.database.query<{ id: string }>(way.text, [reader.number]);
      if (rows[0]?.id === post.id) way.shown += 1;
    }
    const { items } = await lab.feed.home({ reader: reader.id, limit });
    if (items[0]?.id === post.id) byHome += 1;
  }
  return byHome;
}

async function run({ quick, tell }: ExperimentContext): Promise<Report> {
  const posts = quick ? 50 : 200;
  return withLab({ poolMax: 1 }, async (server) => {
    const lab = await server.open('own_post');
    tell(`preparing: readers of ${followees} followees`);
    const readers = await addAccounts(lab, 'reader', 10);
    const authors = await addAccounts(lab, 'author', followees);
    await addFollows(lab, readers, authors);
    await addPosts(lab, authors, { perAuthor: 4 });
    await addPosts(lab, readers, { perAuthor: 20 });
    for (let index = 0; index < readers.count; index += 1) await lab.feed.rebuild(member(readers, index));
    await settleTables(lab);
    const ways: Way[] = [
      { label: 'timeline alone', text: timelineAlone(lab.schema), times: [], shown: 0 },
      { label: 'own posts merged at read', text: mergedAtRead(lab.schema), times: [], shown: 0 },
      { label: 'entry written by the publish', text: entryOfPublish(lab.schema), times: [], shown: 0 },
    ];
    const byHome = await lookFor(lab, ways, { id: member(readers, 0), number: readers.first }, posts);
    tell('what each way costs');
    for (let turn = -40; turn < (quick ? 500 : 3_000); turn += 1) {
      for (const way of ways) {
        const tookMs = await timeOf(() =>
          lab.database.query(way.text, [readers.first + 1 + (Math.abs(turn) % 9)]),
        );
        if (turn >= 0) way.times.push(tookMs);
      }
    }
    return report({ ways, byHome, posts, durability: server.durability });
  });
}

function report(input: {
  readonly ways: readonly Way[];
  readonly byHome: number;
  readonly posts: number;
  readonly durability: string;
}): Report {
  const { ways, byHome, posts, durability } = input;
  const [alone, merged, entry] = ways as [Way, Way, Way];
  const ratio = ({ times }: Way) => median(times) / median(entry.times);
  const figures: Record<string, Figure> = {
    'own posts looked for': posts,
    'shown by the timeline alone': alone.shown,
    'shown by merging': merged.shown,
    'shown by home': byHome,
    'merging: x the entry': ratio(merged),
  };
  const holds = alone.shown === 0 && byHome === posts && ratio(merged) > 1;
  return {
    tables: [
      {
        columns: ['way', 'own post on top', 'read p50 ms', 'x the entry'],
        rows: [
          ...ways.map((way) => [way.label, `${way.shown} of ${posts}`, median(way.times), ratio(way)]),
          ['headgate home, all checks', `${byHome} of ${posts}`, null, null],
        ],
      },
    ],
    figures,
    reference: {
      'timeline alone': '0 of 50',
      'merged at read': 'shown, at 1.30-1.35 x of every read, 3,500 opens/s (Apple M4, PostgreSQL 16)',
    },
    durability,
    holds,
    verdict: `with no worker running home shows ${byHome} of ${posts} own posts at once, the timeline alone ${alone.shown}; merging at every read would cost ${ratio(merged).toFixed(2)} x`,
  };
}

export const ownPost: Experiment = {
  name: 'own-post',
  shows: 'a post with no worker running: does home show it at once, and what the ways to make it so cost',
  run,
};
