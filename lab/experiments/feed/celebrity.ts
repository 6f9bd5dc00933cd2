/**
 * An author with many followers posts while small ones do: in one lane, in a lane of its own, pulled; with its batches
 * one at a time (what keying them by author comes to) and spread. And what publishing costs with nobody and with all of
 * them following, the workers stopped.
 */
import type { MetricsBackend } from '../../../src/metrics.js';
import { feedQueues } from '../../../src/feed/index.js';
import type { Queue } from '../../../src/queue/index.js';
import type { Experiment, ExperimentContext, Figure, Report } from '../../experiment.js';
import { median, percentile } from '../../statistics.js';
import {
  addAccounts,
  addFollows,
  drained,
  type Group,
  type LabFeed,
  makePulled,
  member,
  openTimelines,
  settleTables,
  timeOf,
  until,
  withLab,
  withSlots,
  withWorker,
} from './world.js';

const lagMost = 1;
const publishMost = 1.2;
const never = { pullFrom: 1_000_000_000, pushBelow: 0 };

/** Keeps what the worker observes of each fan-out: seconds from publish to the last follower's entry. */
class Lags {
  readonly small: number[] = [];
  readonly big: number[] = [];
  readonly backend: MetricsBackend = () => ({
    add: () => {},
    set: () => {},
    observe: (name: string, { lane }: Readonly<Record<string, string>>, seconds: number) => {
      if (name === 'headgate_feed_fan_out_seconds') this[lane === 'big' ? 'big' : 'small'].push(seconds);
    },
  });
  clear(): void {
    this.small.length = 0;
    this.big.length = 0;
  }
}

