/**
 * The second half of the feed's port (see store.ts): fan-out, timelines, reading homes and operating. What is derived from
 * accounts, graph and posts, and what brings it about.
 */
import type { Queryable } from '../database/index.js';
import type { HomeItem } from './home.js';
import type { FanOutLane, FanOutProgress, FeedStats, MostFollowed, VerifyReport } from './operate.js';
import type { AccountNumber, Now, ReaderState } from './store.js';
import type { ListBounds } from './timeline-lists.js';

/** Followers with numbers in (from, until]. */
export interface FollowerRange {
  readonly from: AccountNumber;
  readonly until: AccountNumber;
}

export interface BatchWritten {
  /** Entries that were not there before. */
  readonly written: number;
  /** Buckets (number of the reader modulo 64), those of the readers who got one among them; undefined: any. */
  readonly buckets: readonly number[] | undefined;
  /** False: the batch had been done before, or the fan-out has ended. */
  readonly live: boolean;
  /** Set when this was the last batch: milliseconds since the publish. */
  readonly endedAfterMs: number | undefined;
  readonly lane: FanOutLane | undefined;
}

export interface OpenFanOut {
  readonly post: string;
  readonly author: AccountNumber;
  readonly lane: FanOutLane;
  /** Unix milliseconds of the publish, whatever time the post itself has. */
  readonly publishedAt: number;
  /** Undefined: not split. */
  readonly batches: readonly number[] | undefined;
}

export interface FanOutStore {
  /** A fan-out that has not ended, with the numbers of the batches that are left if they are stored. */
  fanOut(on: Queryable, post: string): Promise<OpenFanOut | undefined>;
  /** The number of the follower that ends a batch beginning after `from`; undefined: the last batch. */
  batchEnd(
    on: Queryable,
    input: { author: AccountNumber; from: AccountNumber; size: number },
  ): Promise<AccountNumber | undefined>;
  /** Stores the ranges of a fan-out that has none; false: it has some, or has ended. */
  storeRanges(on: Queryable, input: { post: string; ranges: readonly FollowerRange[] }): Promise<boolean>;
  /** All followers at once, and the end of the fan-out. */
  writeAll(
    on: Queryable,
    input: { post: string; activeMs: number; entries: boolean; timeline: ListBounds; now: Now },
  ): Promise<BatchWritten>;
  /** One stored range, with the end of the fan-out if it was the last. */
  writeBatch(
    on: Queryable,
    input: {
      post: string;
      batch: number;
      activeMs: number;
      entries: boolean;
      timeline: ListBounds;
      now: Now;
    },
  ): Promise<BatchWritten>;
  overdueFanOuts(
    on: Queryable,
    input: { olderThanMs: number; limit: number; now: Now },
  ): Promise<OpenFanOut[]>;
  /** Ends a fan-out that will not be completed: the author's posts up to now are merged at read. */
  failFanOut(on: Queryable, input: { post: string; now: Now }): Promise<boolean>;
  fanOutProgress(on: Queryable, input: { post: string; now: Now }): Promise<FanOutProgress | undefined>;
  /** Age in seconds of the oldest unfinished fan-out, by lane. */
  fanOutLag(on: Queryable, input: { now: Now }): Promise<Readonly<Record<FanOutLane, number>>>;
}

