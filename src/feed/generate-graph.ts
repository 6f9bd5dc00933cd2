/**
 * Makes follow graphs with the published shapes of two networks, as a stream: the same seed gives the same graph. Who is
 * followed is drawn by a weight that follows the shape's distribution of followers, each followee of an account once.
 */
import { invalidInput } from '../errors.js';
import type { AccountId } from './account.js';

/**
 * twitter-active: log-normal body (median 61 followers, sigma 1.60), Pareto tail above 1,000 (exponent 1.26), follows
 * log-normal with median 117. bsky-2024: median 1 follower, 95th percentile 95, 99.5th 1,000, 99.9th 2,300.
 */
export type GraphShape = 'twitter-active' | 'bsky-2024';

export interface GraphOptions {
  readonly shape: GraphShape;
  /** At least 2. */
  readonly accounts: number;
  readonly seed: number;
  /** Followees of the median account; default: the shape's. Smaller graphs of the same form load faster. */
  readonly followeesMedian?: number;
}

interface Shape {
  /** Followers of an account at the quantile `u` (0 to 1, exclusive). */
  followersAt(u: number, normal: number): number;
  readonly followeesMedian: number;
  readonly followeesSigma: number;
}

const bskyQuantiles: readonly (readonly [number, number])[] = [
  [0, 0.2],
  [0.5, 1],
  [0.95, 95],
  [0.995, 1_000],
  [0.999, 2_300],
  [1, 20_000],
];

/** Between two known quantiles the logarithm grows evenly. */
function interpolate(u: number): number {
  const upper = bskyQuantiles.findIndex(([quantile]) => quantile >= u);
  const [high, low] = [bskyQuantiles[Math.max(upper, 1)]!, bskyQuantiles[Math.max(upper, 1) - 1]!];
  const share = (u - low[0]) / (high[0] - low[0]);
  return low[1] * (high[1] / low[1]) ** share;
}

const tailFrom = 1_000;

const shapes: Readonly<Record<GraphShape, Shape>> = {
  'twitter-active': {
    followersAt(u, normal) {
      const body = 61 * Math.exp(1.6 * normal);
      // whoever falls into the tail is drawn anew from the Pareto distribution above it
      return body <= tailFrom ? body : tailFrom * (1 - u) ** (-1 / 1.26);
    },
    followeesMedian: 117,
    followeesSigma: 1,
  },
  'bsky-2024': { followersAt: (u) => interpolate(u), followeesMedian: 5, followeesSigma: 1.5 },
};

/** Numbers from 0 to 1, the same for the same seed (mulberry32). */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

function standardNormal(random: () => number): number {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}

/** The running sum of every account's weight, to draw from by binary search. */
function cumulativeWeights({ shape, accounts }: GraphOptions, random: () => number): Float64Array {
  const sums = new Float64Array(accounts);
  let sum = 0;
  for (let index = 0; index < accounts; index += 1) {
    sum += Math.min(shapes[shape].followersAt(random(), standardNormal(random)), accounts - 1);
    sums[index] = sum;
  }
  return sums;
}

function draw(sums: Float64Array, random: () => number): number {
  const wanted = random() * (sums.at(-1) ?? 0);
  let [low, high] = [0, sums.length - 1];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((sums[middle] ?? 0) > wanted) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** The id of the account with this number in a generated graph. */
export function generatedAccount(index: number): AccountId {
  return `user-${index}`;
}

/**
 * Pairs of [follower, followee], follower after follower, no pair twice and nobody following themselves.
 *
 * @throws `invalid-input` for an unknown shape or fewer than 2 accounts.
 */
export function* generateFollows(options: GraphOptions): Generator<readonly [AccountId, AccountId]> {
  const { shape, accounts, seed } = options;
  if (!Object.hasOwn(shapes, shape)) throw invalidInput('shape', shape, Object.keys(shapes).join(' or '));
  if (!Number.isSafeInteger(accounts) || accounts < 2)
    throw invalidInput('accounts', accounts, 'a whole number from 2');
  const { followeesMedian, followeesSigma } = { ...shapes[shape], ...options };
  const random = seededRandom(seed);
  const sums = cumulativeWeights(options, random);
  for (let follower = 0; follower < accounts; follower += 1) {
    const wanted = Math.round(followeesMedian * Math.exp(followeesSigma * standardNormal(random)));
    const count = Math.min(Math.max(wanted, 1), Math.ceil((accounts - 1) / 2));
    const chosen = new Set<number>();
    // draws that meet the same popular account again are lost, so that a small graph stays skewed
    for (let drawn = 0; drawn < count; drawn += 1) chosen.add(draw(sums, random));
    chosen.delete(follower);
    if (chosen.size === 0) chosen.add((follower + 1) % accounts);
    for (const followee of chosen) yield [generatedAccount(follower), generatedAccount(followee)];
  }
}

/** Quantiles of a list of counts, for instance followers an account. */
export function quantilesOf(
  counts: readonly number[],
): Readonly<Record<'median' | 'p95' | 'p99' | 'p995' | 'p999' | 'max', number>> {
  const sorted = counts.toSorted((a, b) => a - b);
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0;
  return {
    median: at(0.5),
    p95: at(0.95),
    p99: at(0.99),
    p995: at(0.995),
    p999: at(0.999),
    max: sorted.at(-1) ?? 0,
  };
}
