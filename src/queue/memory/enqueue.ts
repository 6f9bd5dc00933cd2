/** Enqueue in the memory store: duplicates are told apart by id and payload, each message by itself. */
import { invalidInput, type HeadgateError } from '../../errors.js';
import { queueError } from '../errors.js';
import type { EnqueueOutcome, MessageToStore } from '../store.js';
import { record, type MoveContext } from './moves.js';
import type { QueueTable, StoredMessage } from './table.js';

/** Why the queue would not take the message, if so. */
export function refusal(
  { name, configuration }: QueueTable,
  message: MessageToStore,
): HeadgateError | undefined {
  if (configuration.enqueueBlocked) {
    return queueError('enqueue-blocked', `queue "${name}" takes no messages now`, { ids: { queue: name } });
  }
  const { type } = configuration;
  if (type.kind === 'simple' || Object.hasOwn(message.metadata, type.key)) return undefined;
  return invalidInput(`metadata.${type.key}`, undefined, 'a value: the queue is exclusive by this key');
}

export function enqueueOne(
  context: MoveContext,
  message: MessageToStore,
  incarnation: () => number,
): EnqueueOutcome {
  const { table, now } = context;
  const { id } = message;
  const existing = table.known.get(id);
  if (existing) {
    const { state } = existing;
    return existing.payload === message.payload
      ? { kind: 'enqueued', id, created: false, state }
      : { kind: 'conflict', id, state };
  }
  const error = refusal(table, message);
  if (error) return { kind: 'refused', id, error };
  const stored = newMessage(table, message, now, incarnation());
  table.known.set(id, stored);
  table.place(stored);
  record(context, stored, undefined);
  return { kind: 'enqueued', id, created: true, state: stored.state };
}

function newMessage(
  { configuration }: QueueTable,
  message: MessageToStore,
  now: number,
  incarnation: number,
): StoredMessage {
  const { type } = configuration;
  const delayMs = message.delayMs ?? configuration.delayMs;
  return {
    id: message.id,
    incarnation,
    metadata: message.metadata,
    trace: message.trace,
    uniqueWhileLive: message.uniqueWhileLive,
    leaseMs: message.leaseMs,
    enqueuedAt: now,
    value: type.kind === 'exclusive' ? message.metadata[type.key] : undefined,
    events: [],
    attemptsMax: message.attemptsMax ?? configuration.attemptsMax,
    payload: message.payload,
    priority: message.priority ?? now,
    state: delayMs > 0 ? 'invisible' : 'pending',
    attempts: 0,
    version: 1,
    visibleAt: now + delayMs,
    leaseUntil: undefined,
    leaseToken: undefined,
    leaseEnd: undefined,
    requestId: undefined,
    startedAt: undefined,
    finishedAt: undefined,
    expiresAt: 0,
    hidden: false,
    result: undefined,
    error: undefined,
  };
}
