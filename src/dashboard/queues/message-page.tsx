/** One message: what it carries, where it stands, and every change it went through. */
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { apiPath, call, type ApiProblem } from '../api.js';
import type { History, HistoryEvent, Message } from '../api-types.js';
import { Facts } from '../facts.js';
import { formatAgo, formatPriority, formatSeconds, formatTime } from '../format.js';
import { EmptyNotice, LoadingNotice, ProblemNotice } from '../notice.js';
import { useResource } from '../resource.js';
import { formatRoute, queueRoute } from '../route.js';
import { MessageActions } from './message-actions.js';
import { MetadataText } from './message-table.js';

export function MessagePage({ queue, id }: { readonly queue: string; readonly id: string }) {
  const key = JSON.stringify([queue, id]);
  const message = useResource<Message>(key, (signal) =>
    call(apiPath('queues', queue, 'messages', id), { signal }),
  );
  const history = useResource<History>(key, (signal) =>
    call(apiPath('queues', queue, 'messages', id, 'history'), { signal }),
  );
  const [problem, setProblem] = useState<ApiProblem | undefined>(undefined);
  const reload = async (): Promise<void> => {
    await Promise.all([message.reload(), history.reload()]);
  };
  return (
    <>
      <p class="crumb">
        <a href={formatRoute({ page: 'queues' })}>Queues</a> /{' '}
        <a href={formatRoute(queueRoute(queue))}>{queue}</a>
      </p>
      <h1 tabIndex={-1} class="id">
        {id}
      </h1>
      {problem !== undefined && <ProblemNotice problem={problem} />}
      {message.problem !== undefined && (
        <ProblemNotice problem={message.problem} onRetry={() => void reload()} />
      )}
      {message.value === undefined ? (
        message.loading && <LoadingNotice what="the message" />
      ) : (
        <>
          <div class="actions">
            <button type="button" onClick={() => void reload()}>
              Refresh
            </button>
            <MessageActions queue={queue} message={message.value} onChange={reload} onProblem={setProblem} />
          </div>
          <MessageFacts message={message.value} />
          <JsonSection title="Payload" value={message.value.payload} />
          {message.value.result !== undefined && <JsonSection title="Result" value={message.value.result} />}
          <section aria-labelledby="message-history">
            <h2 id="message-history">History</h2>
            {history.problem !== undefined && (
              <ProblemNotice problem={history.problem} onRetry={() => void history.reload()} />
            )}
            {history.value === undefined ? (
              history.loading && <LoadingNotice what="the history" />
            ) : (
              <HistoryTable events={history.value.events} />
            )}
          </section>
        </>
      )}
    </>
  );
}

function MessageFacts({ message }: { readonly message: Message }) {
  const nowMs = Date.now();
  const time = (unixMs: number): string => `${formatTime(unixMs, nowMs)} (${formatAgo(unixMs, nowMs)})`;
  const rows: [string, ComponentChildren][] = [
    ['State', <span class={`message-state message-state-${message.state}`}>{message.state}</span>],
    ['Attempts', `${message.attempts} of ${message.attemptsMax}`],
    ['Priority', priorityText(message.priority, nowMs)],
    ['Version', message.version],
    ['Enqueued', time(message.enqueuedAt)],
    ['Due', time(message.visibleAt)],
  ];
  if (message.startedAt !== undefined) rows.push(['Started', time(message.startedAt)]);
  if (message.leaseUntil !== undefined) rows.push(['Lease ends', time(message.leaseUntil)]);
  if (message.finishedAt !== undefined) rows.push(['Finished', time(message.finishedAt)]);
  rows.push(['Metadata', <MetadataText metadata={message.metadata} />]);
  if (message.error !== undefined) rows.push(['Error', <code class="attention">{message.error}</code>]);
  return <Facts rows={rows} />;
}

/** The number that sorts, and the time that it is where it is one. */
function priorityText(priority: number, nowMs: number): string {
  const shown = formatPriority(priority, nowMs);
  return shown === String(priority) ? shown : `${priority} (${shown})`;
}

function JsonSection({ title, value }: { readonly title: string; readonly value: unknown }) {
  return (
    <section aria-label={title}>
      <h2>{title}</h2>
      <pre tabIndex={0} role="region" aria-label={`${title} as JSON`}>
        {JSON.stringify(value, null, 2)}
      </pre>
    </section>
  );
}

function HistoryTable({ events }: { readonly events: readonly HistoryEvent[] }) {
  if (events.length === 0)
    return (
      <EmptyNotice title="No history.">The queue keeps none, or it is past its retention time.</EmptyNotice>
    );
  const nowMs = Date.now();
  return (
    <div class="table-frame" role="region" aria-label="History, scrolls sideways" tabIndex={0}>
      <table>
        <thead>
          <tr>
            <th scope="col" class="number">
              Version
            </th>
            <th scope="col">From</th>
            <th scope="col">To</th>
            <th scope="col">At</th>
            <th scope="col" class="number">
              After
            </th>
            <th scope="col" class="number">
              Attempt
            </th>
          </tr>
        </thead>
        <tbody>
          {events.map((event, index) => {
            const before = events[index - 1];
            return (
              <tr key={event.version}>
                <td class="number">
                  {event.version}
                  {before !== undefined && event.version > before.version + 1 && (
                    <span class="attention"> gap</span>
                  )}
                </td>
                <td>{event.from ?? '—'}</td>
                <td>{event.to}</td>
                <td>{formatTime(event.at, nowMs)}</td>
                <td class="number">
                  {before === undefined ? '—' : `+${formatSeconds((event.at - before.at) / 1_000)}`}
                </td>
                <td class="number">{event.attempt ?? '—'}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}
