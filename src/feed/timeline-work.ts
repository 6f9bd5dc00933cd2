/** Work on one reader's timeline: backfill after a follow, building it anew, tidying after an unfollow. */
import type { Queryable } from '../database/index.js';
import { activeReadMs, type FeedContext } from './context.js';
import { rebuildMessage } from './work.js';

export async function backfill(
  context: FeedContext,
  entry: { reader: string; author: string },
): Promise<void> {
  const { store, options, metrics } = context;
  const { activeMs, timeline } = options;
  const written = await withTimeline(context, entry.reader, (on) =>
    store.backfill(on, { ...entry, entriesMax: timeline.entriesMax, activeMs, now: context.now() }),
  );
  if (written > 0) metrics.add('headgate_feed_timeline_writes_total', { cause: 'backfill' }, written);
}

export async function forgetAuthor(
  context: FeedContext,
  entry: { reader: string; author: string },
): Promise<void> {
  await withTimeline(context, entry.reader, (on) => context.store.forgetAuthor(on, entry));
}

/** In a transaction with the reader locked; timelines outside the database are written with none open. */
async function withTimeline<T>(
  { database, store }: FeedContext,
  reader: string,
  work: (on: Queryable) => Promise<T>,
): Promise<T> {
  if (store.apart) return work(database);
  return database.transaction(async (transaction) => {
    await store.lockReaders(transaction, [reader]);
    return work(transaction);
  });
}

export interface Rebuilt {
  readonly kind: 'rebuilt' | 'pulled' | 'superseded';
  readonly entries: number;
}

/**
 * Builds in two transactions: the timeline takes entries from the first one on, and only then the posts are looked up, so
 * that a post which arrives meanwhile is in one of the two. Reads are pulled until the second has committed.
 */
export async function rebuild(context: FeedContext, reader: string): Promise<Rebuilt> {
  const { database, store, options, metrics } = context;
  const token = await database.transaction(async (transaction) => {
    await store.lockReaders(transaction, [reader]);
    const tooMany = await store.followsMoreThan(transaction, { account: reader, max: options.followeesMax });
    if (tooMany || options.fanOut === 'pull') {
      await store.dropTimeline(transaction, { reader, state: tooMany ? 'pull' : 'none' });
      return undefined;
    }
    return store.beginBuild(transaction, { reader, now: context.now() });
  });
  if (token === undefined) return reported(context, { kind: 'pulled', entries: 0 });
  const { activeMs, timeline } = options;
  const entries = await withTimeline(context, reader, (on) =>
    store.finishBuild(on, {
      reader,
      token,
      entriesMax: timeline.entriesMax,
      activeMs,
      now: context.now(),
    }),
  );
  if (entries === undefined) return reported(context, { kind: 'superseded', entries: 0 });
  metrics.add('headgate_feed_timeline_writes_total', { cause: 'rebuild' }, entries);
  return reported(context, { kind: 'rebuilt', entries });
}

function reported({ metrics }: FeedContext, rebuilt: Rebuilt): Rebuilt {
  metrics.add('headgate_feed_rebuilds_total', { outcome: rebuilt.kind });
  return rebuilt;
}

/** Builds the timeline if reads cannot use it; one that was dropped meanwhile is asked for again. */
export async function rebuildIfNeeded(context: FeedContext, reader: string): Promise<void> {
  const { database, store, options } = context;
  const input = { reader, activeMs: activeReadMs(options), now: context.now() };
  const state = await store.readerState(database, input);
  if (!state || state.usable || state.state === 'pull') return;
  const { kind } = await rebuild(context, reader);
  if (kind === 'superseded')
    context.background('build again', () => context.enqueue([rebuildMessage(reader)]));
}
