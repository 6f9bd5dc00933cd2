/**
 * The shapes of a home: what a reader asks, and what stands in the answer. How it is read is in read-home.ts.
 */
import type { AccountId } from './account.js';
import type { Post } from './post.js';

export interface HomeRequest {
  readonly reader: AccountId;
  /** 1 to 100; default 20. */
  readonly limit?: number | undefined;
  /** Towards older: the `next` of a page. */
  readonly after?: string | undefined;
  /** Towards newer: the `previous` of a page. Not together with `after`. */
  readonly before?: string | undefined;
  /** Asks the ranking hook of the options for the order. Default: false. */
  readonly ranked?: boolean | undefined;
}

/**
 * Where an entry came from: `own` post; `pushed` into the timeline; `pulled`: merged from the author at read;
 * `overdue`: its fan-out is late, so it was merged; `store`: past the timeline's end, or the reader has no timeline.
 */
export type EntrySource = 'own' | 'pushed' | 'pulled' | 'overdue' | 'store';

export interface EntryReason {
  readonly source: EntrySource;
  /** The account whose post or repost brought it here: the reader, or a followee. */
  readonly through: AccountId;
  /** In one sentence, for people. */
  readonly text: string;
}

/** A post in a home. With `repostedBy` it stands at the place of that repost. */
export interface HomeItem extends Post {
  readonly why: EntryReason;
  readonly repostedBy:
    | { readonly author: AccountId; readonly id: string; readonly createdAt: number }
    | undefined;
}

export interface Home {
  /** Newest first in both directions; full unless the end is reached. */
  readonly items: readonly HomeItem[];
  /** Absent only when there is nothing older. */
  readonly next: string | undefined;
  /** Leads to what is newer than this page, now or later; absent only for an empty home. */
  readonly previous: string | undefined;
  /** False only when a source could not be asked or a known hole could not be filled. */
  readonly complete: boolean;
  /** What was merged for this page. */
  readonly sources: HomeSources;
}

export interface HomeSources {
  /** none: the reader has no timeline now and was served by pull. */
  readonly timeline: 'live' | 'none';
  /** Nothing at or below this post id is known to be in the timeline; '0': everything is. */
  readonly floor: string | undefined;
  /** Authors merged at read. */
  readonly pulledAuthors: number;
  /** Candidates looked at to fill the page. */
  readonly candidates: number;
  /** Statements sent to fill the page. */
  readonly rounds: number;
}

/** Says that a home may have changed; the reader fetches it by `previous`. */
export interface LiveHint {
  readonly kind: 'posts' | 'lagged';
  /** Newest visible post of the home. */
  readonly newest: string | undefined;
}
