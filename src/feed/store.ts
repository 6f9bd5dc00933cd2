/**
 * The port of the feed: what a store of accounts, graph, posts and timelines does. Inputs have been checked; the caller
 * opens transactions and hands them in, so that the queue's messages commit with the rows. Invariants: whoever changes
 * what a reader follows, or the reader's timeline as a whole, has locked the reader before (`lockReaders`) and acts in a
 * later statement; entries at or below a timeline's floor are never read; a batch written twice changes nothing.
 *
 * `now` is filled by tests only (see clock.ts); otherwise the store's own clock decides.
 */
import type { Queryable } from '../database/index.js';
import type { Component } from '../lifecycle.js';
import type { Account, AuthorMode } from './account.js';
import type { HomeItem } from './home.js';
import type { FanOutLane, FanOutProgress, FeedStats, VerifyReport } from './operate.js';
import type { Post } from './post.js';
import type { ParsedPost } from './validate.js';

/** An account inside the store: decimal digits. */
export type AccountNumber = string;
export type Now = number | undefined;

export type ReaderState = 'none' | 'building' | 'live' | 'pull';

export interface KnownAccount {
  readonly id: string;
  readonly number: AccountNumber;
  readonly approvesFollowers: boolean;
}

export interface AccountStore {
  /** Makes accounts that do not exist; answers how many were made. */
  createAccounts(on: Queryable, input: { ids: readonly string[]; now: Now }): Promise<number>;
  setApproval(on: Queryable, input: { id: string; approvesFollowers: boolean }): Promise<void>;
  account(on: Queryable, id: string): Promise<Account | undefined>;
  /** Those of `ids` that exist and are not erased. */
  resolve(on: Queryable, ids: readonly string[]): Promise<Map<string, KnownAccount>>;
  /** Hides the account from every read; answers its number, or undefined when there is none. */
  markErased(on: Queryable, input: { id: string; now: Now }): Promise<AccountNumber | undefined>;
  /** One step of removing an erased account's rows; false when nothing is left and the account itself is gone. */
  eraseStep(on: Queryable, input: { account: AccountNumber; rowsMax: number; now: Now }): Promise<boolean>;
}

/** Lists of accounts in the order of their numbers: that in which they came to be. */
export type AccountListKind = 'followers' | 'followees' | 'blocks' | 'mutes' | 'requests';

export interface AccountListEntry {
  readonly id: string;
  readonly number: AccountNumber;
  readonly since: number;
}

export interface FollowWritten {
  readonly kind: 'following' | 'requested' | 'blocked';
  readonly created: boolean;
  /** Tells this follow from an earlier or later one of the pair; set when it was created. */
  readonly generation?: string | undefined;
}

export interface GraphStore {
  /** Locks readers in the order of their numbers; answers each one's state. */
  lockReaders(on: Queryable, accounts: readonly AccountNumber[]): Promise<Map<AccountNumber, ReaderState>>;
  /** `pending`: the reader has a timeline, which does not have this author's posts. */
  insertFollow(
    on: Queryable,
    input: { follower: AccountNumber; followee: AccountNumber; pending: boolean; now: Now },
  ): Promise<FollowWritten>;
  insertRequest(
    on: Queryable,
    input: { follower: AccountNumber; followee: AccountNumber; now: Now },
  ): Promise<FollowWritten>;
  /** Answers false when there was no request. */
  deleteRequest(on: Queryable, input: { follower: AccountNumber; followee: AccountNumber }): Promise<boolean>;
  /**
   * Also withdraws a request; answers whether either was there, and the generation of a follow whose history is kept. Its
   * author is merged at read until a backfill has run.
   */
  deleteFollow(
    on: Queryable,
    input: { follower: AccountNumber; followee: AccountNumber; keepHistory: boolean; now: Now },
  ): Promise<{ existed: boolean; kept: string | undefined }>;
  followState(
    on: Queryable,
    input: { follower: AccountNumber; followee: AccountNumber },
  ): Promise<{ kind: 'following' | 'requested'; since: number } | undefined>;
  /** Whether the account follows more than `max`. */
  followsMoreThan(on: Queryable, input: { account: AccountNumber; max: number }): Promise<boolean>;
  /** Ends follows and requests both ways; answers whether the block is new. */
  insertBlock(
    on: Queryable,
    input: { blocker: AccountNumber; blocked: AccountNumber; now: Now },
  ): Promise<boolean>;
  deleteBlock(on: Queryable, input: { blocker: AccountNumber; blocked: AccountNumber }): Promise<boolean>;
  isBlocking(on: Queryable, input: { blocker: AccountNumber; blocked: AccountNumber }): Promise<boolean>;
  insertMute(
    on: Queryable,
    input: { muter: AccountNumber; muted: AccountNumber; now: Now },
  ): Promise<boolean>;
  deleteMute(on: Queryable, input: { muter: AccountNumber; muted: AccountNumber }): Promise<boolean>;
  isMuting(on: Queryable, input: { muter: AccountNumber; muted: AccountNumber }): Promise<boolean>;
  listAccounts(
    on: Queryable,
    input: {
      kind: AccountListKind;
      account: AccountNumber;
      after: AccountNumber | undefined;
      limit: number;
    },
  ): Promise<AccountListEntry[]>;
  /** Makes the accounts that do not exist; answers the numbers of all but the erased ones. */
  accountNumbers(
    on: Queryable,
    input: { ids: readonly string[]; now: Now },
  ): Promise<{ numbers: Map<string, AccountNumber>; created: number }>;
  /**
   * Follows in bulk, no pair twice. Locks the readers, and takes their timelines from those that follow somebody new;
   * answers these.
   */
  importFollows(
    on: Queryable,
    input: { followers: readonly AccountNumber[]; followees: readonly AccountNumber[]; now: Now },
  ): Promise<{ created: number; blocked: number; dropped: AccountNumber[] }>;
  /** Adds up to `rowsMax` changes to follower counts; answers how many, and the authors whose mode should change. */
  foldFollowers(
    on: Queryable,
    input: { rowsMax: number; pullFrom: number; pushBelow: number },
  ): Promise<{ taken: number; crossed: AccountNumber[] }>;
  /** Authors whose mode should change, among a bounded number; answers where it stopped, undefined at the end. */
  authorsToSwitch(
    on: Queryable,
    input: { position: string; pullFrom: number; pushBelow: number; rowsMax: number },
  ): Promise<{ crossed: AccountNumber[]; position: string | undefined }>;
  /** Locks the author and changes the mode if that is still called for; answers the new mode. */
  switchMode(
    on: Queryable,
    input: { account: AccountNumber; pullFrom: number; pushBelow: number; now: Now },
  ): Promise<AuthorMode | undefined>;
}

