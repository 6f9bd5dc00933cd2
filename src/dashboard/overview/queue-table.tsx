/** All queues in one table, live: depth by state, age of the oldest, and what came of the messages. */
import type { RunningOverview } from '../api-types.js';
import { formatCount, formatRate, formatSeconds } from '../format.js';
import { EmptyNotice } from '../notice.js';
import { formatRoute, queueRoute } from '../route.js';
import { recentRate } from './series.js';

export function QueueTable({ samples }: { readonly samples: readonly RunningOverview[] }) {
  const queues = samples.at(-1)?.queues ?? [];
  if (queues.length === 0) {
    return (
      <EmptyNotice title="No queue yet.">
        A queue is made by the first message that is enqueued into it.
      </EmptyNotice>
    );
  }
  return (
    <div class="table-frame" role="region" aria-label="Queues, scrolls sideways" tabIndex={0}>
      <table>
        <thead>
          <tr>
            <th scope="col">Queue</th>
            <th scope="col" class="number">
              Pending
            </th>
            <th scope="col" class="number">
              Running
            </th>
            <th scope="col" class="number">
              Invisible
            </th>
            <th scope="col" class="number">
              Oldest pending
            </th>
            <th scope="col" class="number">
              Completed /s
            </th>
            <th scope="col" class="number">
              Failed
            </th>
            <th scope="col" class="number">
              Errored
            </th>
          </tr>
        </thead>
        <tbody>
          {queues.map((queue) => {
            const rate = recentRate(
              samples,
              (sample) => sample.queues.find(({ queue: name }) => name === queue.queue)?.completedTotal ?? 0,
            );
            return (
              <tr key={queue.queue}>
                <th scope="row">
                  <a class="name" title={queue.queue} href={formatRoute(queueRoute(queue.queue))}>
                    {queue.queue}
                  </a>
                </th>
                <td class="number">{formatCount(queue.pending)}</td>
                <td class="number">{formatCount(queue.running)}</td>
                <td class="number">{formatCount(queue.invisible)}</td>
                <td class="number">{formatSeconds(queue.lagSeconds)}</td>
                <td class="number">{rate === undefined ? '—' : formatRate(rate)}</td>
                <td class="number">{formatCount(queue.failedTotal)}</td>
                <td class="number">{queue.errored >= 100 ? '100 or more' : formatCount(queue.errored)}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}
