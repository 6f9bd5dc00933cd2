/** What comes by cron: each recurring message with its queue, its rule, and the tick that it waits for. */
import { call } from '../api.js';
import type { Recurring } from '../api-types.js';
import { formatAgo, formatTime } from '../format.js';
import { ProblemNotice } from '../notice.js';
import { useRepeated, useResource } from '../resource.js';
import { formatRoute, queueRoute } from '../route.js';

/** A cron expression ticks once a minute at most. */
const everyMs = 30_000;

/** Nothing where nothing recurs. */
export function RecurringMessages() {
  const { value, problem, reload } = useResource<{ readonly recurring: readonly Recurring[] }>(
    'recurring',
    (signal) => call('/v1/recurring', { signal }),
  );
  useRepeated(() => void reload(), everyMs);
  if (problem === undefined && (value === undefined || value.recurring.length === 0)) return null;
  return (
    <section aria-labelledby="queues-recurring">
      <h2 id="queues-recurring">Recurring messages</h2>
      {problem !== undefined && <ProblemNotice problem={problem} onRetry={() => void reload()} />}
      {value !== undefined && value.recurring.length > 0 && <RecurringTable recurring={value.recurring} />}
    </section>
  );
}

function RecurringTable({ recurring }: { readonly recurring: readonly Recurring[] }) {
  const now = Date.now();
  return (
    <div class="table-frame" role="region" aria-label="Recurring messages, scrolls sideways" tabIndex={0}>
      <table>
        <thead>
          <tr>
            <th scope="col">Name</th>
            <th scope="col">Queue</th>
            <th scope="col">Cron</th>
            <th scope="col">Time zone</th>
            <th scope="col">Next</th>
          </tr>
        </thead>
        <tbody>
          {recurring.map(({ name, queue, cron, timeZone, next }) => (
            <tr key={name}>
              <th scope="row">
                <span class="name" title={name}>
                  {name}
                </span>
              </th>
              <td>
                <a class="name" title={queue} href={formatRoute(queueRoute(queue))}>
                  {queue}
                </a>
              </td>
              <td>
                <code>{cron}</code>
              </td>
              <td>{timeZone}</td>
              <td title={new Date(next).toISOString()}>
                {formatTime(next, now)} <span class="muted">{formatAgo(next, now)}</span>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
