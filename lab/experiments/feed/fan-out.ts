/**
 * Entries a second that a fan-out writes on Postgres in batches of 5,000, by the batches alone and through the whole
 * worker path, against one bare INSERT ... SELECT of the same rows into a table of the same shape. Trim is shown apart.
 */
import { fanOut, fanOutBatch } from '../../../src/feed/fan-out.js';
import { trimSome } from '../../../src/feed/housekeeping.js';
import type { Experiment, ExperimentContext, Figure, Report } from '../../experiment.js';
import { median } from '../../statistics.js';
import {
  addAccounts,
  addFollows,
  addPosts,
  drained,
  type Group,
  type Lab,
  type LabFeed,
  member,
  openTimelines,
  settleTables,
  timeOf,
  withLab,
  withSlots,
} from './world.js';

const batchSize = 5_000;
const least = 0.7;
const neededPerSecond = { average: 9_300, peak: 27_800 };

interface Rates {
  readonly bare: number[];
  readonly batches: number[];
  readonly worker: number[];
}

/** A twin of the timeline table with the same rows. */
async function makeTwin({ database, schema }: LabFeed): Promise<void> {
  await database.script(
    `
    create table ${schema}.twin (like ${schema}.timeline including all);
    insert into ${schema}.twin select * from ${schema}.timeline;
    vacuum analyze ${schema}.twin`.replace('vacuum analyze', 'analyze'),
  );
}

/** Every reader has some entries, so that new ones go between those of others. */
async function fillTimelines({ database, schema }: LabFeed, readers: Group, entries: number): Promise<void> {
  await database.query(
    `insert into ${schema}.timeline (reader, post)
     select r, p.id from generate_series($1::bigint, $1::bigint + $2::bigint - 1) r
     cross join (select id from ${schema}.posts order by id limit $3) p`,
    [readers.first, readers.count, entries],
  );
}

async function bareRate({ database, schema }: LabFeed, author: number, followers: number): Promise<number> {
  const { rows } = await database.query<{ id: string }>(`select max(id) + 1 as id from ${schema}.posts`);
  const tookMs = await timeOf(() =>
    database.query(
      `insert into ${schema}.twin (reader, post) select follower, $2::bigint from ${schema}.follows where followee = $1`,
      [author, rows[0]?.id],
    ),
  );
  return (followers / tookMs) * 1_000;
}

/** Entries are committed without waiting for the disk: a commit that does wait comes after them. */
async function flushed({ context }: LabFeed): Promise<void> {
  await context.store.setProgress(context.database, { name: 'flushed', position: String(Date.now()) });
}

/** The splitter and its batches, one after the other, as a worker would run them. */
async function batchesRate(lab: LabFeed, author: string, followers: number) {
  const { feed, context, queue } = lab;
  const { post } = await feed.publish({ author, text: 'to everybody' });
  const tookMs = await timeOf(async () => {
    await fanOut(context, post.id);
    const { batches } = (await context.store.fanOut(context.database, post.id)) ?? {};
    for (const batch of batches ?? []) await fanOutBatch(context, { post: post.id, batch });
    await flushed(lab);
  });
  for (const name of ['feed-small', 'feed-big']) await queue.purge(name, 'pending');
  return (followers / tookMs) * 1_000;
}

async function workerRate(lab: LabFeed, author: string, followers: number): Promise<number> {
  await lab.feed.publish({ author, text: 'to everybody' });
  const tookMs = await withSlots(
    lab,
    8,
    async () => (await drained(lab)) + (await timeOf(() => flushed(lab))),
  );
  return (followers / tookMs) * 1_000;
}

async function run({ quick, tell, store }: ExperimentContext): Promise<Report> {
  if (store === 'redis')
    throw new Error('fan-out: timelines in Redis have an experiment of their own, fan-out-redis');
  const followers = quick ? 100_000 : 200_000;
  return withLab({}, async (server) => {
    const lab = await server.open('fan_out', {
      threshold: { pullFrom: 1_000_000_000, pushBelow: 0 },
      batchSize,
    });
    tell(`preparing: ${followers.toLocaleString('en')} followers with a timeline`);
    const readers = await addAccounts(lab, 'reader', followers);
    const authors = await addAccounts(lab, 'author', 1);
    await addFollows(lab, readers, authors);
    await addPosts(lab, authors, { perAuthor: 20, bytes: 100 });
    await openTimelines(lab, readers);
    await fillTimelines(lab, readers, 20);
    await makeTwin(lab);
    await settleTables(lab);
    const rates: Rates = { bare: [], batches: [], worker: [] };
    const author = member(authors, 0);
    for (let turn = 0; turn < (quick ? 4 : 7); turn += 1) {
      tell(`turn ${turn + 1}`);
      const bare = await bareRate(lab, authors.first, followers);
      const batches = await batchesRate(lab, author, followers);
      const worker = await workerRate(lab, author, followers);
      // The first turn warms the caches.
      if (turn === 0) continue;
      rates.bare.push(bare);
      rates.batches.push(batches);
      rates.worker.push(worker);
    }
    tell('trimming');
    return report(rates, await trimRate(server, quick ? 200 : 1_000), server.durability);
  });
}

/** Entries a second that trimming takes out of timelines that are 100 entries over their 800. */
async function trimRate(server: Lab, timelines: number): Promise<number> {
  const lab = await server.open('trim');
  const readers = await addAccounts(lab, 'reader', timelines);
  const authors = await addAccounts(lab, 'author', 1);
  await addPosts(lab, authors, { perAuthor: 900, bytes: 10 });
  await openTimelines(lab, readers);
  await fillTimelines(lab, readers, 900);
  await settleTables(lab);
  const tookMs = await timeOf(async () => {
    while (!(await trimSome(lab.context)));
  });
  const { rows } = await lab.database.query<{ count: string }>(
    `select count(*) from ${lab.schema}.timeline where post > 0`,
  );
  return ((timelines * 900 - Number(rows[0]?.count)) / tookMs) * 1_000;
}

function report(rates: Rates, trimmed: number, durability: string): Report {
  const bare = median(rates.bare);
  const [batches, worker] = [median(rates.batches) / bare, median(rates.worker) / bare];
  const figures: Record<string, Figure> = {
    'bare rows/s': Math.round(bare),
    'batches alone: x bare': batches,
    'whole worker path: x bare': worker,
    'worker path entries/s': Math.round(median(rates.worker)),
    'trimmed entries/s': Math.round(trimmed),
  };
  const worse = Math.min(batches, worker);
  return {
    tables: [
      {
        columns: ['side', 'rows/s', 'x bare'],
        rows: [
          ['one bare INSERT ... SELECT', Math.round(bare), 1],
          ['batches of 5,000, one after the other', Math.round(median(rates.batches)), batches],
          ['the whole worker path, 8 slots', Math.round(median(rates.worker)), worker],
          ['trim, apart: entries taken out', Math.round(trimmed), trimmed / bare],
        ],
      },
    ],
    figures,
    reference: {
      'to reach': `${least} x bare`,
      'needed/s': `${neededPerSecond.average.toLocaleString('en')} on average, ${neededPerSecond.peak.toLocaleString('en')} at peak`,
    },
    durability,
    holds: worse >= least,
    verdict: `batches reach ${batches.toFixed(2)} x, the whole worker path ${worker.toFixed(2)} x of a bare insert (to reach ${least} x)`,
  };
}

export const fanOutExperiment: Experiment = {
  name: 'fan-out',
  shows: 'entries a second of a fan-out in batches of 5,000 against one bare INSERT ... SELECT; trim apart',
  run,
};