/** Sends the work of big authors down the lane of the small ones. */
function oneLane(queue: Queue): Queue {
  return new Proxy(queue, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (name === 'enqueue') {
        return (lane: string, ...rest: [never]) =>
          target.enqueue(lane === feedQueues.big ? feedQueues.small : lane, ...rest);
      }
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

interface Stage {
  readonly lab: LabFeed;
  readonly lags: Lags;
  readonly big: string;
  readonly small: Group;
  readonly readers: Group;
}

async function build(lab: LabFeed, lags: Lags, followers: number): Promise<Stage> {
  const readers = await addAccounts(lab, 'reader', followers);
  const bigs = await addAccounts(lab, 'big', 1);
  const small = await addAccounts(lab, 'small', 50);
  await addFollows(lab, readers, bigs);
  await addFollows(lab, { ...readers, count: 20 }, small);
  await openTimelines(lab, readers);
  await settleTables(lab);
  return { lab, lags, big: member(bigs, 0), small, readers };
}

interface Outcome {
  readonly smallP50: number;
  readonly smallP99: number;
  readonly bigSeconds: number;
}

/** The big author posts, and small ones `perSecond` times a second until it has arrived everywhere. */
async function mixed({ lab, lags, big, small }: Stage, perSecond: number): Promise<Outcome> {
  lags.clear();
  await lab.feed.publish({ author: big, text: 'to everybody' });
  let published = 0;
  const startedAt = performance.now();
  const step = async () => {
    const due = Math.floor(((performance.now() - startedAt) / 1_000) * perSecond) + 1;
    while (published < due) {
      await lab.feed.publish({ author: member(small, published % small.count), text: 'to twenty' });
      published += 1;
    }
    const { rows } = await lab.database.query(
      `select 1 from ${lab.schema}.fan_outs w join ${lab.schema}.accounts a on a.number = w.author where a.id = $1`,
      [big],
    );
    return rows.length === 0 && performance.now() - startedAt > 3_000;
  };
  await until('the post of the big author arrived', 600_000, step);
  await until('small posts arrived', 600_000, async () => lags.small.length >= published);
  return {
    smallP50: median(lags.small),
    smallP99: percentile(lags.small, 0.99),
    bigSeconds: lags.big.at(-1) ?? 0,
  };
}

async function publishRatio(lab: LabFeed, pairs: readonly (readonly [nobody: string, everybody: string])[]) {
  const times = pairs.map(() => [[], []] as [number[], number[]]);
  for (let turn = -20; turn < 200; turn += 1) {
    for (const [index, pair] of pairs.entries()) {
      for (const side of [0, 1] as const) {
        const tookMs = await timeOf(() => lab.feed.publish({ author: pair[side], text: 'as quick as ever' }));
        if (turn >= 0) times[index]![side].push(tookMs);
      }
    }
  }
  return times.map(([nobody, everybody]) => median(everybody) / median(nobody));
}

async function run({ quick, tell }: ExperimentContext): Promise<Report> {
  const followers = quick ? 60_000 : 1_000_000;
  const perSecond = 20;
  return withLab({}, async (server) => {
    const lags = new Lags();
    const outcomes: [string, Outcome][] = [];
    const open = (name: string, wrapQueue?: (queue: Queue) => Queue) =>
      server.open(
        name,
        { threshold: never, batchSize: 1_000 },
        { metrics: lags.backend, ...(wrapQueue && { wrapQueue }) },
      );
    tell(`preparing: ${followers.toLocaleString('en')} followers, twice`);
    const own = await build(await open('own_lane'), lags, followers);
    const shared = await build(await open('one_lane', oneLane), lags, followers);
    tell('a lane of its own, with a floor for the small ones');
    outcomes.push([
      'own lane, spread over 8 slots',
      await withWorker(own.lab, { slots: 8 }, () => mixed(own, perSecond)),
    ]);
    tell('one lane');
    outcomes.push(['one lane, 8 slots', await withSlots(shared.lab, 8, () => mixed(shared, perSecond))]);
    outcomes.push([
      'one lane, one at a time',
      await withSlots(shared.lab, 1, () => mixed(shared, perSecond)),
    ]);
    tell('publishing with the workers stopped');
    const ratios = await publishing(own);
    return report({ outcomes, ratios, followers, durability: server.durability });
  });
}

/** The ratio of everybody to nobody following, pushed and pulled; the followers are those of the big author. */
async function publishing({ lab, big, readers }: Stage) {
  const nobody = await addAccounts(lab, 'nobody', 2);
  const pulled = await addAccounts(lab, 'pulled', 1);
  await addFollows(lab, readers, pulled);
  await makePulled(lab, pulled);
  await makePulled(lab, { ...nobody, first: nobody.first + 1, count: 1 });
  await drained(lab);
  const [pushed, merged] = await publishRatio(lab, [
    [member(nobody, 0), big],
    [member(nobody, 1), member(pulled, 0)],
  ]);
  return { pushed: pushed ?? Number.NaN, merged: merged ?? Number.NaN };
}

function report(input: {
  readonly outcomes: readonly (readonly [string, Outcome])[];
  readonly ratios: { readonly pushed: number; readonly merged: number };
  readonly followers: number;
  readonly durability: string;
}): Report {
  const { outcomes, ratios, followers, durability } = input;
  const own = outcomes[0]![1];
  const figures: Record<string, Figure> = {
    followers,
    'small lane lag p99 s': own.smallP99,
    'publish, pushed: x nobody following': ratios.pushed,
    'publish, pulled: x nobody following': ratios.merged,
  };
  for (const [label, outcome] of outcomes) {
    figures[`${label}: small p99 s`] = outcome.smallP99;
    figures[`${label}: big author s`] = outcome.bigSeconds;
  }
  const holds = own.smallP99 < lagMost && ratios.pushed <= publishMost && ratios.merged <= publishMost;
  return {
    tables: [
      {
        columns: ['lanes', 'small: lag p50 s', 'small: lag p99 s', 'big author: s to the last follower'],
        rows: outcomes.map(([label, o]) => [label, o.smallP50, o.smallP99, o.bigSeconds]),
      },
      {
        columns: ['publish, workers stopped', 'x nobody following'],
        rows: [
          [`pushed to ${followers.toLocaleString('en')}`, ratios.pushed],
          ['pulled', ratios.merged],
        ],
      },
    ],
    figures,
    reference: {
      '5,000,000 followers': '45 s on one worker by estimate (prototype), 40 minutes of backlog in one lane',
      'to reach': 'small lane p99 under 1 s; publish within 1.2 x',
    },
    durability,
    holds,
    verdict: `the small lane's lag is ${own.smallP99.toFixed(2)} s at p99 beside ${followers.toLocaleString('en')} followers; publishing takes ${ratios.pushed.toFixed(2)} x pushed and ${ratios.merged.toFixed(2)} x pulled`,
  };
}

export const celebrity: Experiment = {
  name: 'celebrity',
  shows:
    'an author with 1,000,000 followers posts: one lane, own lane; publishing with and without followers',
  run,
};
