/**
 * The frame around every page: header with navigation, the live region, and the page of the current route. A new page
 * takes the focus at its heading and names the window, as a page load would.
 */
import { useEffect, useRef } from 'preact/hooks';
import { announcement } from './announce.js';
import { CampaignPage } from './notify/campaign-page.js';
import { CampaignsPage } from './notify/campaigns-page.js';
import { DeliveriesPage } from './notify/deliveries-page.js';
import { NotificationPage } from './notify/notification-page.js';
import { NotifyPage } from './notify/notify-page.js';
import { PricesPage } from './prices/prices-page.js';
import { session, signOut } from './session.js';
import { SignInPage } from './sign-in.js';
import { FeedPage } from './feed/feed-page.js';
import { HomePage } from './feed/home-page.js';
import { formatSeconds } from './format.js';
import { route } from './navigation.js';
import { EmptyNotice, LoadingNotice } from './notice.js';
import { connection, overview, startup } from './overview/live-overview.js';
import { OverviewPage } from './overview/overview-page.js';
import { MessagePage } from './queues/message-page.js';
import { QueuePage } from './queues/queue-page.js';
import { QueuesPage } from './queues/queues-page.js';
import { formatRoute, type Route } from './route.js';

const sections: readonly {
  readonly label: string;
  readonly to: Route;
  readonly pages: readonly Route['page'][];
}[] = [
  { label: 'Overview', to: { page: 'overview' }, pages: ['overview'] },
  { label: 'Queues', to: { page: 'queues' }, pages: ['queues', 'queue', 'message'] },
  { label: 'Feed', to: { page: 'feed' }, pages: ['feed', 'home'] },
  {
    label: 'Notify',
    to: { page: 'notify' },
    pages: ['notify', 'deliveries', 'notification', 'campaigns', 'campaign'],
  },
  { label: 'Prices', to: { page: 'prices' }, pages: ['prices'] },
];

export function App() {
  const current = route.value;
  const main = useRef<HTMLElement>(null);
  const isSignedOut = session.value.kind === 'signed-out';
  const place = isSignedOut ? 'sign-in' : placeOf(current);
  const isFirst = useRef(true);

  useEffect(() => {
    document.title = `${isSignedOut ? 'Sign in' : titleOf(current)} · Headgate`;
    if (isFirst.current) {
      isFirst.current = false;
      return;
    }
    window.scrollTo(0, 0);
    main.current?.querySelector<HTMLElement>('h1')?.focus({ preventScroll: true });
  }, [place]);

  return (
    <>
      <a class="skip" href="#content" onClick={(event) => skipTo(event, main.current)}>
        Skip to content
      </a>
      <header class="top">
        <a class="brand" href={formatRoute({ page: 'overview' })} aria-label="Headgate, overview">
          <Mark />
          Headgate
        </a>
        <nav aria-label="Sections">
          <ul>
            {sections.map(({ label, to, pages }) => (
              <li key={label}>
                <a href={formatRoute(to)} aria-current={pages.includes(current.page) ? 'page' : undefined}>
                  {label}
                </a>
              </li>
            ))}
          </ul>
        </nav>
        <Connection />
      </header>
      <main id="content" ref={main} tabIndex={-1}>
        <Content place={place} route={current} />
      </main>
      <div class="visually-hidden" role="status" aria-live="polite">
        {announcement.value}
      </div>
    </>
  );
}

/** Nothing is asked of a server before it is known whether it wants a key. */
function Content({ place, route: current }: { readonly place: string; readonly route: Route }) {
  switch (session.value.kind) {
    case 'unknown':
      return <LoadingNotice what="who you are" />;
    case 'signed-out':
      return <SignInPage />;
    case 'signed-in':
      return <Page key={place} route={current} />;
  }
}

function Page({ route: current }: { readonly route: Route }) {
  switch (current.page) {
    case 'overview':
      return <OverviewPage />;
    case 'queues':
      return <QueuesPage />;
    case 'queue':
      return <QueuePage {...current} />;
    case 'message':
      return <MessagePage queue={current.queue} id={current.id} />;
    case 'feed':
      return <FeedPage />;
    case 'home':
      return <HomePage account={current.account} cursor={current.cursor} />;
    case 'notify':
      return <NotifyPage />;
    case 'deliveries':
      return <DeliveriesPage {...current} />;
    case 'notification':
      return <NotificationPage id={current.id} />;
    case 'campaigns':
      return <CampaignsPage {...current} />;
    case 'campaign':
      return <CampaignPage id={current.id} />;
    case 'prices':
      return <PricesPage />;
    case 'unknown':
      return (
        <>
          <h1 tabIndex={-1}>No such page</h1>
          <EmptyNotice title="Nothing is at this address.">
            The address behind # is <code>{current.address}</code>; the pages are in the navigation above.
          </EmptyNotice>
        </>
      );
  }
}

function Connection() {
  // A server that starts refuses the stream: it is there, only not yet ready.
  const state = startup.value === undefined ? connection.value : 'connecting';
  const text = { connecting: 'Connecting', live: 'Live', lost: 'Connection lost, trying again' }[state];
  const uptimeMs = overview.value?.uptimeMs;
  return (
    <div class="connection">
      <span role="status" class={`state state-${state}`}>
        {text}
      </span>
      {state === 'live' && uptimeMs !== undefined && (
        <span class="muted wide-only">up {formatSeconds(uptimeMs / 1_000)}</span>
      )}
      <a class="muted" href="/docs">
        API
      </a>
      {session.value.kind === 'signed-in' && session.value.required && (
        <button type="button" onClick={() => void signOut()}>
          Sign out
        </button>
      )}
    </div>
  );
}

function Mark() {
  return (
    <svg viewBox="0 0 32 32" width="22" height="22" aria-hidden="true" focusable="false">
      <path d="M7 5v22M25 5v22M7 8h18M13 8v9h6V8" class="mark-gate" />
      <path d="M7 25c3-2.6 6-2.6 9 0s6 2.6 9 0" class="mark-water" />
    </svg>
  );
}

/** What makes it another page: the same queue in another state, or home further down, is still the same page. */
function placeOf(current: Route): string {
  switch (current.page) {
    case 'queue':
      return `queue ${current.queue}`;
    case 'message':
      return `message ${current.queue} ${current.id}`;
    case 'home':
      return `home ${current.account}`;
    case 'notification':
      return `notification ${current.id}`;
    case 'campaign':
      return `campaign ${current.id}`;
    default:
      return current.page;
  }
}

function titleOf(current: Route): string {
  switch (current.page) {
    case 'overview':
      return 'Overview';
    case 'queues':
      return 'Queues';
    case 'queue':
      return `Queue ${current.queue}`;
    case 'message':
      return `Message ${current.id}`;
    case 'feed':
      return 'Feed';
    case 'home':
      return `Home of ${current.account}`;
    case 'notify':
      return 'Notify';
    case 'deliveries':
      return 'Deliveries';
    case 'notification':
      return `Notification ${current.id}`;
    case 'campaigns':
      return 'Campaigns';
    case 'campaign':
      return `Campaign ${current.id}`;
    case 'prices':
      return 'Prices';
    case 'unknown':
      return 'No such page';
  }
}

/** The hash is the route, so the skip link must not become one. */
function skipTo(event: Event, target: HTMLElement | null): void {
  event.preventDefault();
  target?.focus();
}
