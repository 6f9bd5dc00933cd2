/** Paging by rank and by cursor through a home while new posts arrive: what is shown twice and what never. */
import type { Experiment, ExperimentContext, Figure, Report } from '../../experiment.js';
import {
  addAccounts,
  addFollows,
  addPosts,
  drained,
  type LabFeed,
  member,
  withLab,
  withSlots,
} from './world.js';

const limit = 20;
const arrivals = 5;

interface Walk {
  readonly shown: string[];
  readonly pages: number;
}

/** The posts that the reader's timeline holds, from a rank on: what an offset does. */
async function byRank(lab: LabFeed, reader: number, arrive: () => Promise<void>): Promise<Walk> {
  const shown: string[] = [];
  for (let page = 0; ; page += 1) {
    const { rows } = await lab.database.query<{ post: string }>(
      `select post from ${lab.schema}.timeline where reader = $1 and post > 0 order by post desc limit $2 offset $3`,
      [reader, limit, page * limit],
    );
    if (rows.length === 0) return { shown, pages: page };
    shown.push(...rows.map(({ post }) => post));
    await arrive();
  }
}

async function byCursor({ feed }: LabFeed, reader: string, arrive: () => Promise<void>): Promise<Walk> {
  const shown: string[] = [];
  let after: string | undefined;
  for (let page = 1; ; page += 1) {
    const home = await feed.home({ reader, limit, after });
    shown.push(...home.items.map(({ id }) => id));
    if (home.next === undefined) return { shown, pages: page };
    after = home.next;
    await arrive();
  }
}

async function run({ quick, tell }: ExperimentContext): Promise<Report> {
  return withLab({}, async (server) => {
    const lab = await server.open('paging');
    const readers = await addAccounts(lab, 'reader', 1);
    const authors = await addAccounts(lab, 'author', 50);
    const reader = member(readers, 0);
    await addFollows(lab, readers, authors);
    await addPosts(lab, authors, { perAuthor: quick ? 6 : 15, bytes: 100 });
    await lab.feed.rebuild(reader);
    const before = await lab.database.query<{ id: string }>(
      `select id from ${lab.schema}.posts order by id desc`,
    );
    const there = before.rows.map(({ id }) => id);
    return withSlots(lab, 2, async () => {
      let number = 0;
      const arrive = async () => {
        for (let count = 0; count < arrivals; count += 1, number += 1)
          await lab.feed.publish({ author: member(authors, number % authors.count), text: `new ${number}` });
        await drained(lab);
      };
      tell('by cursor');
      const cursor = await byCursor(lab, reader, arrive);
      tell('by rank');
      const rank = await byRank(lab, readers.first, arrive);
      return report({ cursor, rank, there, durability: server.durability });
    });
  });
}

function report(input: {
  readonly cursor: Walk;
  readonly rank: Walk;
  /** What stood there before the first walk began. */
  readonly there: readonly string[];
  readonly durability: string;
}): Report {
  const { cursor, rank, there, durability } = input;
  const judged = ([label, { shown, pages }]: readonly [string, Walk]) => ({
    label,
    pages,
    twice: shown.length - new Set(shown).size,
    lost: there.filter((id) => !shown.includes(id)).length,
  });
  const both = [judged(['by cursor', cursor]), judged(['by rank', rank])] as const;
  const figures: Record<string, Figure> = {};
  for (const { label, twice, lost } of both) {
    figures[`${label}: shown twice`] = twice;
    figures[`${label}: never shown`] = lost;
  }
  return {
    tables: [
      {
        columns: [`${arrivals} new posts between two pages`, 'pages', 'shown twice', 'never shown'],
        rows: both.map(({ label, pages, twice, lost }) => [label, pages, twice, lost]),
      },
    ],
    figures,
    reference: { rank: 'repeats', cursor: 'repeats and loses nothing' },
    durability,
    holds: both[0].twice === 0 && both[0].lost === 0 && both[1].twice > 0,
    verdict: `the cursor shows ${both[0].twice} posts twice and loses ${both[0].lost}; the rank shows ${both[1].twice} twice`,
  };
}

export const paging: Experiment = {
  name: 'paging',
  shows: 'paging by rank and by cursor while new posts arrive: repeats and losses',
  run,
};
