/**
 * Publish: the post, its fan-out message and the author's own entry in one transaction, whatever the number of followers.
 * The same author and key again is the same post.
 */
import { randomInt } from 'node:crypto';
import type { Transaction } from '../database/index.js';
import type { FeedContext } from './context.js';
import { feedError } from './errors.js';
import type { Feed } from './feed.js';
import { accountUnknown } from './manage-accounts.js';
import type { FanOutLane } from './operate.js';
import type { Post } from './post.js';
import type { AuthorState, StoredPost } from './store.js';
import { newPost, type ParsedPost } from './validate.js';
import { fanOutMessage } from './work.js';

/**
 * An id that is taken is answered with the next one, then with random ones, because an import of many posts with one
 * time takes whole rows of ids. A million posts in one millisecond are needed to run out of them.
 */
const idAttemptsMax = 50;
const idAttemptsInOrder = 3;

export function publishMethod(context: FeedContext): Feed['publish'] {
  const { database, store } = context;
  return async (postGiven) => {
    const post = newPost(postGiven);
    const written = await database.transaction((transaction) => writePost(context, transaction, post));
    if (written.created) {
      context.metrics.add('headgate_feed_posts_total', { mode: written.mode });
      context.hints.published(written.mode === 'pull' ? undefined : written.author);
    }
    const stored = await store.post(database, written.id);
    if (!stored) throw accountUnknown('author', post.author);
    return { post: asPost(stored), created: written.created };
  };
}

export function asPost({ deleted: _, ...post }: StoredPost): Post {
  return post;
}

interface Written {
  readonly id: string;
  readonly author: string;
  readonly mode: AuthorState['mode'];
  readonly created: boolean;
}

/** The post and its work, inside a transaction; throws what is wrong with it before anything is written. */
export async function writePost(
  context: FeedContext,
  transaction: Transaction,
  post: ParsedPost,
): Promise<Written> {
  const { store, options } = context;
  const held = await store.holdAuthor(transaction, post.author);
  if (!held) throw accountUnknown('author', post.author);
  const author = options.fanOut === 'pull' ? { ...held, mode: 'pull' as const } : held;
  if (author.mode !== held.mode) await store.forcePull(transaction, author.account);

  const resolved =
    post.repostOf === null ? post : { ...post, repostOf: await original(context, transaction, post, author) };
  const lane: FanOutLane = author.followers > options.batchSize ? 'big' : 'small';
  for (let attempt = 0; attempt < idAttemptsMax; attempt += 1) {
    const known = { author: author.account, key: resolved.key, repostOf: resolved.repostOf };
    const id = await store.insertPost(transaction, {
      post: resolved,
      author,
      lane,
      sequence: attempt < idAttemptsInOrder ? undefined : randomInt(1_048_576),
      now: context.now(),
    });
    if (id !== undefined) {
      if (author.mode === 'push') await context.enqueue([fanOutMessage(id, lane)], transaction);
      return { id, author: author.account, mode: author.mode, created: true };
    }
    const existing = await store.existingPost(transaction, known);
    if (existing) return { id: existing.id, author: author.account, mode: existing.mode, created: false };
  }
  throw new Error(`no free post id in ${idAttemptsMax} attempts`);
}

async function original(
  { store }: FeedContext,
  transaction: Transaction,
  post: ParsedPost,
  author: AuthorState,
): Promise<string> {
  const asked = post.repostOf ?? '';
  const found = await store.repostable(transaction, { id: asked, author: author.account });
  const details = { field: 'repostOf', value: asked, ids: { post: asked } };
  if (found.kind === 'unknown')
    throw feedError('post-unknown', `repostOf: there is no post ${asked}`, details);
  if (found.kind === 'refused') {
    throw feedError('repost-refused', 'repostOf: only public posts and one’s own can be reposted', details);
  }
  return found.id;
}
