/**
 * What each decision costs right now, as this server process has counted it since its start. Only what is counted is
 * shown; a price without anything to divide by says so.
 */
import { call } from '../api.js';
import type { RunningOverview } from '../api-types.js';
import { Facts } from '../facts.js';
import { formatBytes, formatCount, formatRate, formatSeconds, formatShare } from '../format.js';
import { LoadingNotice, ProblemNotice } from '../notice.js';
import { askOnce, overview, overviewProblem } from '../overview/live-overview.js';
import { useResource } from '../resource.js';

interface Stats {
  readonly posts: number;
  readonly liveTimelines: number;
  readonly timelineEntries: number;
  readonly pullAuthors: number;
}

interface Price {
  readonly decision: string;
  readonly price: string;
  readonly value: string;
  readonly made: string;
}

const none = '—';
const per = (part: number, whole: number): string => (whole === 0 ? none : formatRate(part / whole));
const share = (part: number, whole: number): string => (whole === 0 ? none : formatShare(part, whole));

export function PricesPage() {
  const now = overview.value;
  const stats = useResource<Stats>('stats', (signal) => call('/v1/feed/stats', { signal }));
  return (
    <>
      <h1 tabIndex={-1}>Prices</h1>
      <p class="prose">
        Work moves to where and when it is cheapest, and what that costs is counted.{' '}
        {now !== undefined &&
          `These are the counts of this server process in the ${formatSeconds(now.uptimeMs / 1_000)} since its start; other processes have their own, at /metrics.`}
      </p>
      {overviewProblem.value !== undefined && (
        <ProblemNotice problem={overviewProblem.value} onRetry={() => void askOnce()} />
      )}
      {now === undefined ? (
        overviewProblem.value === undefined && <LoadingNotice what="the counts" />
      ) : (
        <>
          <PriceTable name="Feed" prices={feedPrices(now)} />
          <PriceTable name="Notify" prices={notifyPrices(now)} />
          <PriceTable name="Queue" prices={queuePrices(now)} />
        </>
      )}
      <section aria-labelledby="prices-kept">
        <h2 id="prices-kept">What is kept</h2>
        {stats.problem !== undefined && (
          <ProblemNotice problem={stats.problem} onRetry={() => void stats.reload()} />
        )}
        {stats.value === undefined ? (
          stats.loading && <LoadingNotice what="the shape of the graph" />
        ) : (
          <Kept stats={stats.value} timelineBytes={now?.feed.timelineBytes ?? 0} />
        )}
      </section>
    </>
  );
}

function feedPrices({ feed }: RunningOverview): readonly Price[] {
  const repaired = feed.entriesWrittenTotal - feed.fanOutEntriesTotal;
  return [
    {
      decision: 'Posts are pushed into timelines',
      price: 'write amplification: entries a post',
      value: per(feed.fanOutEntriesTotal, feed.postsTotal),
      made: `${formatCount(feed.fanOutEntriesTotal)} entries for ${formatCount(feed.postsTotal)} posts`,
    },
    {
      decision: 'Big authors are merged at read',
      price: 'authors merged a read',
      value: per(feed.pulledAuthorsTotal, feed.homeReadsTotal),
      made: `${formatCount(feed.pulledAuthorsTotal)} authors in ${formatCount(feed.homeReadsTotal)} home reads`,
    },
    {
      decision: 'Visibility is checked at read',
      price: 'posts looked at a read',
      value: per(feed.candidatesTotal, feed.homeReadsTotal),
      made: `${formatCount(feed.candidatesTotal)} posts in ${formatCount(feed.homeReadsTotal)} home reads`,
    },
    {
      decision: 'Timelines can be thrown away',
      price: 'entries written again by follows and rebuilds',
      value: share(repaired, feed.entriesWrittenTotal),
      made: `${formatCount(repaired)} entries, ${formatCount(feed.rebuildsTotal)} timelines built`,
    },
    {
      decision: 'A read answers although a source is away',
      price: 'reads that were not complete',
      value: share(feed.homeReadsTotal - feed.homeCompleteTotal, feed.homeReadsTotal),
      made: `${formatCount(feed.homeReadsTotal - feed.homeCompleteTotal)} of ${formatCount(feed.homeReadsTotal)}`,
    },
  ];
}

