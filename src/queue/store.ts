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
import type { LeasedMessage, Message, MessageState, Metadata } from './message.js';

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
  | { readonly kind: 'enqueued'; readonly id: string; readonly created: boolean; readonly state: MessageState }
  /** The id is known with another payload; nothing changed. */
  | { readonly kind: 'conflict'; readonly id: string; readonly state: MessageState }
  | { readonly kind: 'refused'; readonly id: string; readonly error: HeadgateError };

export interface LeaseRef {
  readonly id: string;
  readonly leaseToken: string;
}

export type LeaseOutcome =
  | { readonly kind: 'done'; readonly id: string; readonly state: MessageState; readonly version: number; readonly leaseUntil?: number }
  /** The token is not the current one, the lease has ended, or the message is unknown. */
  | { readonly kind: 'lease-lost'; readonly id: string }
  | { readonly kind: 'canceled'; readonly id: string }
  /** Somebody else holds the row this moment; ask again alone. */
  | { readonly kind: 'busy'; readonly id: string }
  | { readonly kind: 'refused'; readonly id: string; readonly error: HeadgateError };

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
  readonly history: 'message' | 'batch' | 'off';
}

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
    /** The caller's own open transaction; understood by stores that live in its database. */
    readonly transaction?: unknown;
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
    readonly leases: readonly (LeaseRef & { readonly result: string | undefined })[];
    readonly transaction?: unknown;
    readonly now: number | undefined;
  }): Promise<LeaseOutcome[]>;

  /** `retryDelayMs` undefined: errored at once. No attempts left: errored whatever it says. */
  fail(request: {
    readonly queue: string;
    readonly leases: readonly (LeaseRef & { readonly error: string; readonly retryDelayMs: number | undefined })[];
    readonly now: number | undefined;
  }): Promise<LeaseOutcome[]>;

  /** Gives back; `refund` takes the spent attempt off again. */
  release(request: {
    readonly queue: string;
    readonly leases: readonly (LeaseRef & { readonly delayMs: number; readonly refund: boolean })[];
    readonly now: number | undefined;
  }): Promise<LeaseOutcome[]>;

  cancel(request: { readonly queue: string; readonly ids: readonly string[]; readonly now: number | undefined }): Promise<
    ({ readonly kind: 'canceled' | 'unknown'; readonly id: string } | { readonly kind: 'terminal'; readonly id: string; readonly state: MessageState })[]
  >;

  get(request: { readonly queue: string; readonly id: string; readonly now: number | undefined }): Promise<Message | undefined>;
  list(request: {
    readonly queue: string;
    readonly state: MessageState;
    readonly where: Metadata;
    /** Opaque cursor of the page before. */
    readonly after: string | undefined;
    readonly limit: number;
    readonly now: number | undefined;
  }): Promise<{ readonly messages: Message[]; readonly next: string | undefined }>;
  depth(request: { readonly queue: string; readonly where: Metadata; readonly now: number | undefined }): Promise<Depth>;
  /** The pending message that has waited longest: its id and age in milliseconds by the store's clock. */
  oldest(request: { readonly queue: string; readonly where: Metadata; readonly now: number | undefined }): Promise<
    { readonly id: string; readonly ageMs: number } | undefined
  >;

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
   * Optional, for a worker of several queues that waits: those of `queues` in which something may be dequeueable, in
   * one statement. May name a queue too many, never one too few.
   */
  ready?(request: { readonly queues: readonly string[]; readonly now: number | undefined }): Promise<string[]>;

  /**
   * One bounded step of what runs in the background: due messages become pending, expired leases go back or become
   * errored, terminal messages past their retention are collected. Answers how many it moved and when (milliseconds
   * from now) something comes due next, if that is known.
   */
  housekeep(request: { readonly now: number | undefined }): Promise<{ readonly moved: number; readonly nextDueMs: number | undefined }>;
}
