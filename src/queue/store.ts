/**
 * The port of the queue: what every store (memory, postgres, redis) does, alike. Inputs have been validated by
 * `queue.ts`. Invariants: every operation on a message is atomic; at most one live lease a message by the store's clock;
 * only the current token changes anything; the order is (priority, order of enqueue); calling again with the same
 * arguments changes nothing more; in a batch each message is answered by itself and in the order of the request.
 *
 * `now` is filled by tests only (see clock.ts); otherwise the store's own clock decides.
 */
import type { Component } from '../lifecycle.js';
import type { HeadgateError } from '../errors.js';
import type { LeasedMessage, Message, MessageEvent, MessageState, Metadata } from './message.js';

/** A message ready to be stored: payload as JSON text, everything that has a default left undefined for the queue's. */
export interface MessageToStore {
  readonly id: string;
  readonly payload: string;
  readonly metadata: Metadata;
  readonly priority: number | undefined;
  readonly delayMs: number | undefined;
  readonly attemptsMax: number | undefined;
  readonly leaseMs: number | undefined;
  readonly uniqueWhileLive: boolean;
  readonly trace: string | undefined;
}

export type EnqueueOutcome =
  /** `created: false`: the id was known; `state` is that of the first one. */
  | {
      readonly kind: 'enqueued';
      readonly id: string;
      readonly created: boolean;
      readonly state: MessageState;
    }
  /** The id is known with another payload; nothing changed. */
  | { readonly kind: 'conflict'; readonly id: string; readonly state: MessageState }
  | { readonly kind: 'refused'; readonly id: string; readonly error: HeadgateError };

export interface LeaseRef {
  readonly id: string;
  readonly leaseToken: string;
}

export type LeaseOutcome =
  | {
      readonly kind: 'done';
      readonly id: string;
      readonly state: MessageState;
      readonly version: number;
      readonly leaseUntil?: number;
    }
  /** The token is not the current one, the lease has ended, or the message is unknown. */
  | { readonly kind: 'lease-lost'; readonly id: string }
  | { readonly kind: 'canceled'; readonly id: string }
  /** Somebody else holds the row this moment; ask again alone. */
  | { readonly kind: 'busy'; readonly id: string }
  | { readonly kind: 'refused'; readonly id: string; readonly error: HeadgateError };

/** What is enqueued in the same step as a completion: all of it, or the completion does not happen. */
export interface FollowUp {
  readonly queue: string;
  readonly messages: readonly MessageToStore[];
}

export type CancelOutcome =
  | { readonly kind: 'canceled' | 'unknown' | 'busy'; readonly id: string }
  | { readonly kind: 'terminal'; readonly id: string; readonly state: MessageState }
  | { readonly kind: 'refused'; readonly id: string; readonly error: HeadgateError };

export interface MessageChange {
  readonly id: string;
  readonly priority: number | undefined;
  /** Unix milliseconds of the store's clock; in the past or now: dequeueable at once. */
  readonly visibleAt: number | undefined;
  readonly payload: string | undefined;
}

export type ChangeOutcome =
  | { readonly kind: 'changed'; readonly id: string; readonly state: MessageState; readonly version: number }
  /** Running or terminal: only a message that waits can be changed. */
  | { readonly kind: 'not-waiting'; readonly id: string; readonly state: MessageState }
  | { readonly kind: 'unknown' | 'busy'; readonly id: string }
  | { readonly kind: 'refused'; readonly id: string; readonly error: HeadgateError };

export type RequeueOutcome =
  | { readonly kind: 'requeued'; readonly id: string; readonly state: MessageState; readonly version: number }
  | { readonly kind: 'not-errored'; readonly id: string; readonly state: MessageState }
  | { readonly kind: 'unknown' | 'busy'; readonly id: string }
  | { readonly kind: 'refused'; readonly id: string; readonly error: HeadgateError };

/** A message that is enqueued again and again: `next` is the tick that has not been enqueued yet. */
export interface Recurring {
  readonly name: string;
  readonly queue: string;
  readonly cron: string;
  readonly timeZone: string;
  /** Template of the message; its id is made of the name and the tick. */
  readonly message: MessageToStore;
  /** Unix milliseconds. */
  readonly next: number;
}

