/** The last five minutes as small charts of one thing each, so that a large number never flattens a small one. */
import { Chart } from '../chart.js';
import { formatRate, formatSeconds, secondSteps } from '../format.js';
import { samples, windowSeconds } from './live-overview.js';
import { oldestPendingSeconds, ratesOf, timesOf, valuesOf } from './series.js';
import { completed, enqueued, entries, failed, homeReads, incompleteReads, posts } from './totals.js';

export function Charts() {
  const history = samples.value;
  const times = timesOf(history);
  const perSecond = { times, windowSeconds, unit: 'per second', format: formatRate };
  const inSeconds = { times, windowSeconds, unit: 'seconds', format: formatSeconds, steps: secondSteps };
  return (
    <section aria-labelledby="overview-charts">
      <h2 id="overview-charts">Last five minutes</h2>
      <div class="charts">
        <Chart
          {...perSecond}
          title="Posts"
          series={[{ label: 'published', color: 1, values: ratesOf(history, posts) }]}
        />
        <Chart
          {...perSecond}
          title="Timeline entries"
          series={[{ label: 'written by fan-out', color: 1, values: ratesOf(history, entries) }]}
        />
        <Chart
          {...perSecond}
          title="Home reads"
          series={[
            { label: 'all', color: 1, values: ratesOf(history, homeReads) },
            { label: 'not complete', color: 4, values: ratesOf(history, incompleteReads) },
          ]}
        />
        <Chart
          {...perSecond}
          title="Messages"
          series={[
            { label: 'enqueued', color: 1, values: ratesOf(history, enqueued) },
            { label: 'completed', color: 2, values: ratesOf(history, completed) },
            { label: 'failed', color: 4, values: ratesOf(history, failed) },
          ]}
        />
        <Chart
          {...inSeconds}
          title="Lag by lane"
          series={[
            {
              label: 'small authors',
              color: 1,
              values: valuesOf(history, ({ feed }) => feed.lagSeconds.small),
            },
            { label: 'big authors', color: 2, values: valuesOf(history, ({ feed }) => feed.lagSeconds.big) },
          ]}
        />
        <Chart
          {...inSeconds}
          title="Oldest pending message"
          series={[{ label: 'over all queues', color: 1, values: valuesOf(history, oldestPendingSeconds) }]}
        />
      </div>
    </section>
  );
}
