/**
 * A reader's home, seen as the reader: every post with the reason why it is there, paged both ways by cursors that
 * stand in the address, and beside it what the reader can do: post, follow, mute, block.
 */
import { useEffect, useRef, useState } from 'preact/hooks';
import { apiPath, call } from '../api.js';
import type { Account, Home, Post } from '../api-types.js';
import { announce } from '../announce.js';
import { formatCount } from '../format.js';
import { goTo } from '../navigation.js';
import { LoadingNotice, ProblemNotice } from '../notice.js';
import { usePageTurn } from '../page-turn.js';
import { useResource } from '../resource.js';
import { formatRoute, type HomeCursor } from '../route.js';
import { openStream } from '../stream.js';
import { Composer } from './composer.js';
import { HomeList } from './home-list.js';
import { Published } from './published.js';
import { ReaderPicker } from './reader-picker.js';
import { Relations } from './relations.js';

const postsPerPage = '20';
const publishedShown = 3;

export interface HomePageProps {
  readonly account: string;
  readonly cursor: HomeCursor | undefined;
}

export function HomePage({ account, cursor }: HomePageProps) {
  const who = useResource<Account>(account, (signal) => call(apiPath('accounts', account), { signal }));
  return (
    <>
      <p class="crumb">
        <a href={formatRoute({ page: 'feed' })}>Feed</a>
      </p>
      <h1 tabIndex={-1} class="id">
        {account}
      </h1>
      {who.problem !== undefined && <ProblemNotice problem={who.problem} onRetry={() => void who.reload()} />}
      {who.value !== undefined ? (
        <>
          <AccountFacts account={who.value} />
          <Reading account={account} cursor={cursor} onChange={who.reload} />
        </>
      ) : who.loading ? (
        <LoadingNotice what="the account" />
      ) : (
        <ReaderPicker />
      )}
    </>
  );
}

/** Home and what stands beside it, of an account that exists. */
function Reading({ account, cursor, onChange }: HomePageProps & { readonly onChange: () => Promise<void> }) {
  const home = useResource<Home>(JSON.stringify([account, cursor]), (signal) =>
    call(apiPath('accounts', account, 'home'), {
      query: { limit: postsPerPage, ...(cursor === undefined ? {} : { [cursor.direction]: cursor.value }) },
      signal,
    }),
  );
  const [published, setPublished] = useState<readonly Post[]>([]);
  /** Counts the changes made here, so that the lists at the side are read again. */
  const [changes, setChanges] = useState(0);
  const news = useNews(account);
  const top = usePageTurn(JSON.stringify(cursor) ?? '');

  const showNewest = async (): Promise<void> => {
    news.clear();
    if (cursor === undefined) await home.reload();
    else goTo({ page: 'home', account, cursor: undefined });
  };
  const onPublished = async (post: Post): Promise<void> => {
    setPublished((before) => [post, ...before].slice(0, publishedShown));
    await showNewest();
  };
  const reloadAll = async (): Promise<void> => {
    setChanges((count) => count + 1);
    await Promise.all([home.reload(), onChange()]);
  };

  return (
    <div class="columns">
      <section aria-labelledby="home-posts" class="column-main">
        <h2 id="home-posts">Home</h2>
        <Composer author={account} onPublished={onPublished} />
        {published.map((post) => (
          <Published key={post.id} post={post} />
        ))}
        {news.isThere && (
          <button type="button" class="news" onClick={() => void showNewest()}>
            New posts are there. Show them
          </button>
        )}
        <div ref={top} tabIndex={-1} role="group" aria-label="Posts" class="list">
          {home.problem !== undefined && (
            <ProblemNotice problem={home.problem} onRetry={() => void home.reload()} />
          )}
          {home.value === undefined ? (
            home.loading && <LoadingNotice what="home" />
          ) : (
            <HomeList
              reader={account}
              cursor={cursor}
              home={home.value}
              onChange={reloadAll}
              onNewest={showNewest}
            />
          )}
        </div>
      </section>
      <Relations account={account} changes={changes} onChange={reloadAll} />
    </div>
  );
}

function AccountFacts({ account }: { readonly account: Account }) {
  return (
    <dl class="facts">
      <div>
        <dt>Followers</dt>
        <dd>{formatCount(account.followers)}</dd>
      </div>
      <div>
        <dt>Follows</dt>
        <dd>{formatCount(account.followees)}</dd>
      </div>
      <div>
        <dt>Its posts are</dt>
        <dd>
          {account.mode === 'pull'
            ? 'pulled: merged when a follower reads'
            : 'pushed: written into followers’ timelines'}
        </dd>
      </div>
    </dl>
  );
}

/** Listens to the reader's live stream; it only hints, so the page asks again instead of trusting it. */
function useNews(account: string): { readonly isThere: boolean; readonly clear: () => void } {
  const [isThere, setThere] = useState(false);
  const wasTold = useRef(false);
  wasTold.current = isThere;
  useEffect(() => {
    setThere(false);
    return openStream({
      path: `${apiPath('accounts', account)}/live`,
      event: 'changed',
      onEvent: () => {
        if (!wasTold.current) announce('New posts are there');
        setThere(true);
      },
    });
  }, [account]);
  return { isThere, clear: () => setThere(false) };
}
