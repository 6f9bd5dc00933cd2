/**
 * enqueue, dequeue and complete of one message, at the only place of its queue: what a caller pays who awaits one call after the other.
 * Guarantees what the operations for many do; lua/one.lua hands what is not plain over to them.
 */
import type { LeasedMessage } from '../../message.js';
import type {
  DequeueRequest,
  EnqueueOutcome,
  LeaseOutcome,
  MessageToStore,
  QueueConfiguration,
} from '../../store.js';
import { answerOf, type Arguments, type Context, keysOf, type Place, type Request } from '../call.js';
import { decodeFirstLease, encodeHead } from '../codec.js';
import { decodeAll, dequeue, leaseToken } from './dequeue.js';
import { enqueueOutcome, isKeyMissing, keyMissing } from './enqueue.js';
import { leaseOutcomes, resultArgument } from './settle.js';

/** What an enqueue may need of the queue. */
export interface QueueAccess {
  readonly configurationOf: (queue: string) => Promise<QueueConfiguration>;
  /** The queue did not exist before. */
  readonly onNew: (queue: string) => Promise<void>;
}

/** Whether a message says nothing of its own beside payload and trace, and so stands in no index but that of its state. */
export const isPlain = (message: MessageToStore): boolean =>
  message.priority === undefined &&
  message.delayMs === undefined &&
  message.attemptsMax === undefined &&
  message.leaseMs === undefined &&
  !message.uniqueWhileLive &&
  Object.keys(message.metadata).length === 0;

export function enqueueOne(
  context: Context,
  place: Place,
  { message, now }: { readonly message: MessageToStore; readonly now: number | undefined },
  access: QueueAccess,
): Promise<EnqueueOutcome[]> {
  const { queue } = place;
  const { id, payload, trace } = message;
  const tail = trace === undefined ? `\n${payload}` : `${encodeHead({}, trace)}\n${payload}`;
  const args: Arguments = now === undefined ? [id, tail] : [id, tail, now];
  return context.caller.call('enqueue_one', keysOf(context, place), args, (reply) => {
    const { again, answer } = answerOf(context, place, reply);
    const letters = answer as Buffer;
    if (isKeyMissing(letters, 0)) return refusedByKey(id, access.configurationOf(queue));
    const outcomes = [enqueueOutcome(queue, id, letters, 0)];
    return again === 1 ? access.onNew(queue).then(() => outcomes) : outcomes;
  });
}

async function refusedByKey(id: string, asked: Promise<QueueConfiguration>): Promise<EnqueueOutcome[]> {
  const { type } = await asked;
  return [{ kind: 'refused', id, error: keyMissing(type.kind === 'exclusive' ? type.key : '') }];
}

export function dequeueOne(
  context: Context,
  place: Place,
  request: DequeueRequest,
): Promise<LeasedMessage[]> {
  const { requestId, leaseMs, now } = request;
  const args: (string | number)[] = [requestId, leaseToken(requestId, place.shard)];
  if (leaseMs !== undefined || now !== undefined) args.push(leaseMs ?? '');
  if (now !== undefined) args.push(now);
  return context.caller.call('dequeue_one', keysOf(context, place), args, (reply) => {
    if (reply instanceof Buffer) return [decodeFirstLease(place.queue, reply)];
    const { again, answer } = answerOf(context, place, reply);
    return again === 0 ? decodeAll(place.queue, answer as Buffer[]) : dequeue(context, place, request);
  });
}

export function completeOne(
  context: Context,
  place: Place,
  { lease, now }: { readonly lease: Request<'complete'>['leases'][number]; readonly now: number | undefined },
): Promise<LeaseOutcome[]> {
  const { id, leaseToken: token, result } = lease;
  const args: (string | number)[] = [id, token];
  if (result !== undefined || now !== undefined) args.push(resultArgument(result));
  if (now !== undefined) args.push(now);
  return context.caller.call('complete_one', keysOf(context, place), args, (reply) =>
    leaseOutcomes([lease], answerOf(context, place, reply).answer),
  );
}
