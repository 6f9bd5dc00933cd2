/**
 * What the HTTP API answers, as far as the pages read it. The server's OpenAPI document is the contract; these types
 * name the part of it that is used here. Times are unix milliseconds of the server, ids are strings.
 */
import type { NotifyTotals } from './notify/types.js';
import type { MessageState } from './route.js';

export interface QueueTotals {
  readonly queue: string;
  readonly invisible: number;
  readonly pending: number;
  readonly running: number;
  /** Age of the oldest pending message. */
  readonly lagSeconds: number;
  readonly enqueuedTotal: number;
  readonly completedTotal: number;
  readonly failedTotal: number;
  /** Counted up to 100. */
  readonly errored: number;
}

export interface FeedTotals {
  readonly postsTotal: number;
  readonly entriesWrittenTotal: number;
  readonly fanOutEntriesTotal: number;
  readonly homeReadsTotal: number;
  readonly homeCompleteTotal: number;
  readonly pulledAuthorsTotal: number;
  readonly candidatesTotal: number;
  readonly rebuildsTotal: number;
  /** 0: this server process does not know, for it runs no workers. */
  readonly timelineBytes: number;
  /** Age of the oldest post that has not reached all its followers. */
  readonly lagSeconds: { readonly small: number; readonly big: number };
}

export interface Overview {
  readonly now: number;
  readonly uptimeMs: number;
  readonly demo: DemoProgress | null;
  readonly durability: string;
  /** Null while the server is starting. Totals count since the start of the process. */
  readonly queues: readonly QueueTotals[] | null;
  readonly feed: FeedTotals | null;
  readonly notify: NotifyTotals | null;
}

export interface RunningOverview extends Overview {
  readonly queues: readonly QueueTotals[];
  readonly feed: FeedTotals;
  readonly notify: NotifyTotals;
}

/** What `/ready` answers, with 200 and with 503 alike. */
export interface Readiness {
  readonly ready: boolean;
  readonly stage: string;
  readonly progress?: { readonly stage: string; readonly done: number; readonly total: number };
}

export interface DemoProgress {
  readonly loading: boolean;
  readonly stage: string;
  readonly done: number;
  readonly total: number;
}

export interface Depth {
  readonly invisible: number;
  readonly pending: number;
  readonly running: number;
  /** False when several pairs were counted in steps. */
  readonly exact: boolean;
  readonly asOf: number;
}

export interface QueueConfiguration {
  readonly type: { readonly kind: 'simple' } | { readonly kind: 'exclusive'; readonly key: string };
  readonly leaseMs: number;
  readonly delayMs: number;
  readonly attemptsMax: number;
  readonly enqueueBlocked: boolean;
  readonly dequeueBlocked: boolean;
}

export interface QueueDetail {
  readonly queue: string;
  readonly configuration: QueueConfiguration;
}

/** A message that comes at each tick of a cron expression. */
export interface Recurring {
  readonly name: string;
  readonly queue: string;
  readonly cron: string;
  /** IANA name. */
  readonly timeZone: string;
  /** The tick that has not been enqueued yet. */
  readonly next: number;
}

export interface Message {
  readonly id: string;
  readonly payload: unknown;
  readonly metadata: Readonly<Record<string, string>>;
  readonly priority: number;
  readonly state: MessageState;
  readonly attempts: number;
  readonly attemptsMax: number;
  readonly visibleAt: number;
  readonly leaseUntil?: number;
  readonly version: number;
  readonly enqueuedAt: number;
  readonly startedAt?: number;
  readonly finishedAt?: number;
  readonly result?: unknown;
  readonly error?: string;
}

export interface MessagePage {
  readonly messages: readonly Message[];
  readonly next?: string;
}

/** One change of a message; `version` orders them and shows gaps. */
export interface HistoryEvent {
  readonly version: number;
  readonly from?: string;
  readonly to: string;
  readonly at: number;
  readonly attempt?: number;
}

export interface History {
  readonly events: readonly HistoryEvent[];
}

export interface Account {
  readonly id: string;
  readonly createdAt: number;
  readonly approvesFollowers: boolean;
  readonly followers: number;
  readonly followees: number;
  /** Whether its posts are written into timelines (push) or merged when a follower reads (pull). */
  readonly mode: AuthorMode;
}

export type AuthorMode = 'push' | 'pull';

/** Followers, followees, blocks or mutes of an account. */
export interface RelationPage {
  readonly accounts: readonly { readonly id: string; readonly since: number }[];
  readonly next?: string;
}

export interface Post {
  readonly id: string;
  readonly author: string;
  readonly text?: string;
  readonly data?: unknown;
  readonly visibility: 'public' | 'followers';
  readonly createdAt: number;
  readonly editedAt?: number;
  /** The mode it was published under. */
  readonly mode: AuthorMode;
  /** True when every follower's timeline has it, or none is going to. */
  readonly fanOutDone: boolean;
}

export interface PostPage {
  /** Newest first. */
  readonly posts: readonly Post[];
}

export type EntrySource = 'own' | 'pushed' | 'pulled' | 'overdue' | 'store';

export interface HomeItem extends Post {
  readonly why: {
    readonly source: EntrySource;
    /** The account whose post or repost brought it here. */
    readonly through: string;
    /** One sentence for people. */
    readonly text: string;
  };
  readonly repostedBy?: { readonly author: string };
}

export interface Home {
  /** Newest first in both directions. */
  readonly items: readonly HomeItem[];
  /** Absent when there is nothing older. */
  readonly next?: string;
  /** Leads to what is newer, now or later; absent for an empty home. */
  readonly previous?: string;
  readonly complete: boolean;
  readonly sources: HomeSources;
}

/** What was merged for a page of home. */
export interface HomeSources {
  readonly timeline: 'live' | 'none';
  readonly pulledAuthors: number;
  readonly candidates: number;
  readonly rounds: number;
}