export interface DequeueRequest {
  readonly queue: string;
  readonly count: number;
  readonly where: Metadata;
  readonly leaseMs: number | undefined;
  /** Begins the lease tokens; a repeat gives the same leases while they run. */
  readonly requestId: string;
  readonly worker: string | undefined;
  readonly now: number | undefined;
}

export interface QueueConfiguration {
  readonly type: { readonly kind: 'simple' } | { readonly kind: 'exclusive'; readonly key: string };
  readonly leaseMs: number;
  readonly delayMs: number;
  readonly attemptsMax: number;
  /** How long terminal messages are kept, by state, in milliseconds. */
  readonly retentionMs: { readonly completed: number; readonly canceled: number; readonly errored: number };
  readonly enqueueBlocked: boolean;
  readonly dequeueBlocked: boolean;
  /** At most `count` messages are handed out in any window of `perMs`. */
  readonly rateLimit: { readonly count: number; readonly perMs: number } | undefined;
  /** One stored event a message and change, one a batch, or none. */
  readonly history: 'message' | 'batch' | 'off';
}

/** What a queue is until it is configured. */
export const configurationDefault: QueueConfiguration = {
  type: { kind: 'simple' },
  leaseMs: 30_000,
  delayMs: 0,
  attemptsMax: 3,
  retentionMs: { completed: 86_400_000, canceled: 86_400_000, errored: 7 * 86_400_000 },
  enqueueBlocked: false,
  dequeueBlocked: false,
  rateLimit: undefined,
  history: 'batch',
};

/** Who repeats a settled lease gets the same answer for this long at least, whatever the retention. */
export const settledTokenMs = 60_000;

export interface Depth {
  readonly invisible: number;
  readonly pending: number;
  readonly running: number;
  readonly exact: boolean;
  readonly asOf: number;
}

export interface QueueStore extends Component {
  readonly name: string;

  enqueue(request: {
    readonly queue: string;
    readonly messages: readonly MessageToStore[];
    /** All ids were made for this call: a hint that none is known. Default false. */
    readonly newIds?: boolean;
    /** The caller's own open transaction; understood by stores that live in its database. */
    readonly transaction?: unknown;
    /** False leaves the wake-up out of a caller's transaction: waiting dequeues see the messages within 1 s. Default true. */
    readonly wake?: boolean;
    readonly now: number | undefined;
  }): Promise<EnqueueOutcome[]>;

  dequeue(request: DequeueRequest): Promise<LeasedMessage[]>;

  extend(request: {
    readonly queue: string;
    readonly leases: readonly (LeaseRef & { readonly leaseMs: number | undefined })[];
    readonly now: number | undefined;
  }): Promise<LeaseOutcome[]>;

  complete(request: {
    readonly queue: string;
    readonly leases: readonly (LeaseRef & {
      readonly result: string | undefined;
      readonly followUps?: readonly FollowUp[];
    })[];
    readonly transaction?: unknown;
    readonly now: number | undefined;
  }): Promise<LeaseOutcome[]>;

  /** `retryDelayMs` undefined: errored at once. No attempts left: errored whatever it says. */
  fail(request: {
    readonly queue: string;
    readonly leases: readonly (LeaseRef & {
      readonly error: string;
      readonly retryDelayMs: number | undefined;
    })[];
    readonly now: number | undefined;
  }): Promise<LeaseOutcome[]>;

  /** Gives back; `refund` takes the spent attempt off again. */
  release(request: {
    readonly queue: string;
    readonly leases: readonly (LeaseRef & { readonly delayMs: number; readonly refund: boolean })[];
    readonly now: number | undefined;
  }): Promise<LeaseOutcome[]>;

  cancel(request: {
    readonly queue: string;
    readonly ids: readonly string[];
    readonly now: number | undefined;
  }): Promise<CancelOutcome[]>;

  /** Changes messages that wait. Repeating it changes nothing more. */
  change(request: {
    readonly queue: string;
    readonly changes: readonly MessageChange[];
    readonly now: number | undefined;
  }): Promise<ChangeOutcome[]>;
  /** Errored messages wait again, with their attempts to spend anew. */
  requeue(request: {
    readonly queue: string;
    readonly ids: readonly string[];
    readonly now: number | undefined;
  }): Promise<RequeueOutcome[]>;
  /** One bounded step: forgets at most `limit` messages of one state, running ones excepted. */
  purge(request: {
    readonly queue: string;
    readonly state: Exclude<MessageState, 'running'>;
    readonly limit: number;
    readonly now: number | undefined;
  }): Promise<{
    readonly removed: number;
  }>;

