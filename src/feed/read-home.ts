/**
 * Home: one page of a reader's feed, newest first, towards older or newer from a position. Full unless the end is
 * reached; `next` is absent only when there is nothing older.
 */
import { invalidInput } from '../errors.js';
import { activeReadMs, type FeedContext } from './context.js';
import { decodeCursor, encodeCursor } from './cursor.js';
import type { Feed } from './feed.js';
import type { Home, HomeItem, HomeRequest } from './home.js';
import { accountUnknown } from './manage-accounts.js';
import { rankedHome } from './rank-home.js';
import type { HomePage } from './store.js';
import { accountId, pageLimit } from './validate.js';
import { rebuildMessage } from './work.js';

const newest = '9223372036854775807';
const hourMs = 3_600_000;

export function homeMethod(context: FeedContext): Feed['home'] {
  const care = timelineCare(context);
  return async (request) => {
    const reader = accountId('reader', request.reader);
    const limit = pageLimit(request.limit, { fallback: 20, max: 100 });
    if (request.after !== undefined && request.before !== undefined) {
      throw invalidInput('before', request.before, 'either after or before, not both');
    }
    const startedAtMs = context.clock.monotonicMs();
    const home = request.ranked
      ? await rankedHome(context, { reader, limit, after: request.after, before: request.before })
      : await plainHome(context, { reader, limit, request, onPage: care });
    const seconds = (context.clock.monotonicMs() - startedAtMs) / 1_000;
    context.metrics.observe('headgate_feed_home_seconds', { timeline: home.sources.timeline }, seconds);
    context.metrics.add('headgate_feed_home_reads_total', { complete: String(home.complete) });
    context.metrics.add('headgate_feed_home_pulled_authors_total', {}, home.sources.pulledAuthors);
    context.metrics.add('headgate_feed_home_candidates_total', {}, home.sources.candidates);
    return home;
  };
}

interface PlainRequest {
  readonly reader: string;
  readonly limit: number;
  readonly request: Pick<HomeRequest, 'after' | 'before'>;
  readonly onPage?: (page: HomePage) => void;
}

/** Also reads the candidates of a ranking. */
export async function readPage(
  context: FeedContext,
  input: { reader: string; limit: number; position: string; older: boolean },
): Promise<HomePage> {
  const page = await context.store.homePage(context.database, {
    ...input,
    lagMaxMs: context.options.lagMaxMs,
    activeMs: activeReadMs(context.options),
    now: context.now(),
  });
  if (!page) throw accountUnknown('reader', input.reader);
  return page;
}

async function plainHome(
  context: FeedContext,
  { reader, limit, request, onPage }: PlainRequest,
): Promise<Home> {
  const older = request.before === undefined;
  const cursor = older ? request.after : request.before;
  const position = cursor === undefined ? newest : decodeCursor('home', older ? 'after' : 'before', cursor);
  const page = await readPage(context, { reader, limit, position, older });
  onPage?.(page);

  const nearest = page.items.slice(0, limit);
  const more = page.items.length > limit;
  const shown = older ? nearest : nearest.toReversed();
  const [first, last] = [shown[0], shown.at(-1)];
  return {
    items: shown.map(asItem),
    next: older
      ? nextOlder({ page, last: last?.position, more })
      : nextOfNewer({ last: last?.position, position }),
    previous: first ? cursorAt(first.position) : previousOfEmpty({ older, cursor, position, page }),
    complete: true,
    sources: sourcesOf(page),
  };
}

export function sourcesOf(page: HomePage): Home['sources'] {
  return {
    timeline: page.usable ? 'live' : 'none',
    floor: page.usable ? page.floor : undefined,
    pulledAuthors: page.pulledAuthors,
    candidates: page.candidates,
    rounds: page.rounds,
  };
}

export function asItem({ position: _, ...item }: HomePage['items'][number]): HomeItem {
  return item;
}

function cursorAt(position: bigint | string): string {
  return encodeCursor('home', String(position));
}

/** Past the bound of rounds the page may be short; then the cursor stands where the search has come to. */
function nextOlder({ page, last, more }: { page: HomePage; last: string | undefined; more: boolean }) {
  if (more && last !== undefined) return cursorAt(last);
  return page.exhausted ? undefined : cursorAt(page.lastPosition);
}

/** Where a page towards newer began there is something older, whatever has been hidden since. */
function nextOfNewer({ last, position }: { last: string | undefined; position: string }) {
  return cursorAt(last ?? BigInt(position) + 1n);
}

function previousOfEmpty(input: {
  older: boolean;
  cursor: string | undefined;
  position: string;
  page: HomePage;
}) {
  if (input.cursor === undefined) return undefined;
  if (input.older) return cursorAt(BigInt(input.position) - 1n);
  return input.page.exhausted ? input.cursor : cursorAt(input.page.lastPosition);
}

/** What a read may set going beside its answer: a timeline to be built, the reader seen. */
function timelineCare(context: FeedContext): (page: HomePage) => void {
  const { store, database, options } = context;
  // Readers for whom a build was asked lately; the queue makes it one anyway, this saves the round trip.
  const asked = new Map<string, number>();
  return (page) => {
    const nowMs = context.clock.monotonicMs();
    if (!page.usable && page.timeline !== 'pull' && options.fanOut !== 'pull') {
      if (nowMs - (asked.get(page.reader) ?? Number.NEGATIVE_INFINITY) < 2_000) return;
      if (asked.size >= 10_000) asked.clear();
      asked.set(page.reader, nowMs);
      context.background('ask for a timeline to be built', () =>
        context.enqueue([rebuildMessage(page.reader)]),
      );
      return;
    }
    if (page.mergedListIsOld) {
      context.background('list the merged authors whom a reader follows', () =>
        database.transaction((transaction) =>
          store.listMergedFollowees(transaction, { reader: page.reader }),
        ),
      );
    }
    if (page.usable && page.readAt - page.seenAt > hourMs) {
      context.background('note that a reader was seen', () =>
        store.touchReader(database, {
          reader: page.reader,
          activeMs: activeReadMs(options),
          now: context.now(),
        }),
      );
    }
  };
}
