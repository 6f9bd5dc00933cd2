/**
 * Push, pull, hybrid and the naive join by number of followees: what a post costs, what a read costs, and how long until
 * a follower sees it.
 */
import type { FeedOptionsInput } from '../../../src/feed/index.js';
import type { Experiment, ExperimentContext, Figure, Report } from '../../experiment.js';
import { median } from '../../statistics.js';
import {
  addAccounts,
  addFollows,
  addPosts,
  type Group,
  type LabFeed,
  makePulled,
  member,
  settleTables,
  timeOf,
  until,
  withLab,
  withSlots,
} from './world.js';

const limit = 20;
const followersEach = 200;

const naiveJoin = (schema: string) => `
  select p.id, a.id as author, p.body, p.created_at
  from ${schema}.follows f join ${schema}.posts p on p.author = f.followee join ${schema}.accounts a on a.number = p.author
  where f.follower = $1 and p.deleted_at is null order by p.id desc limit ${limit}`;

interface Mode {
  readonly name: 'push' | 'hybrid' | 'pull';
  readonly options: FeedOptionsInput;
  /** Share of authors that are pulled. */
  readonly pulledShare: number;
}

const never = { pullFrom: 1_000_000_000, pushBelow: 0 };
const modes: readonly Mode[] = [
  { name: 'push', options: { threshold: never, followeesMax: 5_000 }, pulledShare: 0 },
  { name: 'hybrid', options: { threshold: never, followeesMax: 5_000 }, pulledShare: 0.1 },
  { name: 'pull', options: { fanOut: 'pull' }, pulledShare: 1 },
];

interface Stage {
  readonly mode: Mode;
  readonly followees: number;
  readonly lab: LabFeed;
  readonly readers: Group;
  readonly authors: Group;
  readonly posts: number[];
  readonly reads: number[];
  readonly fresh: number[];
}

async function build(lab: LabFeed, mode: Mode, followees: number): Promise<Stage> {
  const readers = await addAccounts(lab, `reader${followees}`, followersEach);
  const authors = await addAccounts(lab, `author${followees}`, followees);
  await addFollows(lab, readers, authors);
  await addPosts(lab, authors, { perAuthor: 8, bytes: 500 });
  const pulled = Math.round(followees * mode.pulledShare);
  if (pulled > 0) await makePulled(lab, { ...authors, count: pulled });
  if (mode.name !== 'pull') {
    for (let index = 0; index < readers.count; index += 1) await lab.feed.rebuild(member(readers, index));
  }
  return { mode, followees, lab, readers, authors, posts: [], reads: [], fresh: [] };
}

/** A post by a pushed author (if there is one), and how long until a follower's home has it. */
async function post({ lab, authors, readers, posts, fresh }: Stage, turn: number): Promise<void> {
  const author = member(authors, authors.count - 1 - (turn % Math.ceil(authors.count / 2)));
  const reader = member(readers, turn % readers.count);
  let id = '';
  posts.push(await timeOf(async () => (id = (await lab.feed.publish({ author, text: 'fresh' })).post.id)));
  fresh.push(
    await timeOf(() =>
      until('seen by a follower', 60_000, async () => {
        const { items } = await lab.feed.home({ reader, limit: 1 });
        return items[0]?.id === id;
      }),
    ),
  );
}

async function run({ quick, tell }: ExperimentContext): Promise<Report> {
  const sizes = quick ? [50, 200, 500] : [50, 200, 500, 2_000];
  return withLab({}, async (server) => {
    const stages: Stage[] = [];
    for (const mode of modes) {
      const lab = await server.open(`mode_${mode.name}`, mode.options);
      // Whom nobody here follows: most of the posts of any network.
      await addPosts(lab, await addAccounts(lab, 'stranger', 3_000), { perAuthor: 8, bytes: 500 });
      for (const followees of sizes) {
        tell(`preparing: ${mode.name}, ${followees} followees`);
        stages.push(await build(lab, mode, followees));
      }
      await settleTables(lab);
    }
    const naive = new Map(sizes.map((followees) => [followees, [] as number[]]));
    tell('reading, in turns');
    for (let turn = -20; turn < (quick ? 150 : 1_000); turn += 1) {
      for (const stage of stages) {
        const at = Math.abs(turn) % stage.readers.count;
        const tookMs = await timeOf(() => stage.lab.feed.home({ reader: member(stage.readers, at), limit }));
        if (turn >= 0) stage.reads.push(tookMs);
        if (stage.mode.name !== 'push') continue;
        const { database, schema } = stage.lab;
        const naiveMs = await timeOf(() => database.query(naiveJoin(schema), [stage.readers.first + at]));
        if (turn >= 0) naive.get(stage.followees)?.push(naiveMs);
      }
    }
    tell('posting, in turns');
    const labs = [...new Set(stages.map(({ lab }) => lab))];
    for (const lab of labs) {
      await withSlots(lab, 4, async () => {
        for (let turn = 0; turn < (quick ? 15 : 100); turn += 1) {
          for (const stage of stages.filter((one) => one.lab === lab)) await post(stage, turn);
        }
      });
    }
    return report({ stages, naive, sizes, durability: server.durability });
  });
}

function report(input: {
  readonly stages: readonly Stage[];
  readonly naive: ReadonlyMap<number, readonly number[]>;
  readonly sizes: readonly number[];
  readonly durability: string;
}): Report {
  const { stages, naive, sizes, durability } = input;
  const figures: Record<string, Figure> = {};
  const rows: Figure[][] = [];
  for (const { mode, followees, posts, reads, fresh } of stages) {
    rows.push([mode.name, followees, median(posts), median(reads), median(fresh)]);
    figures[`${mode.name}, ${followees} followees: read ms`] = median(reads);
  }
  for (const [followees, times] of naive) {
    rows.push(['naive join', followees, null, median(times), null]);
    figures[`naive join, ${followees} followees: read ms`] = median(times);
  }
  const [fewest, most] = [sizes[0]!, sizes.at(-1)!];
  const growth = (name: string) => {
    const of = (followees: number) =>
      median(stages.find((stage) => stage.mode.name === name && stage.followees === followees)?.reads ?? []);
    return of(most) / of(fewest);
  };
  const [push, pull] = [growth('push'), growth('pull')];
  figures['push: read growth'] = push;
  figures['pull: read growth'] = pull;
  return {
    tables: [
      { columns: ['mode', 'followees', 'post ms', 'read p50 ms', 'seen by a follower after ms'], rows },
    ],
    figures,
    reference: { push: 'flat reads', pull: 'reads grow with the followees' },
    durability,
    holds: push < 1.5 && pull > push,
    verdict: `from ${fewest} to ${most} followees a read takes ${push.toFixed(2)} x when pushed and ${pull.toFixed(2)} x when pulled`,
  };
}

export const modesExperiment: Experiment = {
  name: 'modes',
  shows: 'push, pull, hybrid and the naive join by number of followees: cost of a post, of a read, freshness',
  run,
};