  get(request: {
    readonly queue: string;
    readonly id: string;
    readonly now: number | undefined;
  }): Promise<Message | undefined>;
  list(request: {
    readonly queue: string;
    readonly state: MessageState;
    readonly where: Metadata;
    /** Opaque cursor of the page before. */
    readonly after: string | undefined;
    readonly limit: number;
    /** Of ended messages: those that were enqueued last come first. Live ones come as they go on. Default false. */
    readonly newestFirst?: boolean;
    readonly now: number | undefined;
  }): Promise<{ readonly messages: Message[]; readonly next: string | undefined }>;
  depth(request: {
    readonly queue: string;
    readonly where: Metadata;
    readonly now: number | undefined;
  }): Promise<Depth>;
  /** The pending message that has waited longest: its id and age in milliseconds by the store's clock. */
  oldest(request: {
    readonly queue: string;
    readonly where: Metadata;
    readonly now: number | undefined;
  }): Promise<{ readonly id: string; readonly ageMs: number } | undefined>;

  /** Every change of a message that is still known, by version; empty for a queue without history. */
  history(request: {
    readonly queue: string;
    readonly id: string;
    readonly now: number | undefined;
  }): Promise<MessageEvent[]>;
  /** Calls `listener` with the changes that this process makes. Best effort: never awaited, never an answer's condition. */
  onEvents(listener: (events: readonly MessageEvent[]) => void): () => void;

  /** Sets, by name; `next` of one that exists with the same cron and time zone is kept. */
  putRecurring(recurring: Recurring): Promise<void>;
  removeRecurring(name: string): Promise<boolean>;
  /** All, or those due by the store's clock. */
  recurring(request: { readonly due: boolean; readonly now: number | undefined }): Promise<Recurring[]>;
  /** Moves `next` on if it is still `from`. */
  advanceRecurring(request: {
    readonly name: string;
    readonly from: number;
    readonly next: number;
  }): Promise<boolean>;
  /** The store's clock, unix milliseconds. */
  time(now: number | undefined): Promise<number>;

  queues(): Promise<string[]>;
  configuration(queue: string): Promise<QueueConfiguration>;
  configure(queue: string, change: Partial<QueueConfiguration>): Promise<QueueConfiguration>;

  /** Hints that something may have become dequeueable in one of `queues`; the answer ends it. */
  watch(queues: readonly string[], onHint: (queue: string) => void): Promise<() => Promise<void>>;

  /**
   * Optional, for a worker under load: `complete` and then `dequeue` of one queue in one round trip. It promises exactly
   * what the two promise alone: every lease is answered by itself and in order, what the completions free (exclusivity
   * values) is dequeueable in the same call, and a repeat with the same tokens and `requestId` gives the same answer.
   * When it throws, the caller repeats all of it. `dequeue.queue` is `queue`.
   */
  settleAndDequeue?(request: {
    readonly queue: string;
    readonly complete: readonly (LeaseRef & { readonly result: string | undefined })[];
    readonly dequeue: DequeueRequest;
    readonly now: number | undefined;
  }): Promise<{ readonly completed: LeaseOutcome[]; readonly messages: LeasedMessage[] }>;

  /**
   * Optional: calls that are on their way at once are carried out at once. Under load a dequeue and completions are then
   * sooner done as two calls than in one; and of two dequeues the later may be carried out first.
   */
  readonly sideBySide?: boolean;

  /**
   * Optional, for a worker of several queues that waits: those of `queues` in which something may be dequeueable, in
   * one statement. May name a queue too many, never one too few.
   */
  ready?(request: {
    readonly queues: readonly string[];
    readonly now: number | undefined;
  }): Promise<string[]>;

  /**
   * One bounded step of what runs in the background: due messages become pending, expired leases go back or become
   * errored, terminal messages past their retention are collected. Answers how many it moved and when (milliseconds
   * from now) something comes due next, if that is known.
   */
  housekeep(request: {
    readonly now: number | undefined;
  }): Promise<{ readonly moved: number; readonly nextDueMs: number | undefined }>;
}
