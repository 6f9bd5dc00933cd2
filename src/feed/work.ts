/**
 * The feed's work on the queue: which messages there are, on which lane each runs, and under which id, so that the same
 * work enqueued twice is one message.
 */
import type { JsonValue, NewMessage } from '../queue/index.js';
import type { FanOutLane } from './operate.js';

/**
 * small: fan-outs of one batch. big: splitting, and the batches of big authors. repair: timelines to be filled.
 * cleanUp: what nobody waits for.
 */
export const feedQueues = {
  small: 'feed-small',
  big: 'feed-big',
  repair: 'feed-repair',
  cleanUp: 'feed-clean-up',
} as const;

export type FeedQueue = (typeof feedQueues)[keyof typeof feedQueues];

export type Work =
  | { readonly kind: 'fan-out'; readonly post: string }
  | { readonly kind: 'batch'; readonly post: string; readonly batch: number }
  | { readonly kind: 'backfill'; readonly reader: string; readonly author: string }
  | { readonly kind: 'rebuild'; readonly reader: string }
  | { readonly kind: 'forget'; readonly reader: string; readonly author: string }
  | { readonly kind: 'erase'; readonly account: string };

export interface WorkMessage {
  readonly queue: FeedQueue;
  readonly message: NewMessage;
}

// A failed step is retried for about a quarter of an hour before it counts as failed.
const attemptsMax = 10;

export function fanOutMessage(post: string, lane: FanOutLane): WorkMessage {
  const work: Work = { kind: 'fan-out', post };
  return { queue: feedQueues[lane], message: { id: `fan-out:${post}`, payload: { ...work }, attemptsMax } };
}

/** After a server of timelines has come back as another one: the id of the first message is taken. */
export function fanOutAgainMessage(post: string, lane: FanOutLane): WorkMessage {
  const work: Work = { kind: 'fan-out', post };
  const message = { id: `fan-out-again:${post}`, payload: { ...work }, attemptsMax, uniqueWhileLive: true };
  return { queue: feedQueues[lane], message };
}

/** What was published first goes first: an entry that arrives behind a newer one is dear in some stores of timelines. */
export function batchMessage(input: { post: string; batch: number; publishedAt: number }): WorkMessage {
  const { post, batch, publishedAt } = input;
  const work: Work = { kind: 'batch', post, batch };
  const id = `batch:${post}:${batch}`;
  return { queue: feedQueues.big, message: { id, payload: { ...work }, priority: publishedAt, attemptsMax } };
}

/** One for each follow, and a delayed one for the history that its end may keep. */
export function backfillMessage(input: {
  reader: string;
  author: string;
  generation: string;
  delayMs?: number;
}): WorkMessage {
  const { reader, author, generation, delayMs } = input;
  const work: Work = { kind: 'backfill', reader, author };
  const id = `backfill:${reader}:${author}:${generation}${delayMs === undefined ? '' : ':kept'}`;
  const message = { id, payload: { ...work }, attemptsMax };
  return { queue: feedQueues.repair, message: delayMs === undefined ? message : { ...message, delayMs } };
}

/** One at a time and reader; a new one may follow as soon as it has ended. */
export function rebuildMessage(reader: string): WorkMessage {
  const work: Work = { kind: 'rebuild', reader };
  return {
    queue: feedQueues.repair,
    message: { id: `rebuild:${reader}`, payload: { ...work }, attemptsMax, uniqueWhileLive: true },
  };
}

export function forgetMessage(reader: string, author: string): WorkMessage {
  const work: Work = { kind: 'forget', reader, author };
  return { queue: feedQueues.cleanUp, message: { payload: { ...work }, attemptsMax } };
}

export function eraseMessage(account: string): WorkMessage {
  const work: Work = { kind: 'erase', account };
  return {
    queue: feedQueues.cleanUp,
    message: { id: `erase:${account}`, payload: { ...work }, attemptsMax, uniqueWhileLive: true },
  };
}

/** Reads a payload back; undefined for one that no version of the feed has written. */
export function parseWork(payload: JsonValue): Work | undefined {
  if (typeof payload !== 'object' || payload === null || Array.isArray(payload)) return undefined;
  const { kind, post, batch, reader, author, account } = payload as Readonly<Record<string, JsonValue>>;
  const texts = (...values: (JsonValue | undefined)[]) => values.every((value) => typeof value === 'string');
  switch (kind) {
    case 'fan-out':
      return texts(post) ? { kind, post: post as string } : undefined;
    case 'batch':
      return texts(post) && typeof batch === 'number' ? { kind, post: post as string, batch } : undefined;
    case 'backfill':
    case 'forget':
      return texts(reader, author) ? { kind, reader: reader as string, author: author as string } : undefined;
    case 'rebuild':
      return texts(reader) ? { kind, reader: reader as string } : undefined;
    case 'erase':
      return texts(account) ? { kind, account: account as string } : undefined;
    default:
      return undefined;
  }
}

/** The post behind the id of a fan-out's or batch's message. */
export function postOfMessage(id: string): string | undefined {
  return /^(?:fan-out|batch):(\d{19})(?::\d+)?$/.exec(id)?.[1];
}
