/** One campaign: how far its stream has got, what became of those that were taken, and what an operator may do. */
import { useState } from 'preact/hooks';
import { ActionButton } from '../action-button.js';
import { apiPath, call, type ApiProblem } from '../api.js';
import { Facts } from '../facts.js';
import { formatAgo, formatCount, formatTime } from '../format.js';
import { LoadingNotice, ProblemNotice } from '../notice.js';
import { useRepeated, useResource } from '../resource.js';
import { campaignsRoute, deliveriesRoute, formatRoute } from '../route.js';
import { endStates, type CampaignProgress } from './types.js';

const everyMs = 3_000;
/** Counting goes over every recipient: the server rests so many times as long as it took. */
const restFactor = 20;

interface Counted extends CampaignProgress {
  /** When this may be counted again, on the monotonic clock. */
  readonly againAtMs: number;
}

export function CampaignPage({ id }: { readonly id: string }) {
  const progress = useResource<Counted>(id, async (signal) => {
    const startedAtMs = performance.now();
    const answer = await call<CampaignProgress>(apiPath('campaigns', id), { signal });
    const endedAtMs = performance.now();
    return { ...answer, againAtMs: endedAtMs + restFactor * (endedAtMs - startedAtMs) };
  });
  const [problem, setProblem] = useState<ApiProblem | undefined>(undefined);
  useRepeated(() => {
    const { value, loading } = progress;
    if (value === undefined || loading || performance.now() < value.againAtMs) return;
    if (value.waiting > 0 || value.state === 'running') void progress.reload();
  }, everyMs);
  return (
    <>
      <p class="crumb">
        <a href={formatRoute({ page: 'notify' })}>Notify</a> /{' '}
        <a href={formatRoute(campaignsRoute())}>Campaigns</a>
      </p>
      <h1 tabIndex={-1} class="id">
        {id}
      </h1>
      {problem !== undefined && <ProblemNotice problem={problem} />}
      {progress.problem !== undefined && (
        <ProblemNotice problem={progress.problem} onRetry={() => void progress.reload()} />
      )}
      {progress.value === undefined ? (
        progress.loading && <LoadingNotice what="the campaign" />
      ) : (
        <>
          <Actions campaign={progress.value} onChange={progress.reload} onProblem={setProblem} />
          <Progress campaign={progress.value} />
        </>
      )}
    </>
  );
}

function Actions(props: {
  readonly campaign: CampaignProgress;
  readonly onChange: () => Promise<void>;
  readonly onProblem: (problem: ApiProblem | undefined) => void;
}) {
  const { id, state } = props.campaign;
  const act = async (action: 'pause' | 'resume' | 'cancel'): Promise<void> => {
    await call(apiPath('campaigns', id, action), { method: 'POST', body: {} });
    await props.onChange();
  };
  return (
    <div class="actions">
      <button type="button" onClick={() => void props.onChange()}>
        Refresh
      </button>
      {state !== 'canceled' && (
        <ActionButton
          label={state === 'paused' ? 'Resume' : 'Pause'}
          name={`${state === 'paused' ? 'Resume' : 'Pause'} campaign ${id}`}
          done={state === 'paused' ? `${id} goes on` : `${id} is paused`}
          action={() => act(state === 'paused' ? 'resume' : 'pause')}
          onProblem={props.onProblem}
        />
      )}
      {state !== 'canceled' && (
        <ActionButton
          label="Cancel"
          name={`Cancel campaign ${id}`}
          confirm="Cancel for good?"
          done={`What waited of ${id} is canceled`}
          action={() => act('cancel')}
          onProblem={props.onProblem}
        />
      )}
    </div>
  );
}

function Progress({ campaign }: { readonly campaign: CampaignProgress }) {
  const nowMs = Date.now();
  const { kind, state, taken, waiting, createdAt } = campaign;
  return (
    <Facts
      rows={[
        ['Kind', <a href={formatRoute({ ...deliveriesRoute(), kind })}>{kind}</a>],
        ['State', state],
        ['Begun', `${formatTime(createdAt, nowMs)} (${formatAgo(createdAt, nowMs)})`],
        ['Recipients taken', formatCount(taken)],
        ['Deliveries that wait', formatCount(waiting)],
        ...endStates.map((end): [string, string] => [`Deliveries ${end}`, formatCount(campaign[end])]),
      ]}
    />
  );
}
