/** One notification's story: what was accepted, and for each delivery every step with its reason. */
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { ActionButton } from '../action-button.js';
import { apiPath, call, type ApiProblem } from '../api.js';
import { Facts } from '../facts.js';
import { formatAgo, formatSeconds, formatTime } from '../format.js';
import { EmptyNotice, LoadingNotice, ProblemNotice } from '../notice.js';
import { useRepeated, useResource } from '../resource.js';
import { deliveriesRoute, formatRoute } from '../route.js';
import { StateText } from './deliveries-page.js';
import type { HistoryEntry, Notification } from './types.js';

const everyMs = 3_000;
const isOpen = (state: string): boolean => state === 'waiting' || state === 'sending';

export function NotificationPage({ id }: { readonly id: string }) {
  const story = useResource<Notification>(id, (signal) => call(apiPath('notifications', id), { signal }));
  const [problem, setProblem] = useState<ApiProblem | undefined>(undefined);
  const waits = story.value?.deliveries.some(({ state }) => isOpen(state)) ?? false;
  useRepeated(() => {
    if (waits && !story.loading) void story.reload();
  }, everyMs);
  const cancel = async (): Promise<void> => {
    await call(apiPath('notifications', id, 'cancel'), { method: 'POST', body: {} });
    await story.reload();
  };
  return (
    <>
      <p class="crumb">
        <a href={formatRoute({ page: 'notify' })}>Notify</a> /{' '}
        <a href={formatRoute(deliveriesRoute())}>Deliveries</a>
      </p>
      <h1 tabIndex={-1} class="id">
        {id}
      </h1>
      {problem !== undefined && <ProblemNotice problem={problem} />}
      {story.problem !== undefined && (
        <ProblemNotice problem={story.problem} onRetry={() => void story.reload()} />
      )}
      {story.value === undefined ? (
        story.loading && <LoadingNotice what="the notification" />
      ) : (
        <>
          <div class="actions">
            <button type="button" onClick={() => void story.reload()}>
              Refresh
            </button>
            {waits && (
              <ActionButton
                label="Cancel"
                name={`Cancel notification ${id}`}
                confirm="Cancel for good?"
                done="What waited is canceled"
                action={cancel}
                onProblem={setProblem}
              />
            )}
          </div>
          <Head story={story.value} />
          {story.value.deliveries.length === 0 && (
            <EmptyNotice title="No delivery.">It has none, or they have been erased.</EmptyNotice>
          )}
          {story.value.deliveries.map((delivery) => (
            <DeliverySection key={delivery.id} delivery={delivery} />
          ))}
        </>
      )}
    </>
  );
}

function Head({ story }: { readonly story: Notification }) {
  const nowMs = Date.now();
  return (
    <Facts
      rows={[
        ['Kind', <a href={formatRoute({ ...deliveriesRoute(), kind: story.kind })}>{story.kind}</a>],
        ['User', <a href={formatRoute({ ...deliveriesRoute(), user: story.user })}>{story.user}</a>],
        ['Key', <code>{story.key}</code>],
        ['Accepted', `${formatTime(story.createdAt, nowMs)} (${formatAgo(story.createdAt, nowMs)})`],
      ]}
    />
  );
}

function DeliverySection({ delivery }: { readonly delivery: Notification['deliveries'][number] }) {
  const nowMs = Date.now();
  const { channel, address, state, reason, attempts, provider, receipt, cost, runAfter, expiresAt } =
    delivery;
  const heading = `delivery-${delivery.id}`;
  const rows: [string, ComponentChildren][] = [
    ['State', <StateText state={state} />],
    ['Attempts', attempts],
    ['Provider', provider ?? '—'],
    ['Receipt', receipt],
  ];
  if (reason !== undefined) rows.push(['Reason', reason]);
  if (cost !== undefined) rows.push(['Cost', cost]);
  if (state === 'waiting') rows.push(['Due', formatAgo(runAfter, nowMs)]);
  if (isOpen(state)) rows.push(['Expires', formatAgo(expiresAt, nowMs)]);
  return (
    <section aria-labelledby={heading}>
      <h2 id={heading}>
        By {channel} <span class="muted id">{address}</span>
      </h2>
      <Facts rows={rows} />
      <HistoryTable entries={delivery.history} channel={channel} />
    </section>
  );
}

function HistoryTable({
  entries,
  channel,
}: {
  readonly entries: readonly HistoryEntry[];
  readonly channel: string;
}) {
  if (entries.length === 0) return <EmptyNotice title="No history." />;
  const nowMs = Date.now();
  return (
    <div
      class="table-frame"
      role="region"
      aria-label={`History of the delivery by ${channel}, scrolls sideways`}
      tabIndex={0}
    >
      <table>
        <thead>
          <tr>
            <th scope="col">At</th>
            <th scope="col" class="number">
              After
            </th>
            <th scope="col">What</th>
            <th scope="col" class="number">
              Attempt
            </th>
            <th scope="col">Provider</th>
            <th scope="col">Why</th>
          </tr>
        </thead>
        <tbody>
          {entries.map((entry, index) => {
            const before = entries[index - 1];
            return (
              <tr key={index}>
                <td>{formatTime(entry.at, nowMs)}</td>
                <td class="number">
                  {before === undefined ? '—' : `+${formatSeconds((entry.at - before.at) / 1_000)}`}
                </td>
                <th scope="row">{entry.event}</th>
                <td class="number">{entry.attempt ?? '—'}</td>
                <td>{entry.provider ?? '—'}</td>
                <td>{entry.detail ?? '—'}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}
