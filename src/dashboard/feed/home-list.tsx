/** One page of home: what it was made of, the posts, and the way to older and newer ones. */
import { useState } from 'preact/hooks';
import type { ApiProblem } from '../api.js';
import type { EntrySource, Home } from '../api-types.js';
import { formatCount } from '../format.js';
import { EmptyNotice, ProblemNotice } from '../notice.js';
import { formatRoute, type HomeCursor } from '../route.js';
import { PostItem, sourceLabels } from './post-item.js';

export interface HomeListProps {
  readonly reader: string;
  readonly cursor: HomeCursor | undefined;
  readonly home: Home;
  readonly onChange: () => Promise<void>;
  readonly onNewest: () => Promise<void>;
}

export function HomeList({ reader, cursor, home, onChange, onNewest }: HomeListProps) {
  const [problem, setProblem] = useState<ApiProblem | undefined>(undefined);
  const nowMs = Date.now();
  return (
    <>
      <Paging reader={reader} cursor={cursor} home={home} onNewest={onNewest} place="above" />
      <Summary home={home} />
      {!home.complete && (
        <div class="notice notice-problem" role="alert">
          <p class="notice-title">This page is not complete.</p>
          <p>
            A source could not be asked, so posts may be missing. It says so instead of showing less without a
            word.
          </p>
        </div>
      )}
      {problem !== undefined && <ProblemNotice problem={problem} />}
      {home.items.length === 0 ? (
        <Empty cursor={cursor} />
      ) : (
        <ol class="posts" aria-label="Posts, newest first">
          {home.items.map((item) => (
            <PostItem
              key={item.id}
              reader={reader}
              item={item}
              nowMs={nowMs}
              onChange={onChange}
              onProblem={setProblem}
            />
          ))}
        </ol>
      )}
      {home.items.length > 0 && (
        <Paging reader={reader} cursor={cursor} home={home} onNewest={onNewest} place="below" />
      )}
    </>
  );
}

function Summary({ home }: { readonly home: Home }) {
  const counts = new Map<EntrySource, number>();
  for (const { why } of home.items) counts.set(why.source, (counts.get(why.source) ?? 0) + 1);
  const { timeline, pulledAuthors, candidates, rounds } = home.sources;
  return (
    <p class="summary">
      {[...counts].map(([source, count]) => (
        <span key={source} class={`why why-${source}`}>
          {count} {sourceLabels[source]}
        </span>
      ))}
      <span class="muted">
        {timeline === 'live' ? 'from a live timeline' : 'without a timeline'}, {formatCount(pulledAuthors)}{' '}
        {pulledAuthors === 1 ? 'author' : 'authors'} merged, {formatCount(candidates)}{' '}
        {candidates === 1 ? 'candidate' : 'candidates'} in {rounds}{' '}
        {rounds === 1 ? 'statement' : 'statements'}
      </span>
    </p>
  );
}

function Empty({ cursor }: { readonly cursor: HomeCursor | undefined }) {
  if (cursor?.direction === 'before') return <EmptyNotice title="Nothing newer yet." />;
  if (cursor?.direction === 'after') return <EmptyNotice title="Nothing older." />;
  return (
    <EmptyNotice title="This home is empty.">
      It fills with the reader’s own posts and those of everybody they follow.
    </EmptyNotice>
  );
}

function Paging(props: Omit<HomeListProps, 'onChange'> & { readonly place: 'above' | 'below' }) {
  const { reader, cursor, home, onNewest, place } = props;
  const to = (direction: HomeCursor['direction'], value: string): string =>
    formatRoute({ page: 'home', account: reader, cursor: { direction, value } });
  const isAtTop = cursor === undefined;
  return (
    <nav class="paging" aria-label={`Pages, ${place} the posts`}>
      <button type="button" onClick={() => void onNewest()}>
        {isAtTop ? 'Refresh' : 'Newest'}
      </button>
      {!isAtTop && home.previous !== undefined && (
        <a class="button" href={to('before', home.previous)}>
          Newer
        </a>
      )}
      {home.next !== undefined && (
        <a class="button" href={to('after', home.next)}>
          Older
        </a>
      )}
    </nav>
  );
}
