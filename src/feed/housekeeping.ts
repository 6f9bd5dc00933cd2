/**
 * What runs beside the feed in bounded steps: follower counts folded and modes switched, timelines trimmed, fan-outs that
 * were canceled or lost found. Every step may be run by several processes at once.
 */
import type { FeedContext } from './context.js';
import { fanOut, fanOutBatch } from './fan-out.js';
import type { FeedOptions } from './options.js';
import type { OpenFanOut } from './store.js';
import { batchMessage, fanOutMessage, feedQueues, type WorkMessage } from './work.js';

const sweepMax = 100;

/** From how many followers on an author is pulled, and below how many pushed again; undefined: modes never change here. */
function thresholdOf({ fanOut, threshold }: FeedOptions): FeedOptions['threshold'] | undefined {
  // Always pushed: no count is high enough for pull, and every one is low enough for push.
  const never = Number.MAX_SAFE_INTEGER;
  if (fanOut === 'push') return { pullFrom: never, pushBelow: never };
  return fanOut === 'pull' ? undefined : threshold;
}

/** Adds all waiting changes to the follower counts, and switches the authors that cross the threshold by that. */
export async function foldFollowers(context: FeedContext): Promise<void> {
  const { database, store, options } = context;
  const threshold = thresholdOf(options);
  const rowsMax = options.stepRowsMax;
  for (;;) {
    const bounds = threshold ?? { pullFrom: Number.MAX_SAFE_INTEGER, pushBelow: 0 };
    const { taken, crossed } = await store.foldFollowers(database, { rowsMax, ...bounds });
    for (const account of crossed) await switchMode(context, account);
    if (taken < rowsMax) return;
  }
}

/** Looks at a bounded number of authors, going round: thresholds change, and imports count without looking. */
export async function sweepModes(context: FeedContext): Promise<boolean> {
  const { database, store, options } = context;
  const threshold = thresholdOf(options);
  if (threshold === undefined) return true;
  const from = await store.progress(database, 'modes');
  const step = await store.authorsToSwitch(database, {
    position: from,
    ...threshold,
    rowsMax: options.stepRowsMax,
  });
  for (const account of step.crossed) await switchMode(context, account);
  const to = step.position ?? '0';
  if (to !== from) await store.setProgress(database, { name: 'modes', position: to });
  return step.position === undefined;
}

async function switchMode(
  { database, store, options, metrics, now }: FeedContext,
  account: string,
): Promise<void> {
  const threshold = thresholdOf(options);
  if (threshold === undefined) return;
  const mode = await database.transaction((transaction) =>
    store.switchMode(transaction, { account, ...threshold, now: now() }),
  );
  if (mode !== undefined) metrics.add('headgate_feed_mode_switches_total', { mode });
}

/** Numbers a bounded number of authors that have come to be merged at read; answers whether none is left. */
export async function numberMerged({ database, store, options }: FeedContext): Promise<boolean> {
  // Without timelines nobody asks who is merged.
  if (options.fanOut === 'pull') return true;
  const rowsMax = options.stepRowsMax;
  return (
    (await database.transaction((transaction) => store.numberMerged(transaction, { rowsMax }))) < rowsMax
  );
}

/** Trims a bounded number of timelines, going round; answers whether the round has ended. */
export async function trimSome({ database, store, options, metrics }: FeedContext): Promise<boolean> {
  const { position, trimmed } = await database.transaction(async (transaction) => {
    const from = await store.progress(transaction, 'trim');
    const step = await store.trimStep(transaction, { position: from, ...options.timeline });
    const to = step.position ?? '0';
    if (to !== from) await store.setProgress(transaction, { name: 'trim', position: to });
    return step;
  });
  if (trimmed > 0) metrics.add('headgate_feed_trimmed_entries_total', {}, trimmed);
  return position === undefined;
}

/**
 * Looks after fan-outs that are older than the lag bound: one whose message ended other than completed is given up, which
 * makes its author's posts merge at read; one whose message is unknown is enqueued again.
 */
export async function sweepFanOuts(context: FeedContext): Promise<void> {
  const { database, store, options } = context;
  const overdue = await store.overdueFanOuts(database, {
    olderThanMs: options.lagMaxMs,
    limit: sweepMax,
    now: context.now(),
  });
  for (const fanOut of overdue) await lookAfter(context, fanOut);
}

async function lookAfter(context: FeedContext, fanOut: OpenFanOut): Promise<void> {
  for (const work of messagesOf(fanOut)) {
    const message = await context.queue.get(work.queue, work.message.id ?? '');
    if (message?.state === 'canceled' || message?.state === 'errored') {
      await giveUpFanOut(context, { post: fanOut.post, lane: fanOut.lane });
      return;
    }
    if (message === undefined) await context.enqueue([work]);
    // Its id is taken, so it cannot be enqueued again: a queue outside the database may have been ahead of the commit.
    else if (message.state === 'completed') await work.run(context);
  }
}

interface SweptWork extends WorkMessage {
  run(context: FeedContext): Promise<void>;
}

function messagesOf({ post, lane, batches, publishedAt }: OpenFanOut): SweptWork[] {
  if (batches === undefined)
    return [{ ...fanOutMessage(post, lane), run: (context) => fanOut(context, post) }];
  return batches.slice(0, sweepMax).map((batch) => ({
    ...batchMessage({ post, batch, publishedAt }),
    run: (context) => fanOutBatch(context, { post, batch }),
  }));
}

export async function giveUpFanOut(
  { database, store, log, metrics, now }: FeedContext,
  { post, lane }: { post: string; lane?: 'small' | 'big' },
): Promise<void> {
  if (!(await store.failFanOut(database, { post, now: now() }))) return;
  metrics.add('headgate_feed_fan_outs_failed_total', { lane: lane ?? 'small' });
  log.warn(
    { post },
    'a fan-out ended other than completed; posts of its author until now are merged at read',
  );
}

/** Canceled and errored fan-outs of this process are given up at once; the sweep finds those of others. */
export function watchFanOuts(context: FeedContext, postOf: (id: string) => string | undefined): () => void {
  const queues: readonly string[] = [feedQueues.small, feedQueues.big];
  return context.queue.onEvent((event) => {
    if ((event.to !== 'canceled' && event.to !== 'errored') || !queues.includes(event.queue)) return;
    const post = postOf(event.id);
    if (post === undefined) return;
    const lane = event.queue === feedQueues.big ? 'big' : 'small';
    context.background('give up a fan-out', () => giveUpFanOut(context, { post, lane }));
  });
}

/** What timelines take; nothing is said while their servers are away. */
export async function reportBytes({ database, store, metrics, log }: FeedContext): Promise<void> {
  try {
    const bytes = await store.timelineBytes(database);
    metrics.set('headgate_feed_timeline_bytes', { store: store.apart?.name ?? store.name }, bytes);
  } catch (error) {
    if (!store.apart) throw error;
    log.debug({ error }, 'the size of timelines is not known');
  }
}

/** Age of the oldest unfinished fan-out, by lane. */
export async function reportLag({ database, store, metrics, now }: FeedContext): Promise<void> {
  for (const [lane, seconds] of Object.entries(await store.fanOutLag(database, { now: now() }))) {
    metrics.set('headgate_feed_fan_out_lag_seconds', { lane }, seconds);
  }
}
