/** The feed's options: their defaults with the reason for each, validated once and read-only from then on. */
import { invalidInput } from '../errors.js';
import type { HomeItem } from './home.js';

/** Orders up to 800 candidates (newest first) for a reader; answers ids of them, the best first. */
export type RankHomes = (request: {
  readonly reader: string;
  readonly candidates: readonly HomeItem[];
}) => readonly string[] | Promise<readonly string[]>;

export interface FeedOptions {
  /** hybrid (default): push below the threshold, pull from it on; push: always; pull: no timelines at all. */
  readonly fanOut: 'hybrid' | 'push' | 'pull';
  /**
   * From `pullFrom` followers on (default 10,000) an author's posts are merged at read; below `pushBelow` (8,000) they are
   * pushed again. The gap keeps an author at the border from switching to and fro.
   */
  readonly threshold: { readonly pullFrom: number; readonly pushBelow: number };
  /** Readers who follow more than this many accounts get no timeline; their home is pulled. Default 2,000. */
  readonly followeesMax: number;
  /** Entries a timeline keeps, default 800; it is trimmed when `slack` (64) over, so that one trim serves many entries. */
  readonly timeline: { readonly entriesMax: number; readonly slack: number };
  /** Readers unseen for this long get no entries; at least two days. Default 30 days. */
  readonly activeMs: number;
  /** Followers a batch of a fan-out writes at once, default 5,000: smaller ones cost a third on Postgres. */
  readonly batchSize: number;
  /** Newest posts of a followee put into the timeline by the follow itself. Default 20. */
  readonly backfillAtOnce: number;
  /** A fan-out older than this is merged at read. Default 5,000 ms: what a post is promised to take. */
  readonly lagMaxMs: number;
  /** Rows that bounded steps of import, erasure and clean-up touch at most. Default 5,000. */
  readonly stepRowsMax: number;
  /** How long a ranking may be paged through (default 10 minutes) and how many a reader may hold (default 5). */
  readonly ranking: { readonly keptMs: number; readonly perReaderMax: number };
  /** How long rows of deleted posts are kept before vacuum takes them. Default 7 days. */
  readonly deletedKeptMs: number;
  /** The ranking hook of ranked homes; none by default. */
  readonly rank: RankHomes | undefined;
}

export type FeedOptionsInput = {
  readonly [Name in keyof FeedOptions]?: FeedOptions[Name] extends infer Value
    ? Value extends readonly unknown[] | ((...input: never[]) => unknown) | string | number | undefined
      ? Value
      : Partial<Value>
    : never;
};

const dayMs = 86_400_000;

export const feedDefaults: FeedOptions = {
  fanOut: 'hybrid',
  threshold: { pullFrom: 10_000, pushBelow: 8_000 },
  followeesMax: 2_000,
  timeline: { entriesMax: 800, slack: 64 },
  activeMs: 30 * dayMs,
  batchSize: 5_000,
  backfillAtOnce: 20,
  lagMaxMs: 5_000,
  stepRowsMax: 5_000,
  ranking: { keptMs: 600_000, perReaderMax: 5 },
  deletedKeptMs: 7 * dayMs,
  rank: undefined,
};

/** Fills in defaults; throws `invalid-input` naming the option, its value and what was expected. */
export function parseFeedOptions(input: FeedOptionsInput = {}): FeedOptions {
  const options: FeedOptions = {
    ...feedDefaults,
    ...withoutUndefined(input),
    threshold: { ...feedDefaults.threshold, ...input.threshold },
    timeline: { ...feedDefaults.timeline, ...input.timeline },
    ranking: { ...feedDefaults.ranking, ...input.ranking },
  };
  for (const name of Object.keys(input)) {
    if (!(name in feedDefaults))
      throw invalidInput(name, input, `one of ${Object.keys(feedDefaults).join(', ')}`);
  }
  if (!['hybrid', 'push', 'pull'].includes(options.fanOut)) {
    throw invalidInput('fanOut', options.fanOut, 'hybrid, push or pull');
  }
  integer('threshold.pullFrom', options.threshold.pullFrom, 1, 1_000_000_000);
  integer('threshold.pushBelow', options.threshold.pushBelow, 0, options.threshold.pullFrom);
  integer('followeesMax', options.followeesMax, 1, 100_000);
  integer('timeline.entriesMax', options.timeline.entriesMax, 1, 100_000);
  integer('timeline.slack', options.timeline.slack, 0, 100_000);
  integer('activeMs', options.activeMs, 2 * dayMs, 36_500 * dayMs);
  integer('batchSize', options.batchSize, 1, 10_000);
  integer('backfillAtOnce', options.backfillAtOnce, 0, 1_000);
  integer('lagMaxMs', options.lagMaxMs, 0, dayMs);
  integer('stepRowsMax', options.stepRowsMax, 1, 10_000);
  integer('ranking.keptMs', options.ranking.keptMs, 1_000, dayMs);
  integer('ranking.perReaderMax', options.ranking.perReaderMax, 1, 100);
  integer('deletedKeptMs', options.deletedKeptMs, 0, 36_500 * dayMs);
  if (options.rank !== undefined && typeof options.rank !== 'function') {
    throw invalidInput('rank', options.rank, 'a function');
  }
  return options;
}

function withoutUndefined(input: FeedOptionsInput): Partial<FeedOptions> {
  return Object.fromEntries(
    Object.entries(input).filter(([, value]) => value !== undefined),
  ) as Partial<FeedOptions>;
}

function integer(field: string, value: unknown, min: number, max: number): void {
  if (typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max) return;
  throw invalidInput(field, value, `a whole number from ${min} to ${max}`);
}
