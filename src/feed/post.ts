/**
 * What a post is, and the shapes in which posts are published, changed and listed. A post's id is 19 digits that sort
 * by time as strings and as numbers; it never passes through a JavaScript number.
 */
import type { JsonValue } from '../queue/index.js';
import type { AccountId, AuthorMode } from './account.js';

/** 19 decimal digits: the database's unix milliseconds << 20 | a cycling sequence of 20 bits. */
export type PostId = string;

export type Visibility = 'public' | 'followers';

export interface NewPost {
  readonly author: AccountId;
  /** The same author and key again is the same post. 1 to 128 characters. */
  readonly key?: string | undefined;
  /** Up to 10,000 characters; a post that is not a repost needs text or data. */
  readonly text?: string | undefined;
  /** Opaque to the feed; up to 32 KiB as JSON. */
  readonly data?: JsonValue | undefined;
  /** Default: public. */
  readonly visibility?: Visibility | undefined;
  /** A repost carries neither text nor data. Only public posts and one's own can be reposted; once an account. */
  readonly repostOf?: PostId | undefined;
  /** Unix milliseconds; for imports. In the future: clamped to now. Before 2000-03-22: the id is clamped to that day. */
  readonly createdAt?: number | undefined;
}

export interface Post {
  readonly id: PostId;
  readonly author: AccountId;
  readonly key: string | undefined;
  readonly text: string | undefined;
  readonly data: JsonValue | undefined;
  readonly visibility: Visibility;
  readonly repostOf: PostId | undefined;
  readonly createdAt: number;
  readonly editedAt: number | undefined;
  /** Whether it was written into timelines or is merged at read. */
  readonly mode: AuthorMode;
  /** True when every follower's timeline has it, or none is going to. */
  readonly fanOutDone: boolean;
}

export interface PublishOutcome {
  readonly post: Post;
  /** False: this author and key (or this author's repost) existed. */
  readonly created: boolean;
}

export type EditOutcome =
  | { readonly kind: 'edited'; readonly post: Post }
  | { readonly kind: 'unknown' }
  /** `author` was given and is another one. */
  | { readonly kind: 'not-author' };

export type DeleteOutcome =
  /** `existed: false`: it had been deleted before. */
  | { readonly kind: 'deleted'; readonly existed: boolean }
  | { readonly kind: 'unknown' }
  | { readonly kind: 'not-author' };

export interface PostListRequest {
  readonly after?: string | undefined;
  /** 1 to 100; default 20. */
  readonly limit?: number | undefined;
}

export interface PostList {
  /** Newest first. */
  readonly posts: readonly Post[];
  readonly next: string | undefined;
}

export interface PostImportProgress {
  /** Posts read so far. */
  readonly read: number;
  readonly created: number;
  /** Posts whose author and key (or repost) existed. */
  readonly known: number;
  /** Posts that could not be published, such as reposts of unknown posts. */
  readonly refused: number;
}
