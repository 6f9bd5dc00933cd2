/** complete with what follows it in the same step: a dequeue of the same queue, or messages enqueued. */
import type { LeaseOutcome, LeaseRef } from '../../store.js';
import { type Context, keysOf, type Place, type Request, run } from '../call.js';
import { decodeEvents } from '../codec.js';
import { decodeAll, dequeue, dequeueMax, leaseToken } from './dequeue.js';
import { enqueueArguments, enqueueBlocked, keyMissing } from './enqueue.js';
import type { FollowUpAccess, FollowUpTarget } from './follow-ups.js';
import { complete, leaseOutcomes, resultArgument } from './settle.js';

/** Beyond this the two calls are made one after the other. */
const completionsTogether = 1_000;

export async function settleAndDequeue(
  context: Context,
  place: Place,
  request: Request<'settleAndDequeue'>,
): ReturnType<NonNullable<import('../../store.js').QueueStore['settleAndDequeue']>> {
  const { complete: leases, dequeue: wanted, now } = request;
  if (leases.length > completionsTogether || Object.keys(wanted.where).length > 0) {
    const completed = await complete(context, place, { leases, now });
    return { completed, messages: await dequeue(context, place, wanted) };
  }
  const token = leaseToken(wanted.requestId, place.shard);
  const args = [Math.min(wanted.count, dequeueMax), wanted.leaseMs ?? '', token, '0'];
  for (const { id, leaseToken: held, result } of leases) args.push(id, held, resultArgument(result));
  const { again, answer } = await run(context, place, 'complete_dequeue', now, args);
  const [packed, messages] = answer as [Buffer, Buffer[]];
  const completed = leaseOutcomes(leases, packed);
  if (again === 0) return { completed, messages: decodeAll(place.queue, messages) };
  return { completed, messages: await dequeue(context, place, wanted) };
}

export interface LeaseWithTargets extends LeaseRef {
  readonly result: string | undefined;
  readonly targets: readonly FollowUpTarget[];
}

/** Completes one lease and enqueues all that follows from it, or does neither; all queues are in one slot. */
export async function completeWithFollowUps(
  context: Context,
  place: Place,
  lease: LeaseWithTargets,
  { now, configurationOf }: FollowUpAccess,
): Promise<LeaseOutcome> {
  const { id } = lease;
  const args: (string | number)[] = [id, lease.leaseToken, resultArgument(lease.result)];
  const keys = [...keysOf(context, place)];
  for (const { place: target, messages } of lease.targets) {
    keys.push(...keysOf(context, target));
    args.push(messages.length, ...messages.flatMap(enqueueArguments));
  }
  const { answer } = await run(context, place, 'complete_enqueue', now, args, { keys });
  const [completed, followed = []] = answer as [Buffer, Buffer[][]?];
  for (const [index, events] of followed.entries())
    context.publish?.(decodeEvents(lease.targets[index]!.place.queue, events));
  const refusal = /^([bm])(\d+),/.exec(completed.toString('latin1', 0, 32));
  if (!refusal) return leaseOutcomes([lease], completed)[0]!;
  const { queue } = lease.targets[Number(refusal[2]) - 1]!.place;
  const { type } = await configurationOf(queue);
  const error =
    refusal[1] === 'b' ? enqueueBlocked(queue) : keyMissing(type.kind === 'exclusive' ? type.key : '');
  return { kind: 'refused', id, error };
}
