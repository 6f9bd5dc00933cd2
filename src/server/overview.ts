/**
 * The overview: one document with what the first page of the dashboard shows. It is read from the store and the metrics
 * at most once in half a second, however many pages watch.
 */
import { isHeadgateError } from '../errors.js';
import type { FeedMetricName } from '../feed/index.js';
import { createErroredCount } from './errored-count.js';
import { readNotify, type NotifyOverview } from './overview-notify.js';
import type { QueueMetric } from '../queue/index.js';
import type { ServerParts } from './parts.js';

export interface QueueOverview {
  readonly queue: string;
  readonly invisible: number;
  readonly pending: number;
  readonly running: number;
  /** Age in seconds of the oldest pending message. */
  readonly lagSeconds: number;
  readonly enqueuedTotal: number;
  readonly completedTotal: number;
  readonly failedTotal: number;
  /** Messages that have used up their attempts, counted up to 100 and at most every ten seconds. */
  readonly errored: number;
}

export interface FeedOverview {
  readonly postsTotal: number;
  readonly entriesWrittenTotal: number;
  /** Those of `entriesWrittenTotal` that posts caused; the others are of follows and rebuilds. */
  readonly fanOutEntriesTotal: number;
  readonly homeReadsTotal: number;
  readonly homeCompleteTotal: number;
  /** Authors merged at read, over all home reads. */
  readonly pulledAuthorsTotal: number;
  /** Posts looked at, over all home reads. */
  readonly candidatesTotal: number;
  /** Timelines built again. */
  readonly rebuildsTotal: number;
  /** What timelines take, as the workers of this process have found it last; 0 where it has none. */
  readonly timelineBytes: number;
  /** Age of the oldest post that has not reached all its followers. */
  readonly lagSeconds: { readonly small: number; readonly big: number };
}

export interface Overview {
  /** Unix milliseconds of this process. */
  readonly now: number;
  readonly uptimeMs: number;
  readonly durability: string;
  readonly demo: {
    readonly loading: boolean;
    readonly stage: string;
    readonly done: number;
    readonly total: number;
  } | null;
  /** Null while the parts are starting. Totals count since the start of this process. */
  readonly queues: readonly QueueOverview[] | null;
  readonly feed: FeedOverview | null;
  readonly notify: NotifyOverview | null;
}

const reuseMs = 500;

const settled = (queue: string, operation: 'complete' | 'fail') => ({ queue, operation, outcome: 'done' });

async function readQueues(
  { queue, prometheus }: ServerParts,
  errored: (queue: string) => Promise<number>,
): Promise<QueueOverview[]> {
  const sum = (name: QueueMetric, labels: Record<string, string>) => prometheus.sum(name, labels);
  const names = await queue().queues();
  return Promise.all(
    names.map(async (name) => {
      const [{ invisible, pending, running }, oldest] = await Promise.all([
        queue().depth(name),
        queue().oldest(name),
      ]);
      return {
        queue: name,
        invisible,
        pending,
        running,
        lagSeconds: (oldest?.ageMs ?? 0) / 1_000,
        enqueuedTotal: await sum('headgate_queue_enqueued_total', { queue: name, outcome: 'created' }),
        completedTotal: await sum('headgate_queue_settled_total', settled(name, 'complete')),
        failedTotal: await sum('headgate_queue_settled_total', settled(name, 'fail')),
        errored: await errored(name),
      };
    }),
  );
}

async function readFeed({ prometheus }: ServerParts): Promise<FeedOverview> {
  const sum = (name: FeedMetricName, labels: Record<string, string> = {}) => prometheus.sum(name, labels);
  return {
    postsTotal: await sum('headgate_feed_posts_total'),
    entriesWrittenTotal: await sum('headgate_feed_timeline_writes_total'),
    fanOutEntriesTotal: await sum('headgate_feed_timeline_writes_total', { cause: 'fan-out' }),
    homeReadsTotal: await sum('headgate_feed_home_reads_total'),
    homeCompleteTotal: await sum('headgate_feed_home_reads_total', { complete: 'true' }),
    pulledAuthorsTotal: await sum('headgate_feed_home_pulled_authors_total'),
    candidatesTotal: await sum('headgate_feed_home_candidates_total'),
    rebuildsTotal: await sum('headgate_feed_rebuilds_total'),
    timelineBytes: await sum('headgate_feed_timeline_bytes'),
    lagSeconds: {
      small: await sum('headgate_feed_fan_out_lag_seconds', { lane: 'small' }),
      big: await sum('headgate_feed_fan_out_lag_seconds', { lane: 'big' }),
    },
  };
}

export function createOverview(parts: ServerParts): { read(): Promise<Overview> } {
  let latest: Promise<Overview> | undefined;
  let latestAtMs = 0;
  const errored = createErroredCount(parts);

  const compute = async (): Promise<Overview> => {
    const { serving, ready, progress } = parts.readiness();
    const open = serving || ready;
    return {
      now: Date.now(),
      uptimeMs: Math.round(process.uptime() * 1_000),
      durability: parts.durability(),
      demo: progress ? { loading: !ready, ...progress } : null,
      queues: open ? await readQueues(parts, errored) : null,
      feed: open ? await readFeed(parts) : null,
      notify: open ? await readNotify(parts) : null,
    };
  };

  return {
    read() {
      const nowMs = performance.now();
      if (latest && nowMs - latestAtMs < reuseMs) return latest;
      latestAtMs = nowMs;
      latest = compute().catch((error: unknown) => {
        latest = undefined;
        // the parts may be closing while a page still watches
        if (isHeadgateError(error, 'stopped')) return { ...emptyOverview(parts) };
        throw error;
      });
      return latest;
    },
  };
}

function emptyOverview(parts: ServerParts): Overview {
  return {
    now: Date.now(),
    uptimeMs: Math.round(process.uptime() * 1_000),
    durability: parts.durability(),
    demo: null,
    queues: null,
    feed: null,
    notify: null,
  };
}
