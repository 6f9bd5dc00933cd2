/** Where the feed begins: pick the reader whose home to look at, by id or from the most followed accounts. */
import { call } from '../api.js';
import type { AccountPage } from '../api-types.js';
import { formatCount } from '../format.js';
import { EmptyNotice, LoadingNotice, ProblemNotice } from '../notice.js';
import { useResource } from '../resource.js';
import { formatRoute } from '../route.js';
import { ReaderPicker } from './reader-picker.js';

const accountsShown = '25';

export function FeedPage() {
  const accounts = useResource<AccountPage>('accounts', (signal) =>
    call('/v1/accounts', { query: { order: 'followers', limit: accountsShown }, signal }),
  );
  return (
    <>
      <h1 tabIndex={-1}>Feed</h1>
      <p class="prose">
        Pick a reader to see their home as they see it, with the reason why each post is there, and to post,
        follow, mute and block as them.
      </p>
      <ReaderPicker />
      <section aria-labelledby="feed-accounts">
        <h2 id="feed-accounts">Most followed</h2>
        {accounts.problem !== undefined && (
          <ProblemNotice problem={accounts.problem} onRetry={() => void accounts.reload()} />
        )}
        {accounts.value === undefined ? (
          accounts.loading && <LoadingNotice what="accounts" />
        ) : (
          <Accounts page={accounts.value} />
        )}
      </section>
    </>
  );
}

function Accounts({ page }: { readonly page: AccountPage }) {
  if (page.accounts.length === 0) {
    return (
      <EmptyNotice title="No account yet.">
        The demo world makes some while it loads; your program makes them by PUT /v1/accounts/ID.
      </EmptyNotice>
    );
  }
  return (
    <div class="table-frame" role="region" aria-label="Accounts, scrolls sideways" tabIndex={0}>
      <table class="narrow">
        <thead>
          <tr>
            <th scope="col">Account</th>
            <th scope="col" class="number">
              Followers
            </th>
            <th scope="col" class="number">
              Follows
            </th>
            <th scope="col">Its posts are</th>
          </tr>
        </thead>
        <tbody>
          {page.accounts.map((account) => (
            <tr key={account.id}>
              <th scope="row">
                <a href={formatRoute({ page: 'home', account: account.id, cursor: undefined })}>
                  {account.id}
                </a>
              </th>
              <td class="number">{formatCount(account.followers)}</td>
              <td class="number">{formatCount(account.followees)}</td>
              <td>{account.mode === 'pull' ? 'pulled at read' : 'pushed to timelines'}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
