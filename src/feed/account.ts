/**
 * What an account is to the feed, and the shapes in which the graph between accounts is read and changed. The id is the
 * caller's own string; inside, an account is a compact number that never leaves the feed.
 */

/** Any string of 1 to 128 characters without NUL and without lone surrogates; compared exactly, never normalised. */
export type AccountId = string;

export interface Account {
  readonly id: AccountId;
  /** Unix milliseconds of the store's clock. */
  readonly createdAt: number;
  /** Followers of this account have to be approved by it. Default: false. */
  readonly approvesFollowers: boolean;
  readonly followers: number;
  readonly followees: number;
  /** How this account's posts reach its followers now. */
  readonly mode: AuthorMode;
}

/** push: written into followers' timelines; pull: merged when they read. */
export type AuthorMode = 'push' | 'pull';

/** One directed relation: who follows, and who is followed. */
export interface FollowPair {
  readonly follower: AccountId;
  readonly followee: AccountId;
}

export type FollowOutcome =
  /** `created: false`: it was followed already. */
  | { readonly kind: 'following'; readonly created: boolean }
  /** The followee approves its followers; the request waits. */
  | { readonly kind: 'requested'; readonly created: boolean }
  /** One of the two blocks the other; nothing changed. */
  | { readonly kind: 'blocked' };

/** The answer for one pair of `followMany`, in the order of the request. */
export type FollowManyOutcome =
  | FollowOutcome
  /** `code` is an error code of the feed: `follow-self`, `account-unknown`, `invalid-input`. */
  | { readonly kind: 'refused'; readonly code: string; readonly message: string };

export type FollowState =
  | { readonly kind: 'following'; readonly since: number }
  | { readonly kind: 'requested'; readonly since: number }
  | { readonly kind: 'none' };

export interface AccountListRequest {
  readonly account: AccountId;
  /** Cursor of the page before. */
  readonly after?: string | undefined;
  /** 1 to 1,000; default 100. */
  readonly limit?: number | undefined;
}

export interface AccountList {
  readonly accounts: readonly { readonly id: AccountId; readonly since: number }[];
  /** Absent at the end. */
  readonly next: string | undefined;
}

export interface ImportProgress {
  /** Pairs read so far, those skipped included. */
  readonly read: number;
  /** Follows that did not exist before. */
  readonly created: number;
  /** Follows that existed already, or stood twice in the stream. */
  readonly known: number;
  readonly selfFollows: number;
  /** Pairs of which one blocks the other. */
  readonly blocked: number;
  readonly accountsCreated: number;
}
