/** One queue: its configuration and whether it is paused, its depth by state and filter, and its messages state by state. */
import { useState } from 'preact/hooks';
import { ActionButton } from '../action-button.js';
import { apiPath, call, whereQuery, type ApiProblem } from '../api.js';
import type { Depth, MessagePage, QueueConfiguration, QueueDetail } from '../api-types.js';
import { formatCount, formatSeconds } from '../format.js';
import { goTo } from '../navigation.js';
import { EmptyNotice, LoadingNotice, ProblemNotice } from '../notice.js';
import { usePageTurn } from '../page-turn.js';
import { useRepeated, useResource } from '../resource.js';
import { formatRoute, messageStates, type MessageState, type Route } from '../route.js';
import { MessageTable } from './message-table.js';
import { WhereFilter } from './where-filter.js';

type QueueRoute = Extract<Route, { page: 'queue' }>;

const depthEveryMs = 2_000;
const messagesPerPage = 50;

/** What has ended is looked at from its end; what lives, in the order in which it goes on. */
const newestFirst = (state: MessageState): 'true' | undefined =>
  state === 'completed' || state === 'canceled' || state === 'errored' ? 'true' : undefined;

export function QueuePage(route: QueueRoute) {
  const { queue, state, where, after } = route;
  const detail = useResource<QueueDetail>(queue, (signal) => call(apiPath('queues', queue), { signal }));
  const depth = useResource<Depth>(JSON.stringify([queue, where]), (signal) =>
    call(apiPath('queues', queue, 'depth'), { query: whereQuery(where), signal }),
  );
  const messages = useResource<MessagePage>(JSON.stringify([queue, state, where, after]), (signal) =>
    call(apiPath('queues', queue, 'messages'), {
      query: {
        state,
        limit: String(messagesPerPage),
        after,
        newestFirst: newestFirst(state),
        ...whereQuery(where),
      },
      signal,
    }),
  );
  const top = usePageTurn(after ?? '');
  useRepeated(() => void depth.reload(), depthEveryMs);
  const problem = detail.problem ?? depth.problem;
  return (
    <>
      <p class="crumb">
        <a href={formatRoute({ page: 'queues' })}>Queues</a>
      </p>
      <h1 tabIndex={-1}>{queue}</h1>
      {problem !== undefined && <ProblemNotice problem={problem} onRetry={() => void detail.reload()} />}
      {detail.value !== undefined && (
        <Configuration queue={queue} configuration={detail.value.configuration} onChange={detail.reload} />
      )}
      <section aria-labelledby="queue-messages">
        <h2 id="queue-messages">Messages</h2>
        <WhereFilter where={where} onChange={(next) => goTo({ ...route, where: next, after: undefined })} />
        <StateTabs route={route} depth={depth.value} />
        <div ref={top} tabIndex={-1} role="group" aria-label={`Messages, ${state}`} class="list">
          {messages.problem !== undefined && (
            <ProblemNotice problem={messages.problem} onRetry={() => void messages.reload()} />
          )}
          {messages.value === undefined ? (
            messages.loading && <LoadingNotice what="messages" />
          ) : (
            <>
              <MessageList route={route} page={messages.value} onChange={messages.reload} />
              <Paging route={route} next={messages.value.next} onRefresh={messages.reload} />
            </>
          )}
        </div>
      </section>
    </>
  );
}

