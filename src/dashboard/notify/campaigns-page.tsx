/** Campaigns, newest first, by state; each leads to its progress. */
import { call } from '../api.js';
import { formatAgo, formatCount } from '../format.js';
import { EmptyNotice, LoadingNotice, ProblemNotice } from '../notice.js';
import { usePageTurn } from '../page-turn.js';
import { useResource } from '../resource.js';
import { campaignStates, deliveriesRoute, formatRoute, type Route } from '../route.js';
import type { Campaign, CampaignListPage } from './types.js';

type CampaignsRoute = Extract<Route, { page: 'campaigns' }>;

const perPage = 50;

export function CampaignsPage(route: CampaignsRoute) {
  const { state, before } = route;
  const page = useResource<CampaignListPage>(JSON.stringify([state, before]), (signal) =>
    call('/v1/campaigns', { query: { state, before, limit: String(perPage) }, signal }),
  );
  const top = usePageTurn(before ?? '');
  return (
    <>
      <p class="crumb">
        <a href={formatRoute({ page: 'notify' })}>Notify</a>
      </p>
      <h1 tabIndex={-1}>Campaigns</h1>
      <StateTabs {...route} />
      <div ref={top} tabIndex={-1} role="group" aria-label="Campaigns" class="list">
        {page.problem !== undefined && (
          <ProblemNotice problem={page.problem} onRetry={() => void page.reload()} />
        )}
        {page.value === undefined ? (
          page.loading && <LoadingNotice what="campaigns" />
        ) : (
          <>
            {page.value.campaigns.length === 0 ? (
              <EmptyNotice title={state === undefined ? 'No campaign.' : `No campaign is ${state}.`}>
                {before === undefined
                  ? 'A campaign begins with headgate notify campaign start, or POST /v1/campaigns.'
                  : 'The list ends here.'}
              </EmptyNotice>
            ) : (
              <CampaignTable campaigns={page.value.campaigns} />
            )}
            <div class="paging">
              <button type="button" onClick={() => void page.reload()}>
                Refresh
              </button>
              {before !== undefined && (
                <a class="button" href={formatRoute({ ...route, before: undefined })}>
                  Newest
                </a>
              )}
              {page.value.next !== undefined && (
                <a class="button" href={formatRoute({ ...route, before: page.value.next })}>
                  Older
                </a>
              )}
            </div>
          </>
        )}
      </div>
    </>
  );
}

function StateTabs(route: CampaignsRoute) {
  return (
    <nav class="tabs" aria-label="Campaigns by state">
      <ul>
        {[undefined, ...campaignStates].map((state) => (
          <li key={state ?? 'all'}>
            <a
              href={formatRoute({ ...route, state, before: undefined })}
              aria-current={state === route.state ? 'true' : undefined}
            >
              {state ?? 'all'}
            </a>
          </li>
        ))}
      </ul>
    </nav>
  );
}

function CampaignTable({ campaigns }: { readonly campaigns: readonly Campaign[] }) {
  const nowMs = Date.now();
  return (
    <div class="table-frame" role="region" aria-label="Campaigns, scrolls sideways" tabIndex={0}>
      <table>
        <thead>
          <tr>
            <th scope="col">Campaign</th>
            <th scope="col">Kind</th>
            <th scope="col">State</th>
            <th scope="col" class="number">
              Recipients taken
            </th>
            <th scope="col">Begun</th>
          </tr>
        </thead>
        <tbody>
          {campaigns.map(({ id, kind, state, taken, createdAt }) => (
            <tr key={id}>
              <th scope="row">
                <a class="id" href={formatRoute({ page: 'campaign', id })}>
                  {id}
                </a>
              </th>
              <td>
                <a href={formatRoute({ ...deliveriesRoute(), kind })}>{kind}</a>
              </td>
              <td>{state}</td>
              <td class="number">{formatCount(taken)}</td>
              <td>{formatAgo(createdAt, nowMs)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
