/**
 * Moves of one message from state to state, each with its event. A move takes the message out of the indexes, changes
 * it, counts its version up by one and puts it back.
 */
import type { MessageEvent, MessageState } from '../message.js';
import { settledTokenMs } from '../store.js';
import type { LeaseEnd, QueueTable, StoredMessage } from './table.js';

/** Errors that the store itself gives to messages. */
export const leaseExpired = 'lease expired on the last attempt';
export const attemptsSpent = 'released with no attempts left';

export interface MoveContext {
  readonly table: QueueTable;
  readonly now: number;
  readonly events: MessageEvent[];
}

export function move(
  context: MoveContext,
  message: StoredMessage,
  change: Partial<StoredMessage> & { state: MessageState },
): void {
  const from = message.state;
  context.table.displace(message);
  Object.assign(message, change);
  message.version += 1;
  context.table.place(message);
  record(context, message, from);
}

export function record(
  { table, now, events }: MoveContext,
  message: StoredMessage,
  from: MessageState | undefined,
): void {
  const event: MessageEvent = {
    queue: table.name,
    id: message.id,
    version: message.version,
    from,
    to: message.state,
    at: now,
    attempt: message.attempts,
    metadata: message.metadata,
    incarnation: String(message.incarnation),
  };
  events.push(event);
  if (table.configuration.history !== 'off') message.events.push(event);
}

/** Back among those that wait, at once or after `delayMs`. */
export function giveBack(
  context: MoveContext,
  message: StoredMessage,
  {
    delayMs,
    leaseEnd,
    refund,
    error,
  }: { delayMs: number; leaseEnd: LeaseEnd; refund?: boolean; error?: string },
): void {
  move(context, message, {
    state: delayMs > 0 ? 'invisible' : 'pending',
    visibleAt: context.now + delayMs,
    leaseUntil: undefined,
    leaseEnd,
    attempts: message.attempts - (refund ? 1 : 0),
    ...(error === undefined ? {} : { error }),
  });
}

export function finish(
  context: MoveContext,
  message: StoredMessage,
  change: {
    state: 'completed' | 'canceled' | 'errored';
    leaseEnd: LeaseEnd;
    result?: string | undefined;
    error?: string | undefined;
  },
): void {
  const { table, now } = context;
  const retentionMs = table.configuration.retentionMs[change.state];
  move(context, message, { ...change, leaseUntil: undefined, finishedAt: now, expiresAt: now + retentionMs });
  if (message.uniqueWhileLive) depart(table, message);
  if (retentionMs === 0) collect(table, message, now);
}

/** Frees the id; whoever held the lease is still answered by its token. */
function depart(table: QueueTable, message: StoredMessage): void {
  if (table.known.get(message.id) === message) table.known.delete(message.id);
  if (message.leaseToken !== undefined)
    table.departed.set(departedKey(message.id, message.leaseToken), message);
}

/** Forgets a terminal message whose retention has passed, but for the token where it is too early for that. */
export function collect(table: QueueTable, message: StoredMessage, now: number): void {
  const tokenUntil = message.finishedAt! + settledTokenMs;
  table.terminal.delete(message);
  if (message.leaseToken === undefined || tokenUntil <= now) return forget(table, message);
  depart(table, message);
  message.hidden = true;
  message.expiresAt = tokenUntil;
  table.terminal.add(message);
}

/** Drops the id and the token. */
export function forget(table: QueueTable, message: StoredMessage): void {
  if (table.known.get(message.id) === message) table.known.delete(message.id);
  if (message.leaseToken !== undefined) table.departed.delete(departedKey(message.id, message.leaseToken));
}

export const departedKey = (id: string, leaseToken: string) => `${id}\0${leaseToken}`;

/** What became due: invisible messages wait, expired leases go back or end. At most `limit`, the most overdue first. */
export function sweep(context: MoveContext, limit: number): number {
  const { table, now } = context;
  let moved = 0;
  for (; moved < limit; moved += 1) {
    const message = table.invisible.first;
    if (!message || message.visibleAt > now) break;
    move(context, message, { state: 'pending' });
  }
  for (; moved < limit; moved += 1) {
    const message = table.running.first;
    if (!message || message.leaseUntil! > now) break;
    expire(context, message);
  }
  return moved;
}

function expire(context: MoveContext, message: StoredMessage): void {
  if (message.attempts < message.attemptsMax) giveBack(context, message, { delayMs: 0, leaseEnd: 'expiry' });
  else finish(context, message, { state: 'errored', leaseEnd: 'expiry', error: leaseExpired });
}

/** The message under this lease, if its holder may still change it; a last attempt that has run out ends here. */
export function heldBy(context: MoveContext, id: string, leaseToken: string): StoredMessage | undefined {
  const message = context.table.known.get(id);
  if (message?.state !== 'running' || message.leaseToken !== leaseToken) return undefined;
  if (message.attempts >= message.attemptsMax && message.leaseUntil! <= context.now) {
    expire(context, message);
    return undefined;
  }
  return message;
}