function notifyPrices({ notify }: RunningOverview): readonly Price[] {
  const { sent, refused, notAccepted, ambiguous } = notify.attempts;
  const calls = sent + refused + notAccepted + ambiguous;
  const receipts = notify.receiptsMatchedTotal + notify.receiptsUnknownTotal;
  return [
    {
      decision: 'A provider answers when it likes',
      price: 'calls whose outcome nobody knows',
      value: share(ambiguous, calls),
      made: `${formatCount(ambiguous)} of ${formatCount(calls)} calls`,
    },
    {
      decision: 'At least once sends again',
      price: 'calls for a delivery that was sent',
      value: per(calls, notify.finished.sent),
      made: `${formatCount(calls)} calls for ${formatCount(notify.finished.sent)} sent`,
    },
    {
      decision: 'At most once does not',
      price: 'deliveries that ended ambiguous: perhaps lost',
      value: share(notify.finished.ambiguous, notify.acceptedTotal),
      made: `${formatCount(notify.finished.ambiguous)} of ${formatCount(notify.acceptedTotal)} accepted`,
    },
    {
      decision: 'A code is worth nothing when it is late',
      price: 'deliveries that expired',
      value: share(notify.finished.expired, notify.acceptedTotal),
      made: `${formatCount(notify.finished.expired)} of ${formatCount(notify.acceptedTotal)} accepted`,
    },
    {
      decision: 'Another provider after an unknown outcome',
      price: 'attempts that may be duplicates, knowingly',
      value: formatCount(notify.knowingDuplicatesTotal),
      made: 'only kinds that allow it',
    },
    {
      decision: 'The key is asked at the door',
      price: 'sends that were known already',
      value: formatCount(notify.duplicatesTotal),
      made: `beside ${formatCount(notify.acceptedTotal)} deliveries accepted`,
    },
    {
      decision: 'Unknown receipts are kept',
      price: 'receipts without a delivery',
      value: share(notify.receiptsUnknownTotal, receipts),
      made: `${formatCount(notify.receiptsUnknownTotal)} of ${formatCount(receipts)} receipts`,
    },
  ];
}

function queuePrices({ queues }: RunningOverview): readonly Price[] {
  const sum = (pick: (queue: RunningOverview['queues'][number]) => number): number =>
    queues.reduce((total, queue) => total + pick(queue), 0);
  const [completed, failed, errored] = [
    sum(({ completedTotal }) => completedTotal),
    sum(({ failedTotal }) => failedTotal),
    sum(({ errored: count }) => count),
  ];
  return [
    {
      decision: 'A message is delivered at least once',
      price: 'attempts that failed and were made again or given up',
      value: share(failed, completed + failed),
      made: `${formatCount(failed)} of ${formatCount(completed + failed)}; ${formatCount(errored)} messages are errored`,
    },
  ];
}

function PriceTable({ name, prices }: { readonly name: string; readonly prices: readonly Price[] }) {
  const heading = `prices-${name.toLowerCase()}`;
  return (
    <section aria-labelledby={heading}>
      <h2 id={heading}>{name}</h2>
      <div class="table-frame" role="region" aria-label={`Prices of ${name}, scrolls sideways`} tabIndex={0}>
        <table>
          <thead>
            <tr>
              <th scope="col">Decision</th>
              <th scope="col">Its price</th>
              <th scope="col" class="number">
                Now
              </th>
              <th scope="col">Made of</th>
            </tr>
          </thead>
          <tbody>
            {prices.map(({ decision, price, value, made }) => (
              <tr key={decision}>
                <th scope="row">{decision}</th>
                <td>{price}</td>
                <td class="number">{value}</td>
                <td class="muted">{made}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function Kept({ stats, timelineBytes }: { readonly stats: Stats; readonly timelineBytes: number }) {
  const { posts, liveTimelines, timelineEntries, pullAuthors } = stats;
  const facts: readonly (readonly [string, string])[] = [
    ['Timeline entries', formatCount(timelineEntries)],
    ['Timelines', formatCount(liveTimelines)],
    ['Entries a timeline', per(timelineEntries, liveTimelines)],
    ['Bytes of timelines', timelineBytes === 0 ? none : formatBytes(timelineBytes)],
    ['Bytes an entry', timelineBytes === 0 ? none : per(timelineBytes, timelineEntries)],
    ['Posts', formatCount(posts)],
    ['Authors merged at read', formatCount(pullAuthors)],
  ];
  return <Facts rows={facts} />;
}
