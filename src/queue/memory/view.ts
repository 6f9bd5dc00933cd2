/** How stored messages leave the memory store: as copies that nobody can change it through. */
import type { JsonValue, LeasedMessage, Message, Metadata } from '../message.js';
import type { StoredMessage } from './table.js';

export const toMessage = (queue: string, message: StoredMessage): Message => ({
  queue,
  id: message.id,
  payload: JSON.parse(message.payload) as JsonValue,
  metadata: { ...message.metadata },
  priority: message.priority,
  state: message.state,
  attempts: message.attempts,
  attemptsMax: message.attemptsMax,
  visibleAt: message.visibleAt,
  leaseUntil: message.leaseUntil,
  version: message.version,
  enqueuedAt: message.enqueuedAt,
  startedAt: message.startedAt,
  finishedAt: message.finishedAt,
  result: message.result === undefined ? undefined : (JSON.parse(message.result) as JsonValue),
  error: message.error,
  trace: message.trace,
});

export const toLeased = (queue: string, message: StoredMessage): LeasedMessage => ({
  ...toMessage(queue, message),
  state: 'running',
  leaseToken: message.leaseToken!,
  leaseUntil: message.leaseUntil!,
});

export const matches = (metadata: Metadata, where: Metadata): boolean =>
  Object.entries(where).every(([key, value]) => Object.hasOwn(metadata, key) && metadata[key] === value);
