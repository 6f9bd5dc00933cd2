/** Posts after their publish: read, changed, deleted, listed. */
import { invalidInput } from '../errors.js';
import type { FeedContext } from './context.js';
import { decodeCursor, encodeCursor } from './cursor.js';
import type { Feed } from './feed.js';
import { knownAccounts } from './manage-accounts.js';
import type { Post, PostList, PostListRequest } from './post.js';
import { asPost } from './publish.js';
import { accountId, pageLimit, postData, postId, postText } from './validate.js';

export function postMethods(
  context: FeedContext,
): Pick<Feed, 'getPost' | 'editPost' | 'deletePost' | 'accountPosts' | 'allPosts'> {
  const { database, store } = context;
  return {
    async getPost({ id, viewer, anyVisibility = false }) {
      const post = await store.post(database, postId('id', id));
      if (!post || post.deleted) return undefined;
      if (anyVisibility) return asPost(post);
      if (viewer === undefined) return post.visibility === 'public' ? asPost(post) : undefined;
      const seen = await store.maySee(database, { id: post.id, viewer: accountId('viewer', viewer) });
      return seen ? asPost(post) : undefined;
    },

    async editPost({ id, author, text, data }) {
      const change = {
        id: postId('id', id),
        text: typeof text === 'string' ? postText(text) : text,
        data: data === undefined || data === null ? data : postData(data),
      };
      if (change.text === undefined && change.data === undefined)
        throw invalidInput('text', text, 'text or data to change');
      const post = await store.post(database, change.id);
      if (!post || post.deleted) return { kind: 'unknown' };
      if (author !== undefined && accountId('author', author) !== post.author) return { kind: 'not-author' };
      if (post.repostOf !== undefined) throw invalidInput('id', id, 'a post that is not a repost');
      const edited = await store.updatePost(database, { ...change, now: context.now() });
      const now = await store.post(database, change.id);
      if (!now || now.deleted) return { kind: 'unknown' };
      if (!edited) throw invalidInput('text', text, 'text or data to remain');
      return { kind: 'edited', post: asPost(now) };
    },

    async deletePost({ id, author }) {
      const post = await store.post(database, postId('id', id));
      if (!post) return { kind: 'unknown' };
      if (author !== undefined && accountId('author', author) !== post.author) return { kind: 'not-author' };
      const existed = await store.deletePost(database, { id: post.id, now: context.now() });
      return { kind: 'deleted', existed };
    },

    async accountPosts({ account, viewer, ...request }) {
      const { limit, before } = parseList(request);
      await knownAccounts(context, { account: accountId('account', account) });
      const posts = await store.accountPosts(database, {
        account,
        viewer: viewer === undefined ? undefined : accountId('viewer', viewer),
        before,
        limit: limit + 1,
        lagMaxMs: context.options.lagMaxMs,
        now: context.now(),
      });
      return listOf(posts, limit);
    },

    async allPosts(request) {
      const { limit, before } = parseList(request);
      return listOf(await store.allPosts(database, { before, limit: limit + 1 }), limit);
    },
  };
}

function parseList(request: PostListRequest) {
  return {
    limit: pageLimit(request.limit, { fallback: 20, max: 100 }),
    before: request.after === undefined ? undefined : decodeCursor('posts', 'after', request.after),
  };
}

function listOf(found: readonly Post[], limit: number): PostList {
  const posts = found.slice(0, limit);
  const last = posts.at(-1);
  return { posts, next: found.length > limit && last ? encodeCursor('posts', last.id) : undefined };
}
