/**
 * Bulk import of posts as a stream: moderate transactions, memory for one batch, accounts made on the way. Every post
 * brings its key, so that importing the same again creates nothing.
 */
import { invalidInput, isHeadgateError } from '../errors.js';
import type { FeedContext } from './context.js';
import type { Feed } from './feed.js';
import type { PostImportProgress } from './post.js';
import { writePost } from './publish.js';
import { newPost, type ParsedPost } from './validate.js';

/** Posts of one transaction: two statements each, some 50 ms together on the embedded database. */
const postsPerBatch = 50;

type Mutable<T> = { -readonly [Name in keyof T]: T[Name] };

export function importPostsMethod(context: FeedContext): Feed['importPosts'] {
  return async (posts, { onProgress, signal } = {}) => {
    const progress: Mutable<PostImportProgress> = { read: 0, created: 0, known: 0, refused: 0 };
    let batch: ParsedPost[] = [];
    const flush = async () => {
      if (batch.length > 0) await writeBatch(context, batch, progress);
      batch = [];
      onProgress?.({ ...progress });
    };
    for await (const given of posts) {
      progress.read += 1;
      const post = newPost(given);
      if (post.key === null && post.repostOf === null) {
        throw invalidInput(
          `key of post ${progress.read}`,
          given.key,
          'a key: importing again must find the same post',
        );
      }
      batch.push(post);
      if (batch.length >= postsPerBatch) await flush();
      if (signal?.aborted) throw signal.reason;
    }
    await flush();
    return progress;
  };
}

async function writeBatch(
  context: FeedContext,
  posts: readonly ParsedPost[],
  progress: Mutable<PostImportProgress>,
): Promise<void> {
  const { database, store } = context;
  await store.createAccounts(database, { ids: posts.map(({ author }) => author), now: context.now() });
  const counts = await database.transaction(async (transaction) => {
    const counts = { created: 0, known: 0, refused: 0 };
    for (const post of posts) {
      try {
        const { created } = await writePost(context, transaction, post);
        counts[created ? 'created' : 'known'] += 1;
      } catch (error) {
        // Refused before anything was written: the transaction is whole.
        if (!isHeadgateError(error) || error.status >= 500) throw error;
        counts.refused += 1;
      }
    }
    return counts;
  });
  progress.created += counts.created;
  progress.known += counts.known;
  progress.refused += counts.refused;
  if (counts.created > 0) context.hints.published(undefined);
}
