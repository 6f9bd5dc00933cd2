/**
 * Fan-out: brings a post into the timelines of its author's followers. One batch or less is written at once; more are cut
 * into ranges of followers that are stored before the first batch is written, so a second run of the splitter finds
 * them. A batch written twice changes nothing, and batches may end in any order.
 */
import type { FeedContext } from './context.js';
import type { BatchWritten, FollowerRange } from './store.js';
import { batchMessage } from './work.js';

const last = '9223372036854775807';

export async function fanOut(context: FeedContext, post: string): Promise<void> {
  const { database, store, options } = context;
  const open = await store.fanOut(database, post);
  if (!open) return;
  const { publishedAt } = open;
  if (open.batches !== undefined)
    return context.enqueue(open.batches.map((batch) => batchMessage({ post, batch, publishedAt })));

  const size = options.batchSize;
  const firstEnd = await store.batchEnd(database, { author: open.author, from: '0', size });
  if (firstEnd === undefined) {
    report(context, await store.writeAll(database, { post, ...batchOptions(context) }));
    return;
  }
  const ranges = await splitFollowers(context, { author: open.author, firstEnd });
  const isStored = await database.transaction(async (transaction) => {
    if (!(await store.storeRanges(transaction, { post, ranges }))) return false;
    const [, ...others] = ranges.keys();
    await context.enqueue(
      others.map((index) => batchMessage({ post, batch: index + 1, publishedAt })),
      transaction,
    );
    return true;
  });
  // Without a message of its own; it gets one when this is not the end of it and the fan-out runs again.
  if (isStored) await fanOutBatch(context, { post, batch: 1 });
}

/** Page after page of the follower index: memory for one number a batch. The last range is open for those who come. */
async function splitFollowers(
  { database, store, options }: FeedContext,
  { author, firstEnd }: { author: string; firstEnd: string },
): Promise<FollowerRange[]> {
  const ranges: FollowerRange[] = [{ from: '0', until: firstEnd }];
  let from = firstEnd;
  for (;;) {
    const until = await store.batchEnd(database, { author, from, size: options.batchSize });
    ranges.push({ from, until: until ?? last });
    if (until === undefined) return ranges;
    from = until;
  }
}

export async function fanOutBatch(
  context: FeedContext,
  input: { post: string; batch: number },
): Promise<void> {
  const { database, store } = context;
  report(context, await store.writeBatch(database, { ...input, ...batchOptions(context) }));
}

function batchOptions(context: FeedContext) {
  const { options } = context;
  return {
    activeMs: options.activeMs,
    entries: options.fanOut !== 'pull',
    timeline: options.timeline,
    now: context.now(),
  };
}

function report(
  { metrics, hints }: FeedContext,
  { written, buckets, endedAfterMs, lane }: BatchWritten,
): void {
  if (written > 0) {
    metrics.add('headgate_feed_timeline_writes_total', { cause: 'fan-out' }, written);
    hints.delivered(buckets);
  }
  if (endedAfterMs !== undefined && lane !== undefined) {
    metrics.observe('headgate_feed_fan_out_seconds', { lane }, endedAfterMs / 1_000);
  }
}
