/** The numbers one looks at first, as they are now. */
import type { RunningOverview } from '../api-types.js';
import { formatCount, formatRate, formatSeconds, formatShare } from '../format.js';
import { samples } from './live-overview.js';
import { oldestPendingSeconds, recentRate, type Pick } from './series.js';
import { completed, entries, errored, failed, homeReads, notificationsSent, posts } from './totals.js';

export function Figures({ now }: { readonly now: RunningOverview }) {
  const { feed, queues } = now;
  const history = samples.value;
  const perSecond = (pick: Pick): string => {
    const rate = recentRate(history, pick);
    return rate === undefined ? '—' : formatRate(rate);
  };
  const lag = Math.max(feed.lagSeconds.small, feed.lagSeconds.big);
  const waiting = queues.reduce((sum, queue) => sum + queue.pending, 0);
  return (
    <dl class="figures">
      <Figure
        name="Posts"
        value={perSecond(posts)}
        unit="/s"
        note={`${formatCount(feed.postsTotal)} since the start`}
      />
      <Figure name="Timeline entries" value={perSecond(entries)} unit="/s" note={entriesNote(now)} />
      <Figure
        name="Home reads"
        value={perSecond(homeReads)}
        unit="/s"
        note={
          feed.homeReadsTotal === 0
            ? 'nobody has read yet'
            : `${formatShare(feed.homeCompleteTotal, feed.homeReadsTotal)} complete`
        }
      />
      <Figure name="Oldest undelivered post" value={formatSeconds(lag)} note="publish to last follower" />
      <Figure
        name="Messages completed"
        value={perSecond(completed)}
        unit="/s"
        note={`${formatCount(failed(now))} failed, ${erroredText(now)} errored`}
      />
      <Figure name="Notifications sent" value={perSecond(notificationsSent)} unit="/s" note={sentNote(now)} />
      <Figure
        name="Oldest pending message"
        value={formatSeconds(oldestPendingSeconds(now))}
        note={`${formatCount(waiting)} pending`}
      />
    </dl>
  );
}

/** The price of pushing: what one post costs in writes. */
function entriesNote({ feed }: RunningOverview): string {
  return feed.postsTotal === 0
    ? 'written by fan-out'
    : `${formatRate(feed.entriesWrittenTotal / feed.postsTotal)} a post`;
}

/** Each queue is counted up to a hundred. */
function erroredText(now: RunningOverview): string {
  const isMore = now.queues.some((queue) => queue.errored >= 100);
  return `${formatCount(errored(now))}${isMore ? ' or more' : ''}`;
}

function sentNote({ notify }: RunningOverview): string {
  if (notify.kinds === 0) return 'no kind is defined';
  return `${formatCount(notify.acceptedTotal)} accepted, ${formatCount(notify.attempts.ambiguous)} ambiguous calls`;
}

interface FigureProps {
  readonly name: string;
  readonly value: string;
  readonly unit?: string;
  readonly note: string;
}

function Figure({ name, value, unit, note }: FigureProps) {
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
