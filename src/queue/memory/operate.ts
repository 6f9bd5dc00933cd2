/** Operations on messages by id: cancel, change, requeue. */
import type { CancelOutcome, ChangeOutcome, MessageChange, RequeueOutcome } from '../store.js';
import { finish, move, type MoveContext } from './moves.js';

export function cancelOne(context: MoveContext, id: string): CancelOutcome {
  const message = context.table.known.get(id);
  if (!message) return { kind: 'unknown', id };
  if (message.state === 'canceled') return { kind: 'canceled', id };
  if (message.finishedAt !== undefined) return { kind: 'terminal', id, state: message.state };
  finish(context, message, { state: 'canceled', leaseEnd: 'cancel' });
  return { kind: 'canceled', id };
}

export function changeOne(context: MoveContext, change: MessageChange): ChangeOutcome {
  const { id } = change;
  const message = context.table.known.get(id);
  if (!message) return { kind: 'unknown', id };
  if (message.state !== 'pending' && message.state !== 'invisible')
    return { kind: 'not-waiting', id, state: message.state };
  const priority = change.priority ?? message.priority;
  const payload = change.payload ?? message.payload;
  const visibleAt = change.visibleAt ?? message.visibleAt;
  const state = visibleAt > context.now ? 'invisible' : 'pending';
  const isSame =
    priority === message.priority &&
    payload === message.payload &&
    visibleAt === message.visibleAt &&
    state === message.state;
  if (!isSame) move(context, message, { state, priority, payload, visibleAt });
  return { kind: 'changed', id, state: message.state, version: message.version };
}

export function requeueOne(context: MoveContext, id: string): RequeueOutcome {
  const message = context.table.known.get(id);
  if (!message) return { kind: 'unknown', id };
  if (message.state !== 'errored') return { kind: 'not-errored', id, state: message.state };
  move(context, message, {
    state: 'pending',
    attempts: 0,
    visibleAt: context.now,
    finishedAt: undefined,
    error: undefined,
    leaseToken: undefined,
    leaseEnd: undefined,
  });
  return { kind: 'requeued', id, state: message.state, version: message.version };
}