export interface AuthorState {
  readonly account: AccountNumber;
  readonly mode: AuthorMode;
  readonly followers: number;
}

export type StoredPost = Post & { readonly deleted: boolean };

export interface PostStore {
  /** The author's mode, held against a switch until the transaction ends; undefined for an unknown account. */
  holdAuthor(on: Queryable, id: string): Promise<AuthorState | undefined>;
  /** Makes an author pull whatever the number of followers (`fanOut: 'pull'`). */
  forcePull(on: Queryable, account: AccountNumber): Promise<void>;
  /** The post that `author` may repost when asked for `id`: the original of a repost; undefined when refused. */
  repostable(
    on: Queryable,
    input: { id: string; author: AccountNumber },
  ): Promise<{ kind: 'original'; id: string } | { kind: 'unknown' } | { kind: 'refused' }>;
  /**
   * Post, own timeline entry and, in push mode, the record of the fan-out; undefined when it exists already or its id is
   * taken. `sequence` (0 to 1,048,575): the lower bits of the id in place of the next ones.
   */
  insertPost(
    on: Queryable,
    input: {
      post: ParsedPost;
      author: AuthorState;
      lane: FanOutLane;
      sequence?: number | undefined;
      now: Now;
    },
  ): Promise<string | undefined>;
  /** The post of this author with this key, or this author's repost. */
  existingPost(
    on: Queryable,
    input: { author: AccountNumber; key: string | null; repostOf: string | null },
  ): Promise<StoredPost | undefined>;
  post(on: Queryable, id: string): Promise<StoredPost | undefined>;
  /** Whether an account may see the post: its visibility, blocks both ways. */
  maySee(on: Queryable, input: { id: string; viewer: string }): Promise<boolean>;
  updatePost(
    on: Queryable,
    input: { id: string; text: string | null | undefined; data: string | null | undefined; now: Now },
  ): Promise<boolean>;
  /** False when it had been deleted. */
  deletePost(on: Queryable, input: { id: string; now: Now }): Promise<boolean>;
  accountPosts(
    on: Queryable,
    input: {
      account: string;
      viewer: string | undefined;
      before: string | undefined;
      limit: number;
      lagMaxMs: number;
      now: Now;
    },
  ): Promise<Post[]>;
  allPosts(on: Queryable, input: { before: string | undefined; limit: number }): Promise<Post[]>;
}

/** Followers with numbers in (from, until]. */
export interface FollowerRange {
  readonly from: AccountNumber;
  readonly until: AccountNumber;
}

export interface BatchWritten {
  /** Entries that were not there before. */
  readonly written: number;
  /** Buckets (number of the reader modulo 64) of the readers who got one; undefined: any. */
  readonly buckets: readonly number[] | undefined;
  /** False: the batch had been done before, or the fan-out has ended. */
  readonly live: boolean;
  /** Set when this was the last batch: milliseconds since the publish. */
  readonly endedAfterMs: number | undefined;
  readonly lane: FanOutLane | undefined;
}

export interface OverdueFanOut {
  readonly post: string;
  readonly author: AccountNumber;
  readonly lane: FanOutLane;
  /** Undefined: not split. */
  readonly batches: readonly number[] | undefined;
}

export interface FanOutStore {
  /** The author of a fan-out that has not ended, and the numbers of its batches if they are stored. */
  fanOut(
    on: Queryable,
    post: string,
  ): Promise<{ author: AccountNumber; lane: FanOutLane; batches: readonly number[] | undefined } | undefined>;
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
    input: { post: string; activeMs: number; entries: boolean; now: Now },
  ): Promise<BatchWritten>;
  /** One stored range. Runs in a transaction. */
  writeBatch(
    on: Queryable,
    input: { post: string; batch: number; activeMs: number; entries: boolean; now: Now },
  ): Promise<BatchWritten>;
  overdueFanOuts(
    on: Queryable,
    input: { olderThanMs: number; limit: number; now: Now },
  ): Promise<OverdueFanOut[]>;
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
    input: { reader: AccountNumber; author: AccountNumber; entriesMax: number },
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
    input: { reader: AccountNumber; token: string; entriesMax: number; now: Now },
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
  stats(on: Queryable, input: { now: Now }): Promise<Omit<FeedStats, 'threshold'>>;
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

export interface FeedStore
  extends Component,
    AccountStore,
    GraphStore,
    PostStore,
    FanOutStore,
    TimelineStore,
    HomeStore,
    OperateStore {
  readonly name: string;
}
