/**
 * The feed: accounts and who follows whom, posts, and the home of each reader. Home shows the newest visible posts of
 * everybody the reader follows and the reader's own, in order, each once; block, mute, unfollow, delete and own posts
 * hold from the next read.
 */
import type { Component } from '../lifecycle.js';
import type {
  Account,
  AccountId,
  AccountList,
  AccountListRequest,
  FollowManyOutcome,
  FollowOutcome,
  FollowPair,
  FollowState,
  ImportProgress,
} from './account.js';
import type { Home, HomeRequest, LiveHint } from './home.js';
import type {
  FanOutProgress,
  FeedStats,
  MostFollowed,
  MostFollowedRequest,
  VacuumOutcome,
  VerifyReport,
} from './operate.js';
import type {
  DeleteOutcome,
  EditOutcome,
  NewPost,
  Post,
  PostId,
  PostImportProgress,
  PostList,
  PostListRequest,
  PublishOutcome,
} from './post.js';

/** `blocker` blocks or unblocks `blocked`. */
export interface BlockPair {
  readonly blocker: AccountId;
  readonly blocked: AccountId;
}

/** `muter` mutes or unmutes `muted`. */
export interface MutePair {
  readonly muter: AccountId;
  readonly muted: AccountId;
}

/**
 * All methods refuse bad input by `invalid-input` and an account that does not exist by `account-unknown`; all that
 * change something may be called again with the same arguments and change nothing more.
 */
export interface Feed extends Component {
  /** Makes the account, or changes its settings. */
  putAccount(input: {
    readonly id: AccountId;
    readonly approvesFollowers?: boolean | undefined;
  }): Promise<{ readonly account: Account; readonly created: boolean }>;
  getAccount(id: AccountId): Promise<Account | undefined>;
  /** Hides the account and its posts from the next read on; the rows go in bounded steps on the clean-up lane. */
  eraseAccount(id: AccountId): Promise<{ readonly kind: 'erased' | 'unknown' }>;

  /** Throws `follow-self` for oneself. */
  follow(pair: FollowPair): Promise<FollowOutcome>;
  /** `keepHistory`: public posts up to now stay in the home. Default: false. Also withdraws a request. */
  unfollow(
    pair: FollowPair & { readonly keepHistory?: boolean | undefined },
  ): Promise<{ readonly kind: 'unfollowed'; readonly existed: boolean }>;
  /** Up to 1,000 pairs, answered each by itself and in order. */
  followMany(pairs: readonly FollowPair[]): Promise<FollowManyOutcome[]>;
  isFollowing(pair: FollowPair): Promise<boolean>;
  followState(pair: FollowPair): Promise<FollowState>;
  approveFollow(pair: FollowPair): Promise<{ readonly kind: 'following' | 'unknown' }>;
  rejectFollow(pair: FollowPair): Promise<{ readonly kind: 'rejected' | 'unknown' }>;

  /** Ends the follows and requests in both directions. Throws `block-self`. */
  block(pair: BlockPair): Promise<{ readonly kind: 'blocked'; readonly created: boolean }>;
  unblock(pair: BlockPair): Promise<{ readonly kind: 'unblocked'; readonly existed: boolean }>;
  isBlocking(pair: BlockPair): Promise<boolean>;
  mute(pair: MutePair): Promise<{ readonly kind: 'muted'; readonly created: boolean }>;
  unmute(pair: MutePair): Promise<{ readonly kind: 'unmuted'; readonly existed: boolean }>;
  isMuting(pair: MutePair): Promise<boolean>;

  followers(request: AccountListRequest): Promise<AccountList>;
  followees(request: AccountListRequest): Promise<AccountList>;
  blocks(request: AccountListRequest): Promise<AccountList>;
  mutes(request: AccountListRequest): Promise<AccountList>;
  /** Who waits to be approved by this account. */
  followRequests(request: AccountListRequest): Promise<AccountList>;

  /**
   * Reads pairs of [follower, followee] until they end, making the accounts on the way. Self-follows are skipped and
   * counted; importing the same again creates nothing. Other calls are answered in between. Memory is bounded.
   */
  importFollows(
    pairs: AsyncIterable<readonly [AccountId, AccountId]> | Iterable<readonly [AccountId, AccountId]>,
    options?: { readonly onProgress?: (progress: ImportProgress) => void; readonly signal?: AbortSignal },
  ): Promise<ImportProgress>;

  /** Writes the post, its fan-out and the author's own entry in one transaction. */
  publish(post: NewPost): Promise<PublishOutcome>;
  /**
   * Publishes posts of a stream, each with its key and as a rule its `createdAt`, making the accounts on the way. Importing
   * the same again creates nothing.
   */
  importPosts(
    posts: AsyncIterable<NewPost> | Iterable<NewPost>,
    options?: { readonly onProgress?: (progress: PostImportProgress) => void; readonly signal?: AbortSignal },
  ): Promise<PostImportProgress>;
  /** With `viewer`, undefined also when that account may not see it; without, only public posts are given. */
  getPost(request: {
    readonly id: PostId;
    readonly viewer?: AccountId | undefined;
    /** For administrators: whatever the visibility. Default: false. */
    readonly anyVisibility?: boolean | undefined;
  }): Promise<Post | undefined>;
  /** Changes the post only; `text: null` or `data: null` takes that part off. `author` is checked when given. */
  editPost(change: {
    readonly id: PostId;
    readonly author?: AccountId | undefined;
    readonly text?: string | null | undefined;
    readonly data?: NewPost['data'] | null;
  }): Promise<EditOutcome>;
  deletePost(request: {
    readonly id: PostId;
    readonly author?: AccountId | undefined;
  }): Promise<DeleteOutcome>;
  /**
   * Posts of one account, reposts included, newest first. Others than the author see a pushed post when it has reached
   * its followers, or when its fan-out is overdue. Without `viewer`: public ones.
   */
  accountPosts(
    request: PostListRequest & { readonly account: AccountId; readonly viewer?: AccountId | undefined },
  ): Promise<PostList>;
  /** All posts by time, for moderation. */
  allPosts(request: PostListRequest): Promise<PostList>;

  home(request: HomeRequest): Promise<Home>;
  /** Gives a hint whenever the home of `reader` may show something new, at most one a second, until `signal` fires. */
  live(request: { readonly reader: AccountId; readonly signal: AbortSignal }): AsyncIterable<LiveHint>;

  /** Where timelines are kept when not in the database, and whether that is away: homes are then read from the posts. */
  timelinesApart(): { readonly store: string; readonly away: boolean } | undefined;
  /** How the graph is shaped, and the threshold that this suggests. */
  stats(): Promise<FeedStats>;
  /** Accounts with at least one follower, the most followed first. Reads the counts of all of them: for operators. */
  mostFollowed(request?: MostFollowedRequest): Promise<MostFollowed>;
  /** Recomputes the reader's home from the graph and shows the difference; changes nothing. */
  verify(reader: AccountId): Promise<VerifyReport>;
  /** Drops the reader's timeline and builds it again from the posts. */
  rebuild(
    reader: AccountId,
  ): Promise<{ readonly kind: 'rebuilt' | 'pulled' | 'superseded'; readonly entries: number }>;
  /** Takes out timelines of inactive and erased readers, entries that nobody may see, and expired rows. */
  vacuum(): Promise<VacuumOutcome>;
  fanOutProgress(id: PostId): Promise<FanOutProgress | undefined>;
}