function Configuration(props: {
  readonly queue: string;
  readonly configuration: QueueConfiguration;
  readonly onChange: () => Promise<void>;
}) {
  const { queue, configuration, onChange } = props;
  const [problem, setProblem] = useState<ApiProblem | undefined>(undefined);
  const change = async (body: Partial<QueueConfiguration>): Promise<void> => {
    await call(apiPath('queues', queue), { method: 'PUT', body });
    await onChange();
  };
  const { type, leaseMs, attemptsMax, delayMs, enqueueBlocked, dequeueBlocked } = configuration;
  return (
    <section class="panel" aria-label="Configuration">
      <dl class="facts">
        <div>
          <dt>Type</dt>
          <dd>{type.kind === 'exclusive' ? `exclusive by ${type.key}` : 'simple'}</dd>
        </div>
        <div>
          <dt>Lease</dt>
          <dd>{formatSeconds(leaseMs / 1_000)}</dd>
        </div>
        <div>
          <dt>Attempts</dt>
          <dd>up to {attemptsMax}</dd>
        </div>
        {delayMs > 0 && (
          <div>
            <dt>Delay</dt>
            <dd>{formatSeconds(delayMs / 1_000)}</dd>
          </div>
        )}
        <div>
          <dt>Enqueue</dt>
          <dd class={enqueueBlocked ? 'attention' : ''}>{enqueueBlocked ? 'paused' : 'open'}</dd>
        </div>
        <div>
          <dt>Dequeue</dt>
          <dd class={dequeueBlocked ? 'attention' : ''}>{dequeueBlocked ? 'paused' : 'open'}</dd>
        </div>
      </dl>
      <div class="actions">
        <ActionButton
          label={enqueueBlocked ? 'Resume enqueue' : 'Pause enqueue'}
          done={enqueueBlocked ? `${queue} takes messages again` : `${queue} takes no new messages`}
          action={() => change({ enqueueBlocked: !enqueueBlocked })}
          onProblem={setProblem}
        />
        <ActionButton
          label={dequeueBlocked ? 'Resume dequeue' : 'Pause dequeue'}
          done={dequeueBlocked ? `${queue} hands out messages again` : `${queue} hands out no messages`}
          action={() => change({ dequeueBlocked: !dequeueBlocked })}
          onProblem={setProblem}
        />
      </div>
      {problem !== undefined && <ProblemNotice problem={problem} />}
    </section>
  );
}

function StateTabs({ route, depth }: { readonly route: QueueRoute; readonly depth: Depth | undefined }) {
  return (
    <nav class="tabs" aria-label="Messages by state">
      <ul>
        {messageStates.map((state) => {
          const count = depthOf(depth, state);
          return (
            <li key={state}>
              <a
                href={formatRoute({ ...route, state, after: undefined })}
                aria-current={state === route.state ? 'true' : undefined}
              >
                {state}
                {count !== undefined && (
                  <span class="count">
                    {depth?.exact === false ? '≈ ' : ''}
                    {formatCount(count)}
                  </span>
                )}
              </a>
            </li>
          );
        })}
      </ul>
    </nav>
  );
}

function depthOf(depth: Depth | undefined, state: MessageState): number | undefined {
  return state === 'pending' || state === 'running' || state === 'invisible' ? depth?.[state] : undefined;
}

function MessageList(props: {
  readonly route: QueueRoute;
  readonly page: MessagePage;
  readonly onChange: () => Promise<void>;
}) {
  const { route, page, onChange } = props;
  if (page.messages.length > 0)
    return <MessageTable queue={route.queue} messages={page.messages} onChange={onChange} />;
  const isFiltered = Object.keys(route.where).length > 0;
  return (
    <EmptyNotice title={`No ${route.state} message${isFiltered ? ' matches the filter' : ''}.`}>
      {route.after === undefined ? emptyReason[route.state] : 'The list ends here.'}
    </EmptyNotice>
  );
}

const emptyReason: Readonly<Record<MessageState, string>> = {
  pending:
    'Nothing waits to be handed out. A queue is made by its first message, so a misspelt name is empty as well.',
  running: 'No worker holds a message of this queue right now.',
  invisible: 'Nothing waits for a later time or a retry.',
  errored: 'No message has used up its attempts.',
  completed: 'Completed messages are kept for the retention time of the queue.',
  canceled: 'Nobody has canceled a message within the retention time.',
};

function Paging(props: {
  readonly route: QueueRoute;
  readonly next: string | undefined;
  readonly onRefresh: () => Promise<void>;
}) {
  const { route, next, onRefresh } = props;
  return (
    <div class="paging">
      <button type="button" onClick={() => void onRefresh()}>
        Refresh
      </button>
      {route.after !== undefined && (
        <a class="button" href={formatRoute({ ...route, after: undefined })}>
          First page
        </a>
      )}
      {next !== undefined && (
        <a class="button" href={formatRoute({ ...route, after: next })}>
          Next page
        </a>
      )}
    </div>
  );
}
