/**
 * An author drifts around the threshold, a follower more, a follower less: how often the mode changes with a gap between
 * the two thresholds and without, and that nothing is lost or shown twice at a switch. A hundredth of the real numbers.
 */
import { seededRandom } from '../../random.js';
import type { MetricsBackend } from '../../../src/metrics.js';
import { foldFollowers } from '../../../src/feed/housekeeping.js';
import type { Experiment, ExperimentContext, Figure, Report } from '../../experiment.js';
import { addAccounts, addFollows, drained, type Lab, member, withLab, withSlots } from './world.js';

const pullFrom = 100;
const drift = 5;

interface Outcome {
  readonly label: string;
  readonly switches: number;
  readonly posts: number;
  readonly lost: number;
  readonly doubled: number;
}

interface Drifting {
  readonly label: string;
  readonly name: string;
  readonly pushBelow: number;
  readonly steps: number;
  readonly seed: number;
}

async function drifting(server: Lab, { label, name, pushBelow, steps, seed }: Drifting): Promise<Outcome> {
  let switches = 0;
  const metrics: MetricsBackend = () => ({
    add: (metric: string) => {
      if (metric === 'headgate_feed_mode_switches_total') switches += 1;
    },
    set: () => {},
    observe: () => {},
  });
  const lab = await server.open(name, { threshold: { pullFrom, pushBelow } }, { metrics });
  const fans = await addAccounts(lab, 'fan', pullFrom + 2 * drift);
  const authors = await addAccounts(lab, 'author', 1);
  const author = member(authors, 0);
  await addFollows(lab, { ...fans, count: pullFrom - 1 }, authors);
  const reader = member(fans, 0);
  await lab.feed.rebuild(reader);
  const random = seededRandom(seed);
  const published: string[] = [];
  let followers = pullFrom - 1;
  await withSlots(lab, 4, async () => {
    for (let step = 0; step < steps; step += 1) {
      const up = followers <= pullFrom - drift || (followers < pullFrom + drift && random() < 0.5);
      const pair = { follower: member(fans, up ? followers : followers - 1), followee: author };
      await (up ? lab.feed.follow(pair) : lab.feed.unfollow(pair));
      followers += up ? 1 : -1;
      await foldFollowers(lab.context);
      published.push((await lab.feed.publish({ author, text: `step ${step}` })).post.id);
    }
    await drained(lab);
  });
  const shown = await walk(lab.feed, reader);
  const lost = published.filter((id) => !shown.includes(id)).length;
  return { label, switches, posts: published.length, lost, doubled: shown.length - new Set(shown).size };
}

async function walk(feed: Awaited<ReturnType<Lab['open']>>['feed'], reader: string): Promise<string[]> {
  const shown: string[] = [];
  let after: string | undefined;
  do {
    const page = await feed.home({ reader, limit: 50, after });
    shown.push(...page.items.map(({ id }) => id));
    after = page.next;
  } while (after !== undefined);
  return shown;
}

async function run({ quick, tell, seed }: ExperimentContext): Promise<Report> {
  const steps = quick ? 200 : 2_000;
  return withLab({}, async (server) => {
    tell('with a gap');
    const gap = await drifting(server, {
      label: `up at ${pullFrom}, down at 80`,
      name: 'gap',
      pushBelow: 80,
      steps,
      seed,
    });
    tell('without');
    const none = await drifting(server, {
      label: `up and down at ${pullFrom}`,
      name: 'no_gap',
      pushBelow: pullFrom,
      steps,
      seed,
    });
    return report([gap, none], server.durability);
  });
}

function report(outcomes: readonly [Outcome, Outcome], durability: string): Report {
  const [gap, none] = outcomes;
  const figures: Record<string, Figure> = {};
  for (const { label, switches, lost, doubled } of outcomes) {
    figures[`${label}: switches`] = switches;
    figures[`${label}: lost`] = lost;
    figures[`${label}: doubled`] = doubled;
  }
  const whole = outcomes.every(({ lost, doubled }) => lost === 0 && doubled === 0);
  return {
    tables: [
      {
        columns: ['threshold', 'posts', 'mode changes', 'lost', 'shown twice'],
        rows: outcomes.map(({ label, posts, switches, lost, doubled }) => [
          label,
          posts,
          switches,
          lost,
          doubled,
        ]),
      },
    ],
    figures,
    reference: {
      thresholds: '10,000 up, 8,000 down',
      'to reach': 'nothing lost, nothing doubled, one change of mode',
    },
    durability,
    holds: whole && gap.switches <= 1 && none.switches > gap.switches,
    verdict: `${gap.switches} mode changes with the gap and ${none.switches} without; ${gap.lost + none.lost} posts lost, ${gap.doubled + none.doubled} shown twice`,
  };
}

export const hysteresis: Experiment = {
  name: 'hysteresis',
  shows:
    'an author drifts around the threshold: changes of mode with and without a gap, nothing lost or doubled',
  run,
};
