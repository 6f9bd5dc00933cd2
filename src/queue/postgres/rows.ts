/** What rows become: numbers where they are safe integers (times, priorities, versions), strings where they are ids. */
import type { JsonValue, LeasedMessage, Message, MessageState, Metadata } from '../message.js';
import { leaseToken } from './token.js';

const states: readonly MessageState[] = [
  'invisible',
  'pending',
  'running',
  'completed',
  'canceled',
  'errored',
];

export const stateOf = (code: number): MessageState => states[code]!;
export const codeOf = (state: MessageState): number => states.indexOf(state);

export const metadataOf = (text: string | null): Metadata =>
  text === null ? {} : (JSON.parse(text) as Metadata);
const numberOr = (text: string | null): number | undefined => (text === null ? undefined : Number(text));

export type MessageRow = {
  readonly seq: string;
  readonly id: string;
  readonly payload: string;
  readonly metadata: string | null;
  readonly priority: string;
  readonly attempts: number;
  readonly attempts_max: number;
  readonly visible_at: string;
  readonly version: string;
  readonly enqueued_at: string;
  readonly started_at: string | null;
  readonly trace: string | null;
  readonly error: string | null;
};

export type StoredRow = MessageRow & {
  readonly state: number;
  readonly lease_until: string | null;
  readonly finished_at: string | null;
  readonly result: string | null;
};

/** What is as usual is null: see the function `dequeue`. */
export type LeasedRow = Pick<
  MessageRow,
  'seq' | 'id' | 'payload' | 'metadata' | 'enqueued_at' | 'trace' | 'error'
> & {
  readonly priority: string | null;
  readonly attempts: number | null;
  readonly attempts_max: number | null;
  readonly visible_at: string | null;
  readonly lease_until: string;
  readonly version: string | null;
  readonly started_at: string;
  readonly lease: string | null;
};

/**
 * `lease` is that of the request. One literal each: a spread makes objects that V8 keeps as dictionaries, at several
 * times the cost.
 */
export function toLeased(queue: string, lease: string, row: LeasedRow): LeasedMessage {
  const enqueuedAt = Number(row.enqueued_at);
  return {
    queue,
    id: row.id,
    payload: JSON.parse(row.payload) as JsonValue,
    metadata: metadataOf(row.metadata),
    priority: row.priority === null ? enqueuedAt : Number(row.priority),
    state: 'running',
    attempts: row.attempts ?? 1,
    attemptsMax: row.attempts_max ?? 3,
    visibleAt: row.visible_at === null ? enqueuedAt : Number(row.visible_at),
    leaseToken: leaseToken(row.lease ?? lease, row.seq),
    leaseUntil: Number(row.lease_until),
    version: row.version === null ? 2 : Number(row.version),
    enqueuedAt,
    startedAt: Number(row.started_at),
    finishedAt: undefined,
    result: undefined,
    error: row.error ?? undefined,
    trace: row.trace ?? undefined,
  };
}

export const toMessage = (queue: string, row: StoredRow): Message => ({
  queue,
  id: row.id,
  payload: JSON.parse(row.payload) as JsonValue,
  metadata: metadataOf(row.metadata),
  priority: Number(row.priority),
  state: stateOf(row.state),
  attempts: row.attempts,
  attemptsMax: row.attempts_max,
  visibleAt: Number(row.visible_at),
  leaseUntil: numberOr(row.lease_until),
  version: Number(row.version),
  enqueuedAt: Number(row.enqueued_at),
  startedAt: numberOr(row.started_at),
  finishedAt: numberOr(row.finished_at),
  result: row.result === null ? undefined : (JSON.parse(row.result) as JsonValue),
  error: row.error ?? undefined,
  trace: row.trace ?? undefined,
});

/** Columns of `messages` and of `finished` under one set of names. */
export const liveColumns = `m.seq, m.id, m.payload, m.metadata::text as metadata, m.priority, m.state, m.attempts, m.attempts_max,
  m.visible_at, case when m.state = 2 then m.due_at end as lease_until, m.version, m.enqueued_at, m.started_at,
  null::bigint as finished_at, null::text as result, m.error, m.trace`;
export const finishedColumns = `f.seq, f.id, f.payload, f.metadata::text as metadata, f.priority, f.state, f.attempts, f.attempts_max,
  f.visible_at, null::bigint as lease_until, f.version, f.enqueued_at, f.started_at, f.finished_at, f.result, f.error, f.trace`;

/** An array parameter that is left out when no member has a value: `unnest` pads it with nulls. */
export function sparse<T>(values: readonly (T | undefined)[]): readonly (T | null)[] {
  return values.some((value) => value !== undefined) ? values.map((value) => value ?? null) : [];
}
