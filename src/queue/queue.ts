/**
 * The facade of the queue, as callers see it. A batch is answered message by message in the order of the request; misuse
 * of the call as a whole throws.
 */
import type { Clock } from '../clock.js';
import type { Component } from '../lifecycle.js';
import type { Log } from '../log.js';
import type { MetricsBackend } from '../metrics.js';
import type { EventListener } from './events.js';
import { StoreQueue } from './facade.js';
import type {
  JsonValue,
  LeasedMessage,
  Message,
  MessageEvent,
  MessageState,
  Metadata,
  NewMessage,
} from './message.js';
import type { QueueLimits } from './options.js';
import type {
  CancelOutcome,
  ChangeOutcome,
  Depth,
  EnqueueOutcome,
  LeaseOutcome,
  LeaseRef,
  QueueConfiguration,
  QueueStore,
  Recurring,
  RequeueOutcome,
} from './store.js';

export interface QueueOptions {
  readonly store: QueueStore;
  /** Default: says nothing. */
  readonly log?: Log;
  /** Default: counts nothing. */
  readonly metrics?: MetricsBackend;
  readonly clock?: Clock;
  readonly limits?: Partial<QueueLimits>;
}

export interface EnqueueOptions {
  /**
   * The caller's own open transaction: the messages are there when it commits and never were when it rolls back. A
   * transaction of `database`, a pg client, a PGlite transaction, or one of Kysely, Drizzle, Prisma or postgres.js.
   */
  readonly transaction?: unknown;
  /** False leaves the wake-up out of that transaction; a waiting dequeue then sees the messages within 1 s. Default true. */
  readonly wake?: boolean;
}

export interface DequeueOptions {
  /** Default 1, at most the batch limit. */
  readonly count?: number;
  /** Pairs that a message must have. Default: all messages. */
  readonly where?: Metadata;
  /** Milliseconds. Default: the message's, else the queue's. */
  readonly leaseMs?: number;
  /** How long to wait for a message, in milliseconds. Default 0. */
  readonly waitMs?: number;
  /** Repeat a dequeue whose answer was lost with the same id: it gives the same leases. Default: a new one. */
  readonly requestId?: string;
  /** Name of the worker, for those who look. */
  readonly worker?: string;
  /** Ends the waiting early. */
  readonly signal?: AbortSignal;
}

export interface ListOptions {
  readonly state: MessageState;
  readonly where?: Metadata;
  /** `next` of the page before. */
  readonly after?: string | undefined;
  /** Default 100, at most 1,000. */
  readonly limit?: number;
  /** Of ended messages: those that were enqueued last come first. Refused for live states. Default false. */
  readonly newestFirst?: boolean;
}

export interface CompleteLease extends LeaseRef {
  readonly result?: JsonValue | undefined;
  /** Enqueued in the same step: either the completion and all of these, or nothing. */
  readonly followUps?: readonly { readonly queue: string; readonly messages: readonly NewMessage[] }[];
}

export interface RecurOptions {
  /** Sets the recurring message of this name; up to 200 bytes. */
  readonly name: string;
  readonly queue: string;
  /** Five fields: minute, hour, day of month, month, day of week. */
  readonly cron: string;
  /** IANA name. Default `UTC`. A tick that a clock change skips comes at the end of the gap, one that it repeats comes once. */
  readonly timeZone?: string;
  /** Its id is made of the name and the tick. */
  readonly message: Omit<NewMessage, 'id'>;
}

export interface Queue extends Component {
  readonly store: QueueStore;

  /** Default for ids: time-ordered and random. A queue is made by its first message. */
  enqueue(
    queue: string,
    messages: readonly NewMessage[],
    options?: EnqueueOptions,
  ): Promise<EnqueueOutcome[]>;
  /** The most urgent messages by (priority, order of enqueue), each leased to this caller alone. */
  dequeue(queue: string, options?: DequeueOptions): Promise<LeasedMessage[]>;
  /** The lease ends `leaseMs` (default: the message's own) from now. */
  extend(
    queue: string,
    leases: readonly (LeaseRef & { readonly leaseMs?: number | undefined })[],
  ): Promise<LeaseOutcome[]>;
  complete(
    queue: string,
    leases: readonly CompleteLease[],
    options?: { readonly transaction?: unknown },
  ): Promise<LeaseOutcome[]>;
  /** Without `retryDelayMs`, or without attempts left, the message is errored. */
  fail(
    queue: string,
    leases: readonly (LeaseRef & { readonly error: unknown; readonly retryDelayMs?: number | undefined })[],
  ): Promise<LeaseOutcome[]>;
  /** Gives back. Defaults: `delayMs` 0; `refund` true, the attempt does not count. */
  release(
    queue: string,
    leases: readonly (LeaseRef & {
      readonly delayMs?: number | undefined;
      readonly refund?: boolean | undefined;
    })[],
  ): Promise<LeaseOutcome[]>;
  cancel(queue: string, ids: readonly string[]): Promise<CancelOutcome[]>;
  /** Changes messages that wait; `visibleAt` in unix milliseconds of the store's clock. */
  change(
    queue: string,
    changes: readonly {
      readonly id: string;
      readonly priority?: number;
      readonly visibleAt?: number;
      readonly payload?: JsonValue;
    }[],
  ): Promise<ChangeOutcome[]>;
  /** Errored messages wait again, their attempts anew. */
  requeue(queue: string, ids: readonly string[]): Promise<RequeueOutcome[]>;
  /** All errored messages, or those that match, in bounded steps; answers how many wait again. */
  requeueAll(queue: string, where?: Metadata): Promise<number>;
  /** Forgets all messages of a state in bounded steps; answers how many. */
  purge(queue: string, state: Exclude<MessageState, 'running'>): Promise<number>;

  get(queue: string, id: string): Promise<Message | undefined>;
  list(queue: string, options: ListOptions): Promise<{ messages: Message[]; next: string | undefined }>;
  history(queue: string, id: string): Promise<MessageEvent[]>;
  /** The terminal message, or undefined when it has not ended within `waitMs` (default 30,000) or is unknown. */
  result(
    queue: string,
    id: string,
    options?: { readonly waitMs?: number; readonly signal?: AbortSignal },
  ): Promise<Message | undefined>;
  depth(queue: string, where?: Metadata): Promise<Depth>;
  /** The pending message that has waited longest. */
  oldest(queue: string, where?: Metadata): Promise<{ id: string; ageMs: number } | undefined>;

  queues(): Promise<string[]>;
  configuration(queue: string): Promise<QueueConfiguration>;
  configure(queue: string, change: Partial<QueueConfiguration>): Promise<QueueConfiguration>;
  /** Blocks enqueue, dequeue or both. Default: dequeue. */
  pause(queue: string, what?: { readonly enqueue?: boolean; readonly dequeue?: boolean }): Promise<void>;
  resume(queue: string): Promise<void>;

  /**
   * Enqueues a message at each tick of a cron expression, once however many processes run. `next` is the first tick, unix
   * milliseconds. Repeating it with the same cron and time zone keeps the place.
   */
  recur(options: RecurOptions): Promise<{ next: number }>;
  /** False when there was none of this name. */
  endRecurring(name: string): Promise<boolean>;
  recurring(): Promise<Recurring[]>;

  /** Calls `listener` with every change that this process makes; the answer ends it. Best effort, in order. */
  onEvent(listener: EventListener): () => void;
}

export function createQueue(options: QueueOptions): Queue {
  return new StoreQueue(options);
}
