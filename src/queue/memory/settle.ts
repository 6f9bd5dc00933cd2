/** What the holder of a lease does with it: extend, complete, fail, release; a repeat gets the same answer. */
import type { LeaseOutcome, LeaseRef, QueueStore } from '../store.js';
import { attemptsSpent, departedKey, finish, giveBack, heldBy, move, type MoveContext } from './moves.js';
import type { LeaseEnd, StoredMessage } from './table.js';

type Lease<Operation extends 'extend' | 'complete' | 'fail' | 'release'> = Parameters<
  QueueStore[Operation]
>[0]['leases'][number];

const done = (message: StoredMessage): LeaseOutcome => ({
  kind: 'done',
  id: message.id,
  state: message.state,
  version: message.version,
  ...(message.leaseUntil === undefined ? {} : { leaseUntil: message.leaseUntil }),
});

/** The answer to a holder that holds no longer: its own earlier answer, `canceled`, or `lease-lost`. */
function answerAfterEnd(
  { table }: MoveContext,
  { id, leaseToken }: LeaseRef,
  operation: LeaseEnd | undefined,
): LeaseOutcome {
  const known = table.known.get(id);
  const message = known?.leaseToken === leaseToken ? known : table.departed.get(departedKey(id, leaseToken));
  if (message?.leaseEnd === 'cancel') return { kind: 'canceled', id };
  if (message && operation !== undefined && message.leaseEnd === operation) return done(message);
  return { kind: 'lease-lost', id };
}

export function extendOne(context: MoveContext, lease: Lease<'extend'>): LeaseOutcome {
  const message = heldBy(context, lease.id, lease.leaseToken);
  if (!message) return answerAfterEnd(context, lease, undefined);
  const leaseMs = lease.leaseMs ?? message.leaseMs ?? context.table.configuration.leaseMs;
  move(context, message, { state: 'running', leaseUntil: context.now + leaseMs });
  return done(message);
}

export function completeOne(context: MoveContext, lease: Lease<'complete'>): LeaseOutcome {
  const message = heldBy(context, lease.id, lease.leaseToken);
  if (!message) return answerAfterEnd(context, lease, 'complete');
  finish(context, message, {
    state: 'completed',
    leaseEnd: 'complete',
    result: lease.result,
    error: undefined,
  });
  return done(message);
}

export function failOne(context: MoveContext, lease: Lease<'fail'>): LeaseOutcome {
  const message = heldBy(context, lease.id, lease.leaseToken);
  if (!message) return answerAfterEnd(context, lease, 'fail');
  const { error, retryDelayMs } = lease;
  if (retryDelayMs === undefined || message.attempts >= message.attemptsMax) {
    finish(context, message, { state: 'errored', leaseEnd: 'fail', error });
  } else giveBack(context, message, { delayMs: retryDelayMs, leaseEnd: 'fail', error });
  return done(message);
}

export function releaseOne(context: MoveContext, lease: Lease<'release'>): LeaseOutcome {
  const message = heldBy(context, lease.id, lease.leaseToken);
  if (!message) return answerAfterEnd(context, lease, 'release');
  if (!lease.refund && message.attempts >= message.attemptsMax) {
    finish(context, message, { state: 'errored', leaseEnd: 'release', error: attemptsSpent });
  } else giveBack(context, message, { delayMs: lease.delayMs, leaseEnd: 'release', refund: lease.refund });
  return done(message);
}
