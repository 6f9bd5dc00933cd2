/**
 * What a message is: its states with the table of allowed moves, and the shapes in which it enters and leaves.
 *
 *   enqueue(delay) ─► invisible ─due─► pending ─dequeue─► running ─complete─► completed
 *   enqueue ───────────────────────────►  ▲                 │ │ └─fail for good, or no attempts left─► errored
 *                                         └─ release, fail with retry, lease expired (attempt spent)
 *   release or retry with a delay goes to invisible; cancel leads from any live state to canceled.
 */
export type LiveState = 'invisible' | 'pending' | 'running';
export type TerminalState = 'completed' | 'canceled' | 'errored';
export type MessageState = LiveState | TerminalState;

export const allowedMoves: Readonly<Record<MessageState, readonly MessageState[]>> = {
  invisible: ['pending', 'invisible', 'canceled'],
  pending: ['running', 'pending', 'invisible', 'canceled'],
  running: ['completed', 'errored', 'pending', 'invisible', 'canceled', 'running'],
  completed: [],
  canceled: [],
  errored: ['pending'],
};

export type JsonValue =
  | null
  | boolean
  | number
  | string
  | readonly JsonValue[]
  | { readonly [key: string]: JsonValue };
export type Metadata = Readonly<Record<string, string>>;

/** A message as a caller enqueues it. */
export interface NewMessage {
  /** Default: a time-ordered random id. Known to the queue for the retention time. */
  readonly id?: string;
  /** Any JSON value; default limit 32 KiB of UTF-8. */
  readonly payload: JsonValue;
  /** Up to 16 string pairs, by which dequeue, depth and list filter. */
  readonly metadata?: Metadata;
  /** Safe integer, lower first; the norm is the deadline in unix milliseconds. Default: time of enqueue. */
  readonly priority?: number;
  /** Milliseconds until the message is dequeueable. Default: the queue's delay (0). */
  readonly delayMs?: number;
  /** How often the message may be dequeued before it is errored. Default: the queue's (3). */
  readonly attemptsMax?: number;
  /** Lease in milliseconds that a dequeue without its own takes. Default: the queue's (30,000). */
  readonly leaseMs?: number;
  /** The id is free again as soon as the message is terminal. Default: false. */
  readonly uniqueWhileLive?: boolean;
  /** W3C traceparent, handed to the handler untouched. */
  readonly trace?: string;
}

/** A message as it is stored. Times are unix milliseconds of the store's clock. */
export interface Message {
  readonly queue: string;
  readonly id: string;
  readonly payload: JsonValue;
  readonly metadata: Metadata;
  readonly priority: number;
  readonly state: MessageState;
  readonly attempts: number;
  readonly attemptsMax: number;
  readonly visibleAt: number;
  readonly leaseUntil: number | undefined;
  /** Goes up by one with every change. */
  readonly version: number;
  readonly enqueuedAt: number;
  readonly startedAt: number | undefined;
  readonly finishedAt: number | undefined;
  readonly result: JsonValue | undefined;
  readonly error: string | undefined;
  readonly trace: string | undefined;
}

/** A message in the hands of its holder. */
export interface LeasedMessage extends Message {
  readonly state: 'running';
  /** Fences every change by the holder; random, never given out twice. */
  readonly leaseToken: string;
  readonly leaseUntil: number;
}

/** One change of one message. `version` orders the changes and makes a missed one visible as a gap. */
export interface MessageEvent {
  readonly queue: string;
  readonly id: string;
  readonly version: number;
  /** Undefined for the enqueue. */
  readonly from: MessageState | undefined;
  readonly to: MessageState;
  /** Unix milliseconds of the store's clock. */
  readonly at: number;
  readonly attempt: number;
  readonly metadata: Metadata;
  /** Tells a message from a later one under the same id. */
  readonly incarnation: string;
}
