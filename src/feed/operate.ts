/** The shapes of what operators ask of the feed: statistics, verification, fan-out progress, vacuum. */
import type { AccountId, AuthorMode } from './account.js';

export interface FeedStats {
  readonly accounts: number;
  readonly follows: number;
  readonly posts: number;
  readonly liveTimelines: number;
  readonly timelineEntries: number;
  /** Followers an account, over accounts with at least one. */
  readonly followers: { readonly median: number; readonly p99: number; readonly max: number };
  /** Accounts in pull mode. */
  readonly pullAuthors: number;
  /** Unfinished fan-outs and the age of the oldest in seconds, by lane. */
  readonly fanOuts: Readonly<
    Record<FanOutLane, { readonly unfinished: number; readonly oldestSeconds: number }>
  >;
  readonly threshold: {
    readonly pullFrom: number;
    readonly pushBelow: number;
    readonly suggestedPullFrom: number;
  };
}

/** Accounts by their followers, most first; `after` is the `next` of the page before. */
export interface MostFollowedRequest {
  /** 1 to 100. Default: 20. */
  readonly limit?: number | undefined;
  readonly after?: string | undefined;
}

/** Follows of the last seconds may not be counted yet. */
export interface MostFollowed {
  readonly accounts: readonly {
    readonly id: AccountId;
    readonly followers: number;
    readonly mode: AuthorMode;
  }[];
  readonly next: string | undefined;
}

export type FanOutLane = 'small' | 'big';

export interface VerifyReport {
  readonly reader: AccountId;
  readonly timeline: 'live' | 'none';
  /** Post ids above the floor that should be in the timeline and are not, newest first. */
  readonly missing: readonly string[];
  /** Post ids in the timeline that home does not show (deleted, unfollowed, blocked, …); they are harmless. */
  readonly superfluous: readonly string[];
  readonly checked: number;
}

export interface VacuumOutcome {
  readonly timelinesDropped: number;
  readonly entriesDeleted: number;
  readonly rowsDeleted: number;
}

export interface FanOutProgress {
  readonly post: string;
  readonly author: AccountId;
  readonly mode: AuthorMode;
  readonly done: boolean;
  readonly lane: FanOutLane | undefined;
  readonly batches: number;
  readonly batchesDone: number;
  readonly ageSeconds: number;
}
