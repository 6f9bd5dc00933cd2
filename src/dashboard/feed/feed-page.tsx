/** Where the feed begins: pick the reader whose home to look at, by id or from those who posted lately. */
import { call } from '../api.js';
import type { Post, PostPage } from '../api-types.js';
import { formatAgo, formatCount } from '../format.js';
import { EmptyNotice, LoadingNotice, ProblemNotice } from '../notice.js';
import { useResource } from '../resource.js';
import { formatRoute } from '../route.js';
import { MostFollowed } from './most-followed.js';
import { ReaderPicker } from './reader-picker.js';

/** As many as the API gives in one page. */
const postsRead = '100';

export function FeedPage() {
  const posts = useResource<PostPage>('posts', (signal) =>
    call('/v1/posts', { query: { limit: postsRead }, signal }),
  );
  return (
    <>
      <h1 tabIndex={-1}>Feed</h1>
      <p class="prose">
        Pick a reader to see their home as they see it, with the reason why each post is there, and to post,
        follow, mute and block as them.
      </p>
      <ReaderPicker />
      <MostFollowed />
      <section aria-labelledby="feed-authors">
        <h2 id="feed-authors">Posted lately</h2>
        {posts.problem !== undefined && (
          <ProblemNotice problem={posts.problem} onRetry={() => void posts.reload()} />
        )}
        {posts.value === undefined ? (
          posts.loading && <LoadingNotice what="the newest posts" />
        ) : (
          <Authors posts={posts.value.posts} />
        )}
      </section>
    </>
  );
}

function Authors({ posts }: { readonly posts: readonly Post[] }) {
  if (posts.length === 0) {
    return (
      <EmptyNotice title="Nobody has posted yet.">
        An account is made by PUT /v1/accounts/ID, a post by POST /v1/posts.
      </EmptyNotice>
    );
  }
  const nowMs = Date.now();
  return (
    <div class="table-frame" role="region" aria-label="Authors, scrolls sideways" tabIndex={0}>
      <table>
        <thead>
          <tr>
            <th scope="col">Account</th>
            <th scope="col">Last post</th>
            <th scope="col" class="number">
              Of the last {formatCount(posts.length)}
            </th>
            <th scope="col">Its posts are</th>
          </tr>
        </thead>
        <tbody>
          {byAuthor(posts).map(({ newest, count }) => (
            <tr key={newest.author}>
              <th scope="row">
                <a href={formatRoute({ page: 'home', account: newest.author, cursor: undefined })}>
                  {newest.author}
                </a>
              </th>
              <td>{formatAgo(newest.createdAt, nowMs)}</td>
              <td class="number">{formatCount(count)}</td>
              <td>{newest.mode === 'pull' ? 'pulled at read' : 'pushed to timelines'}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface Author {
  readonly newest: Post;
  readonly count: number;
}

/** Newest first, as the posts are. */
function byAuthor(posts: readonly Post[]): readonly Author[] {
  const authors = new Map<string, Author>();
  for (const post of posts) {
    const known = authors.get(post.author);
    authors.set(post.author, { newest: known?.newest ?? post, count: (known?.count ?? 0) + 1 });
  }
  return [...authors.values()];
}
