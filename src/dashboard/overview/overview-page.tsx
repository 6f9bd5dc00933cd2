/** The overview: what flows through the product this second, how old the oldest work is, and what a write survives. */
import { LoadingNotice, ProblemNotice } from '../notice.js';
import { Charts } from './charts.js';
import { Figures } from './figures.js';
import { askOnce, overview, overviewProblem, samples, startup } from './live-overview.js';
import { LoadingProgress } from './loading-progress.js';
import { World } from './world.js';
import { QueueTable } from './queue-table.js';

export function OverviewPage() {
  const now = overview.value;
  return (
    <>
      <h1 tabIndex={-1}>Overview</h1>
      {overviewProblem.value !== undefined && (
        <ProblemNotice problem={overviewProblem.value} onRetry={() => void askOnce()} />
      )}
      {startup.value !== undefined && <LoadingProgress {...startup.value} title="The server is starting" />}
      {now === undefined ? (
        startup.value === undefined &&
        overviewProblem.value === undefined && <LoadingNotice what="the overview" />
      ) : (
        <>
          {now.demo?.loading === true && <LoadingProgress {...now.demo} title="The demo world is loading" />}
          <Figures now={now} />
          <Charts />
          <World />
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
