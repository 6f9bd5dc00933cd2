/**
 * The port of the feed: what a store of accounts, graph, posts and timelines does. Inputs have been checked; the caller
 * opens transactions and hands them in, so that the queue's messages commit with the rows. Invariants: whoever changes
 * what a reader follows, or the reader's timeline as a whole, has locked the reader before (`lockReaders`) and acts in a
 * later statement; whoever writes a row that names accounts holds these against the last steps of an erasure until the
 * commit, and writes nothing for one that is gone; entries at or below a timeline's floor are never read; a batch written
 * twice changes nothing.
 *
 * `now` is filled by tests only (see clock.ts); otherwise the store's own clock decides.
 */
import type { Queryable } from '../database/index.js';
import type { Component } from '../lifecycle.js';
import type { Account, AuthorMode } from './account.js';
import type { FanOutLane } from './operate.js';
import type { Post } from './post.js';
import type { FanOutStore, HomeStore, OperateStore, TimelineStore } from './store-timelines.js';
import type { ApartTimelines } from './timeline-lists.js';
import type { ParsedPost } from './validate.js';

export type * from './store-timelines.js';
export type * from './timeline-lists.js';

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
  /**
   * One step of removing an erased account's rows; false when nothing is left and the account itself is gone. Waits for
   * those who hold the account, so that nothing comes after it.
   */
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
  /** `gone`: an account of the two is erased; nothing was written. */
  readonly kind: 'following' | 'requested' | 'blocked' | 'gone';
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
  /** Ends follows and requests both ways; answers whether the block is new, undefined when an account of the two is erased. */
  insertBlock(
    on: Queryable,
    input: { blocker: AccountNumber; blocked: AccountNumber; now: Now },
  ): Promise<boolean | undefined>;
  deleteBlock(on: Queryable, input: { blocker: AccountNumber; blocked: AccountNumber }): Promise<boolean>;
  isBlocking(on: Queryable, input: { blocker: AccountNumber; blocked: AccountNumber }): Promise<boolean>;
  /** Answers whether the mute is new, undefined when an account of the two is erased. */
  insertMute(
    on: Queryable,
    input: { muter: AccountNumber; muted: AccountNumber; now: Now },
  ): Promise<boolean | undefined>;
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
  /** Numbers authors that have come to be merged at read, a bounded number; answers how many. Runs in a transaction. */
  numberMerged(on: Queryable, input: { rowsMax: number }): Promise<number>;
  /** Lists the merged authors that a reader with a timeline follows, unless somebody holds the reader. Runs in a transaction. */
  listMergedFollowees(on: Queryable, input: { reader: AccountNumber }): Promise<void>;
}

export interface AuthorState {
  readonly account: AccountNumber;
  readonly mode: AuthorMode;
  readonly followers: number;
}

export type StoredPost = Post & { readonly deleted: boolean };

export interface PostStore {
  /** The author's mode, held against a switch and an erasure until the transaction ends; undefined for an unknown account. */
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
  /**
   * Set: timelines are outside the database. Then `writeBatch`, `backfill`, `forgetAuthor`, `finishBuild`, `trimStep` and
   * `vacuumStep` are called with no transaction open, and lock by themselves.
   */
  readonly apart?: ApartTimelines | undefined;
}
