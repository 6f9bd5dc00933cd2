/** Deliveries, newest first, by state, kind and user; each leads to the story of its notification. */
import { call } from '../api.js';
import { formatAgo, formatCount } from '../format.js';
import { EmptyNotice, LoadingNotice, ProblemNotice } from '../notice.js';
import { usePageTurn } from '../page-turn.js';
import { useResource } from '../resource.js';
import { deliveryStates, formatRoute, type Route } from '../route.js';
import type { Delivery, DeliveryPage } from './types.js';

type DeliveriesRoute = Extract<Route, { page: 'deliveries' }>;

const perPage = 50;

export function DeliveriesPage(route: DeliveriesRoute) {
  const { state, kind, user, before } = route;
  const page = useResource<DeliveryPage>(JSON.stringify([state, kind, user, before]), (signal) =>
    call('/v1/deliveries', { query: { state, kind, user, before, limit: String(perPage) }, signal }),
  );
  const top = usePageTurn(before ?? '');
  const about = [kind, user].filter((text) => text !== undefined);
  return (
    <>
      <p class="crumb">
        <a href={formatRoute({ page: 'notify' })}>Notify</a>
      </p>
      <h1 tabIndex={-1}>Deliveries{about.length === 0 ? '' : ` of ${about.join(' to ')}`}</h1>
      <StateTabs {...route} />
      {about.length > 0 && (
        <p>
          <a href={formatRoute({ ...route, kind: undefined, user: undefined, before: undefined })}>
            Show those of every kind and user
          </a>
        </p>
      )}
      <div ref={top} tabIndex={-1} role="group" aria-label="Deliveries" class="list">
        {page.problem !== undefined && (
          <ProblemNotice problem={page.problem} onRetry={() => void page.reload()} />
        )}
        {page.value === undefined ? (
          page.loading && <LoadingNotice what="deliveries" />
        ) : (
          <>
            {page.value.deliveries.length === 0 ? (
              <EmptyNotice title={state === undefined ? 'No delivery.' : `No delivery is ${state}.`}>
                {before === undefined ? 'Nothing of the kind has been accepted.' : 'The list ends here.'}
              </EmptyNotice>
            ) : (
              <DeliveryTable deliveries={page.value.deliveries} />
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

function StateTabs(route: DeliveriesRoute) {
  return (
    <nav class="tabs" aria-label="Deliveries by state">
      <ul>
        {[undefined, ...deliveryStates].map((state) => (
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

function DeliveryTable({ deliveries }: { readonly deliveries: readonly Delivery[] }) {
  const nowMs = Date.now();
  return (
    <div class="table-frame" role="region" aria-label="Deliveries, scrolls sideways" tabIndex={0}>
      <table>
        <thead>
          <tr>
            <th scope="col">Notification</th>
            <th scope="col">Kind</th>
            <th scope="col">To</th>
            <th scope="col">State</th>
            <th scope="col">Reason</th>
            <th scope="col" class="number">
              Attempts
            </th>
            <th scope="col">Provider</th>
            <th scope="col">Receipt</th>
            <th scope="col">Accepted</th>
          </tr>
        </thead>
        <tbody>
          {deliveries.map((delivery) => (
            <tr key={delivery.id}>
              <th scope="row">
                <a
                  class="id"
                  aria-label={`Story of ${delivery.kind} to ${delivery.user} by ${delivery.channel}, ${delivery.id}`}
                  href={formatRoute({ page: 'notification', id: delivery.notification })}
                >
                  {delivery.user}
                </a>
              </th>
              <td>{delivery.kind}</td>
              <td>
                {delivery.channel} <span class="muted id">{delivery.address}</span>
              </td>
              <td>
                <StateText state={delivery.state} />
              </td>
              <td>{delivery.reason ?? '—'}</td>
              <td class="number">{formatCount(delivery.attempts)}</td>
              <td>{delivery.provider ?? '—'}</td>
              <td>{delivery.receipt}</td>
              <td>{formatAgo(delivery.createdAt, nowMs)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

export function StateText({ state }: { readonly state: string }) {
  return <span class={`delivery-state delivery-state-${state}`}>{state}</span>;
}
