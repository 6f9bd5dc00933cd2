/**
 * A ranked home: the hook orders up to 800 candidates once, the order is stored, and cursors point into it for ten
 * minutes, so that one session repeats nothing. What may be shown is checked again for every page.
 */
import type { FeedContext } from './context.js';
import { decodeCursor, encodeCursor } from './cursor.js';
import { feedError } from './errors.js';
import type { Home, HomeItem } from './home.js';
import { asItem, readPage, sourcesOf } from './read-home.js';

const candidatesMax = 800;
const newest = '9223372036854775807';

interface RankedRequest {
  readonly reader: string;
  readonly limit: number;
  readonly after: string | undefined;
  readonly before: string | undefined;
}

/** `at` is a place in the stored order: the first entry of a page towards its end, or the one behind a page back. */
interface Session {
  readonly ranking: string;
  readonly positions: readonly string[];
  readonly at: number;
  readonly sources: Home['sources'];
}

export async function rankedHome(context: FeedContext, request: RankedRequest): Promise<Home> {
  const cursor = request.after ?? request.before;
  const session =
    cursor === undefined
      ? await beginSession(context, request.reader)
      : await continueSession(context, {
          ...request,
          cursor,
          field: request.after === undefined ? 'before' : 'after',
        });
  const back = request.before !== undefined;
  const page = await visiblePage(context, { ...request, session, back });
  return {
    items: page.items,
    next: page.end < session.positions.length ? cursorAt(session, page.end) : undefined,
    previous: page.start > 0 ? cursorAt(session, page.start) : undefined,
    complete: true,
    sources: session.sources,
  };
}

function cursorAt({ ranking }: Session, at: number): string {
  return encodeCursor('ranked', `${ranking}.${at}`);
}

async function beginSession(context: FeedContext, reader: string): Promise<Session> {
  const { rank, ranking } = context.options;
  if (!rank)
    throw feedError('ranking-missing', 'ranked: no ranking hook is configured', {
      field: 'ranked',
      value: true,
    });
  const page = await readPage(context, { reader, limit: candidatesMax, position: newest, older: true });
  const candidates = page.items.slice(0, candidatesMax);
  const positionOf = new Map(candidates.map((item) => [item.id, item.position]));
  const ids = await callHook(() => rank({ reader, candidates: candidates.map(asItem) }));
  const positions = [...new Set(ids)].flatMap((id) => positionOf.get(id) ?? []);
  const number = await context.store.storeRanking(context.database, {
    reader,
    positions,
    perReaderMax: ranking.perReaderMax,
    now: context.now(),
  });
  return { ranking: number, positions, at: 0, sources: sourcesOf(page) };
}

async function callHook(
  hook: () => readonly string[] | Promise<readonly string[]>,
): Promise<readonly string[]> {
  let ids: readonly string[];
  try {
    ids = await hook();
  } catch (cause) {
    throw feedError('ranking-failed', 'the ranking hook threw', { cause });
  }
  if (!Array.isArray(ids))
    throw feedError('ranking-failed', 'the ranking hook did not answer a list of post ids');
  return ids;
}

async function continueSession(
  context: FeedContext,
  { reader, cursor, field }: { reader: string; cursor: string; field: string },
): Promise<Session> {
  const [number = '', at = ''] = decodeCursor('ranked', field, cursor).split('.');
  const positions = await context.store.ranking(context.database, {
    reader,
    number,
    keptMs: context.options.ranking.keptMs,
    now: context.now(),
  });
  if (!positions) {
    throw feedError('cursor-expired', `${field}: this ranking is no longer kept; begin without a cursor`, {
      field,
      value: cursor,
    });
  }
  const sources = {
    timeline: 'none',
    floor: undefined,
    pulledAuthors: 0,
    candidates: positions.length,
    rounds: 1,
  } as const;
  return { ranking: number, positions, at: Number(at), sources };
}

interface VisiblePage {
  readonly items: HomeItem[];
  readonly start: number;
  readonly end: number;
}

/** Entries that may still be seen from `at` on (or back from it) until the page is full. */
async function visiblePage(
  context: FeedContext,
  { reader, limit, session, back }: { reader: string; limit: number; session: Session; back: boolean },
): Promise<VisiblePage> {
  const { positions, at } = session;
  const items: HomeItem[] = [];
  let reached = at;
  while (items.length < limit && (back ? reached > 0 : reached < positions.length)) {
    const size = limit - items.length;
    const chunk = back
      ? positions.slice(Math.max(0, reached - size), reached)
      : positions.slice(reached, reached + size);
    const visible = await context.store.visibleEntries(context.database, { reader, positions: chunk });
    if (back) items.unshift(...visible.map(asItem));
    else items.push(...visible.map(asItem));
    reached += back ? -chunk.length : chunk.length;
  }
  return back ? { items, start: reached, end: at } : { items, start: at, end: reached };
}
