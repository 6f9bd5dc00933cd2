/** Messages of one state in a table; what can be done to one stands in its row. */
import { useState } from 'preact/hooks';
import type { ApiProblem } from '../api.js';
import type { Message } from '../api-types.js';
import { formatAgo, formatCount, formatPriority } from '../format.js';
import { ProblemNotice } from '../notice.js';
import { formatRoute } from '../route.js';
import { MessageActions } from './message-actions.js';

export interface MessageTableProps {
  readonly queue: string;
  readonly messages: readonly Message[];
  readonly onChange: () => Promise<void>;
}

export function MessageTable({ queue, messages, onChange }: MessageTableProps) {
  const [problem, setProblem] = useState<ApiProblem | undefined>(undefined);
  const nowMs = Date.now();
  return (
    <>
      {problem !== undefined && <ProblemNotice problem={problem} />}
      <div class="table-frame" role="region" aria-label="Messages, scrolls sideways" tabIndex={0}>
        <table>
          <thead>
            <tr>
              <th scope="col">Message</th>
              <th scope="col">Metadata</th>
              <th scope="col" class="number">
                Priority
              </th>
              <th scope="col" class="number">
                Attempts
              </th>
              <th scope="col">Enqueued</th>
              <th scope="col">State since</th>
              <th scope="col">
                <span class="visually-hidden">Actions</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {messages.map((message) => (
              <tr key={message.id}>
                <th scope="row">
                  <a
                    class="id"
                    title={message.id}
                    href={formatRoute({ page: 'message', queue, id: message.id })}
                  >
                    {message.id}
                  </a>
                </th>
                <td>
                  <MetadataText metadata={message.metadata} pairsMax={3} />
                </td>
                <td class="number">{formatPriority(message.priority, nowMs)}</td>
                <td class="number">
                  {formatCount(message.attempts)} / {formatCount(message.attemptsMax)}
                </td>
                <td>{formatAgo(message.enqueuedAt, nowMs)}</td>
                <td>{sinceText(message, nowMs)}</td>
                <td class="row-actions">
                  <MessageActions
                    queue={queue}
                    message={message}
                    onChange={onChange}
                    onProblem={setProblem}
                  />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

/** Where there is little room, the first pairs on one line each and how many more there are; the message's page has them all. */
export function MetadataText({
  metadata,
  pairsMax = Infinity,
}: {
  readonly metadata: Readonly<Record<string, string>>;
  readonly pairsMax?: number;
}) {
  const pairs = Object.entries(metadata);
  if (pairs.length === 0) return <span class="muted">none</span>;
  const more = pairs.length - pairsMax;
  return (
    <span class={pairsMax < Infinity ? 'pairs pairs-short' : 'pairs'}>
      {pairs.slice(0, pairsMax).map(([key, value]) => (
        <code key={key}>
          {key}={value}
        </code>
      ))}
      {more > 0 && <span class="muted">and {more} more</span>}
    </span>
  );
}

function sinceText(message: Message, nowMs: number): string {
  switch (message.state) {
    case 'invisible':
      return `due ${formatAgo(message.visibleAt, nowMs)}`;
    case 'pending':
      return `due ${formatAgo(message.visibleAt, nowMs)}`;
    case 'running':
      return message.leaseUntil === undefined
        ? 'running'
        : `lease ends ${formatAgo(message.leaseUntil, nowMs)}`;
    default:
      return message.finishedAt === undefined ? message.state : formatAgo(message.finishedAt, nowMs);
  }
}