export interface TimelineStore {
  /** Newest posts of a followee into the reader's timeline, above its floor. */
  insertNewest(
    on: Queryable,
    input: { reader: AccountNumber; author: AccountNumber; limit: number },
  ): Promise<number>;
  /** The rest of a followee's posts down to the floor; the follow is pending no longer. Reader locked. */
  backfill(
    on: Queryable,
    input: { reader: AccountNumber; author: AccountNumber; entriesMax: number; activeMs: number; now: Now },
  ): Promise<number>;
  /** Entries of an author who is not followed any more. Reader locked. */
  forgetAuthor(on: Queryable, input: { reader: AccountNumber; author: AccountNumber }): Promise<number>;
  /** Takes the timeline away; the next read is served by pull. Reader locked. */
  dropTimeline(
    on: Queryable,
    input: { reader: AccountNumber; state: Exclude<ReaderState, 'live' | 'building'> },
  ): Promise<void>;
  /** An empty timeline that takes entries from now on; answers its token. Reader locked. */
  beginBuild(on: Queryable, input: { reader: AccountNumber; now: Now }): Promise<string>;
  /** Fills it; undefined when another build has begun since. Reader locked. */
  finishBuild(
    on: Queryable,
    input: { reader: AccountNumber; token: string; entriesMax: number; activeMs: number; now: Now },
  ): Promise<number | undefined>;
  /** Whether a read would use the timeline, and what stands in the way. */
  readerState(
    on: Queryable,
    input: { reader: AccountNumber; activeMs: number; now: Now },
  ): Promise<{ state: ReaderState; usable: boolean } | undefined>;
  touchReader(on: Queryable, input: { reader: AccountNumber; activeMs: number; now: Now }): Promise<void>;
  /** Trims timelines after `position`, a bounded number; answers where it stopped, undefined at the end. */
  trimStep(
    on: Queryable,
    input: { position: string; entriesMax: number; slack: number },
  ): Promise<{ position: string | undefined; trimmed: number }>;
}

export interface HomePage {
  readonly reader: AccountNumber;
  readonly items: readonly (HomeItem & { readonly position: string })[];
  readonly timeline: ReaderState;
  readonly usable: boolean;
  readonly floor: string;
  readonly seenAt: number;
  readonly readAt: number;
  readonly pulledAuthors: number;
  readonly candidates: number;
  readonly rounds: number;
  readonly exhausted: boolean;
  readonly lastPosition: string;
  /** A new list of the merged authors that the reader follows would spare its reads something. */
  readonly mergedListIsOld: boolean;
}

export interface HomeStore {
  /** Visible entries beyond `position`, nearest first; up to `limit` + 1 or more. Undefined: unknown account. */
  homePage(
    on: Queryable,
    input: {
      reader: string;
      position: string;
      older: boolean;
      limit: number;
      lagMaxMs: number;
      activeMs: number;
      now: Now;
    },
  ): Promise<HomePage | undefined>;
  /** Those of `positions` that the reader may still see, in their order. */
  visibleEntries(
    on: Queryable,
    input: { reader: string; positions: readonly string[] },
  ): Promise<(HomeItem & { readonly position: string })[]>;
  storeRanking(
    on: Queryable,
    input: { reader: string; positions: readonly string[]; perReaderMax: number; now: Now },
  ): Promise<string>;
  ranking(
    on: Queryable,
    input: { reader: string; number: string; keptMs: number; now: Now },
  ): Promise<string[] | undefined>;
}

export interface OperateStore {
  /** Bytes that the timelines take; an estimate where they are kept outside. */
  timelineBytes(on: Queryable): Promise<number>;
  stats(on: Queryable, input: { now: Now }): Promise<Omit<FeedStats, 'threshold'>>;
  mostFollowed(
    on: Queryable,
    input: { limit: number; after: { followers: number; id: string } | undefined },
  ): Promise<MostFollowed['accounts'][number][]>;
  verify(
    on: Queryable,
    input: { reader: string; activeMs: number; now: Now },
  ): Promise<VerifyReport | undefined>;
  /** One step of taking out what nobody needs; answers what it took, all zero when nothing is left. */
  vacuumStep(
    on: Queryable,
    input: {
      position: string;
      activeMs: number;
      deletedKeptMs: number;
      rankingKeptMs: number;
      rowsMax: number;
      now: Now;
    },
  ): Promise<{ position: string | undefined; timelines: number; entries: number; rows: number }>;
  progress(on: Queryable, name: string): Promise<string>;
  setProgress(on: Queryable, input: { name: string; position: string }): Promise<void>;
  /** Lets the planner know the tables after much has been loaded. */
  analyze(on: Queryable): Promise<void>;
}
