/** The overview: what flows through the product this second, how old the oldest work is, and what a write survives. */
import { Chart } from '../chart.js';
import type { Overview } from '../api-types.js';
import { formatCount, formatRate, formatSeconds, formatShare } from '../format.js';
import { LoadingNotice, ProblemNotice } from '../notice.js';
import { askOnce, overview, overviewProblem, samples, windowSeconds } from './live-overview.js';
import { LoadingProgress } from './loading-progress.js';
import { QueueTable } from './queue-table.js';
import {
  oldestPendingSeconds,
  overQueues,
  ratesOf,
  recentRate,
  timesOf,
  valuesOf,
  type Pick,
} from './series.js';

export function OverviewPage() {
  const now = overview.value;
  return (
    <>
      <h1 tabIndex={-1}>Overview</h1>
      {overviewProblem.value !== undefined && (
        <ProblemNotice problem={overviewProblem.value} onRetry={() => void askOnce()} />
      )}
      {now === undefined ? (
        overviewProblem.value === undefined && <LoadingNotice what="the overview" />
      ) : (
        <>
          {now.demo?.loading === true && <LoadingProgress demo={now.demo} />}
          <Figures now={now} />
          <Charts />
          <section aria-labelledby="overview-queues">
            <h2 id="overview-queues">Queues</h2>
            <QueueTable samples={samples.value} />
          </section>
          <section aria-labelledby="overview-durability">
            <h2 id="overview-durability">What an acknowledged write survives</h2>
            <p class="prose">{now.durability}</p>
          </section>
        </>
      )}
    </>
  );
}

const posts: Pick = (sample) => sample.feed.postsTotal;
const entries: Pick = (sample) => sample.feed.entriesWrittenTotal;
const homeReads: Pick = (sample) => sample.feed.homeReadsTotal;
const enqueued = overQueues((queue) => queue.enqueuedTotal);
const completed = overQueues((queue) => queue.completedTotal);
const failed = overQueues((queue) => queue.failedTotal);
const errored = overQueues((queue) => queue.erroredTotal);

function Figures({ now }: { readonly now: Overview }) {
  const { feed } = now;
  const history = samples.value;
  const perSecond = (pick: Pick): string => {
    const rate = recentRate(history, pick);
    return rate === undefined ? '—' : formatRate(rate);
  };
  const writes = recentRate(history, entries);
  const published = recentRate(history, posts);
  const amplification =
    writes !== undefined && published !== undefined && published > 0 ? writes / published : undefined;
  return (
    <dl class="figures">
      <Figure
        name="Posts"
        value={perSecond(posts)}
        unit="/s"
        note={`${formatCount(feed.postsTotal)} in all`}
      />
      <Figure
        name="Timeline entries"
        value={perSecond(entries)}
        unit="/s"
        note={amplification === undefined ? 'written by fan-out' : `${formatRate(amplification)} a post`}
      />
      <Figure
        name="Home reads"
        value={perSecond(homeReads)}
        unit="/s"
        note={`${formatShare(feed.homeCompleteTotal, feed.homeReadsTotal)} complete`}
      />
      <Figure
        name="Messages completed"
        value={perSecond(completed)}
        unit="/s"
        note={`${formatCount(errored(now))} errored since the start`}
      />
      <Figure
        name="Oldest undelivered post"
        value={formatSeconds(feed.oldestUndeliveredSeconds)}
        note={`oldest message ${formatSeconds(oldestPendingSeconds(now))}`}
      />
      <Figure
        name="Accounts"
        value={formatCount(feed.accounts)}
        note={`${formatCount(feed.follows)} follows`}
      />
    </dl>
  );
}

function Figure({
  name,
  value,
  unit,
  note,
}: {
  readonly name: string;
  readonly value: string;
  readonly unit?: string;
  readonly note: string;
}) {
  return (
    <div class="figure">
      <dt>{name}</dt>
      <dd>
        <span class="figure-value">
          {value}
          {unit !== undefined && value !== '—' && <span class="unit"> {unit}</span>}
        </span>
        <span class="figure-note">{note}</span>
      </dd>
    </div>
  );
}

function Charts() {
  const history = samples.value;
  const shared = { times: timesOf(history), windowSeconds };
  return (
    <section aria-labelledby="overview-charts">
      <h2 id="overview-charts">Last five minutes</h2>
      <div class="charts">
        <Chart
          {...shared}
          title="Messages"
          unit="per second"
          format={formatRate}
          series={[
            { label: 'enqueued', color: 1, values: ratesOf(history, enqueued) },
            { label: 'completed', color: 2, values: ratesOf(history, completed) },
            { label: 'failed, tried again', color: 3, values: ratesOf(history, failed) },
            { label: 'errored', color: 4, values: ratesOf(history, errored) },
          ]}
        />
        <Chart
          {...shared}
          title="Lag by lane"
          unit="seconds"
          format={formatSeconds}
          series={[
            {
              label: 'small authors',
              color: 1,
              values: valuesOf(history, (sample) => sample.feed.lagSeconds.small),
            },
            {
              label: 'big authors',
              color: 2,
              values: valuesOf(history, (sample) => sample.feed.lagSeconds.big),
            },
            {
              label: 'clean-up',
              color: 3,
              values: valuesOf(history, (sample) => sample.feed.lagSeconds.cleanUp),
            },
          ]}
        />
        <Chart
          {...shared}
          title="Feed"
          unit="per second"
          format={formatRate}
          series={[
            { label: 'timeline entries', color: 1, values: ratesOf(history, entries) },
            { label: 'home reads', color: 2, values: ratesOf(history, homeReads) },
            { label: 'posts', color: 3, values: ratesOf(history, posts) },
          ]}
        />
        <Chart
          {...shared}
          title="Oldest waiting"
          unit="seconds"
          format={formatSeconds}
          series={[
            {
              label: 'undelivered post',
              color: 1,
              values: valuesOf(history, (sample) => sample.feed.oldestUndeliveredSeconds),
            },
            { label: 'pending message', color: 2, values: valuesOf(history, oldestPendingSeconds) },
          ]}
        />
      </div>
    </section>
  );
}
