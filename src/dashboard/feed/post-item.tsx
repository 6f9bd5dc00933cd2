/** One post in a home: who wrote it, when, why it stands here, and what the reader can do about it. */
import { ActionButton } from '../action-button.js';
import { apiPath, call, type ApiProblem } from '../api.js';
import type { EntrySource, HomeItem } from '../api-types.js';
import { formatAgo, formatTime } from '../format.js';
import { formatRoute } from '../route.js';

export const sourceLabels: Readonly<Record<EntrySource, string>> = {
  own: 'own',
  pushed: 'pushed',
  pulled: 'pulled',
  overdue: 'overdue',
  store: 'from the store',
};

export interface PostItemProps {
  readonly reader: string;
  readonly item: HomeItem;
  readonly nowMs: number;
  readonly onChange: () => Promise<void>;
  readonly onProblem: (problem: ApiProblem | undefined) => void;
}

export function PostItem({ reader, item, nowMs, onChange, onProblem }: PostItemProps) {
  return (
    <li>
      <article class="post" aria-label={`Post of ${item.author}`}>
        <header>
          <a class="author id" href={formatRoute({ page: 'home', account: item.author, cursor: undefined })}>
            {item.author}
          </a>
          {item.repostedBy !== undefined && <span class="muted">reposted by {item.repostedBy.author}</span>}
          <time dateTime={new Date(item.createdAt).toISOString()} title={formatTime(item.createdAt, nowMs)}>
            {formatAgo(item.createdAt, nowMs)}
          </time>
          {item.editedAt !== undefined && <span class="muted">edited</span>}
          {item.visibility === 'followers' && <span class="muted">followers only</span>}
        </header>
        {item.text !== undefined && <p class="post-text">{item.text}</p>}
        {item.data !== undefined && <pre>{JSON.stringify(item.data)}</pre>}
        <footer>
          <p class="post-why">
            <span class={`why why-${item.why.source}`}>{sourceLabels[item.why.source]}</span>{' '}
            <span class="muted">{item.why.text}</span>
          </p>
          <PostActions reader={reader} item={item} nowMs={nowMs} onChange={onChange} onProblem={onProblem} />
        </footer>
      </article>
    </li>
  );
}

function PostActions({ reader, item, onChange, onProblem }: PostItemProps) {
  const { author } = item;
  const act = async (method: 'PUT' | 'DELETE', path: string): Promise<void> => {
    await call(path, { method });
    await onChange();
  };
  if (author === reader) {
    return (
      <div class="actions quiet">
        <ActionButton
          label="Delete"
          name={`Delete post ${item.id}`}
          confirm="Delete for good?"
          done="The post is deleted"
          action={() => act('DELETE', apiPath('posts', item.id))}
          onProblem={onProblem}
        />
      </div>
    );
  }
  const relation = (kind: 'following' | 'mutes' | 'blocks'): string =>
    apiPath('accounts', reader, kind, author);
  return (
    <div class="actions quiet">
      <ActionButton
        label="Unfollow"
        name={`Unfollow ${author}`}
        done={`${author} is not followed any more`}
        action={() => act('DELETE', relation('following'))}
        onProblem={onProblem}
      />
      <ActionButton
        label="Mute"
        name={`Mute ${author}`}
        done={`${author} is muted`}
        action={() => act('PUT', relation('mutes'))}
        onProblem={onProblem}
      />
      <ActionButton
        label="Block"
        name={`Block ${author}`}
        confirm="Block? Ends follows both ways"
        done={`${author} is blocked`}
        action={() => act('PUT', relation('blocks'))}
        onProblem={onProblem}
      />
    </div>
  );
}
