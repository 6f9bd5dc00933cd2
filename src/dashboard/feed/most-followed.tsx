/** The most followed accounts, a page at a time: where a look at the feed is worth most. */
import { useState } from 'preact/hooks';
import { call } from '../api.js';
import { formatCount } from '../format.js';
import { EmptyNotice, LoadingNotice, ProblemNotice } from '../notice.js';
import { useResource } from '../resource.js';
import { formatRoute } from '../route.js';

interface AccountPage {
  readonly accounts: readonly { readonly id: string; readonly followers: number; readonly mode: string }[];
  readonly next?: string;
}

const perPage = '10';

export function MostFollowed() {
  const [after, setAfter] = useState<string | undefined>(undefined);
  const page = useResource<AccountPage>(`followed ${after ?? ''}`, (signal) =>
    call('/v1/accounts', { query: { order: 'followers', limit: perPage, after }, signal }),
  );
  return (
    <section aria-labelledby="feed-followed">
      <h2 id="feed-followed">Most followed</h2>
      {page.problem !== undefined && (
        <ProblemNotice problem={page.problem} onRetry={() => void page.reload()} />
      )}
      {page.value === undefined ? (
        page.loading && <LoadingNotice what="the accounts" />
      ) : (
        <>
          <Accounts accounts={page.value.accounts} />
          <div class="paging">
            {after !== undefined && (
              <button type="button" onClick={() => setAfter(undefined)}>
                Most followed again
              </button>
            )}
            {page.value.next !== undefined && (
              <button type="button" onClick={() => setAfter(page.value?.next)}>
                Fewer followers
              </button>
            )}
          </div>
        </>
      )}
    </section>
  );
}

function Accounts({ accounts }: Pick<AccountPage, 'accounts'>) {
  if (accounts.length === 0) return <EmptyNotice title="Nobody has a follower." />;
  return (
    <div class="table-frame" role="region" aria-label="Most followed accounts, scrolls sideways" tabIndex={0}>
      <table>
        <thead>
          <tr>
            <th scope="col">Account</th>
            <th scope="col" class="number">
              Followers
            </th>
            <th scope="col">Its posts are</th>
          </tr>
        </thead>
        <tbody>
          {accounts.map(({ id, followers, mode }) => (
            <tr key={id}>
              <th scope="row">
                <a href={formatRoute({ page: 'home', account: id, cursor: undefined })}>{id}</a>
              </th>
              <td class="number">{formatCount(followers)}</td>
              <td>{mode === 'pull' ? 'pulled at read' : 'pushed to timelines'}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
