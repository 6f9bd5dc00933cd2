/**
 * Follow-ups across the slots of a Cluster: stored with the completion in one step, then moved to their queues, by their ids once.
 * Guarantees: a completion whose follow-up would be refused does not happen; follow-ups of one that happened arrive, though the
 * process that completed ends in between.
 */
import type { HeadgateError } from '../../../errors.js';
import type { FollowUp, LeaseOutcome, LeaseRef, MessageToStore, QueueConfiguration } from '../../store.js';
import { type Context, keysOf, type Place, run } from '../call.js';
import { enqueue, enqueueBlocked, keyMissing } from './enqueue.js';
import { isHeld } from './read.js';
import { leaseOutcomes, resultArgument } from './settle.js';

/** Messages of one place. */
export interface FollowUpTarget {
  readonly place: Place;
  readonly messages: readonly MessageToStore[];
}

/** What a follow-up needs of its own queue. */
export interface FollowUpAccess {
  readonly now: number | undefined;
  /** By the places they go to. */
  readonly spread: (followUp: FollowUp) => Promise<FollowUpTarget[]>;
  readonly configurationOf: (queue: string) => Promise<QueueConfiguration>;
}

/** Moved by one step of housekeeping. */
const movedPerStep = 100;

async function refusal(
  followUps: readonly FollowUp[],
  access: FollowUpAccess,
): Promise<HeadgateError | undefined> {
  for (const { queue, messages } of followUps) {
    const { enqueueBlocked: isBlocked, type } = await access.configurationOf(queue);
    if (isBlocked) return enqueueBlocked(queue);
    if (type.kind === 'exclusive' && !messages.every(({ metadata }) => Object.hasOwn(metadata, type.key)))
      return keyMissing(type.key);
  }
  return undefined;
}

export async function completeAcrossSlots(
  context: Context,
  place: Place,
  lease: LeaseRef & { readonly result: string | undefined; readonly followUps: readonly FollowUp[] },
  access: FollowUpAccess,
): Promise<LeaseOutcome> {
  const { id, leaseToken, result, followUps } = lease;
  const error = await refusal(followUps, access);
  // Whoever holds it no longer gets the answer of before, whatever the queues of the follow-ups say by now.
  if (error && (await isHeld(context, place, lease))) return { kind: 'refused', id, error };
  const args = [id, leaseToken, resultArgument(result), JSON.stringify(followUps)];
  const { answer } = await run(context, place, 'complete_store', access.now, args);
  const [completed, field] = answer as [Buffer, Buffer];
  if (field.length > 0) await move(context, place, [field.toString(), followUps], access);
  return leaseOutcomes([lease], completed)[0]!;
}

/** One bounded step; answers how many completions had follow-ups on their way. */
export async function moveFollowUps(context: Context, place: Place, access: FollowUpAccess): Promise<number> {
  const keys = keysOf(context, place);
  const parts = (await context.caller.call('follow_ups', keys, [movedPerStep])) as Buffer[];
  for (let index = 0; index < parts.length; index += 2) {
    const followUps = JSON.parse(parts[index + 1]!.toString()) as FollowUp[];
    await move(context, place, [parts[index]!.toString(), followUps], access);
  }
  return parts.length / 2;
}

async function move(
  context: Context,
  place: Place,
  [field, followUps]: readonly [field: string, followUps: readonly FollowUp[]],
  { now, spread }: FollowUpAccess,
): Promise<void> {
  const targets = (await Promise.all(followUps.map(spread))).flat();
  for (const { place: target, messages } of targets) {
    const { outcomes } = await enqueue(context, target, { messages, now, exclusiveKey: async () => '' });
    // The queue has been paused meanwhile: housekeeping comes again.
    if (outcomes.some(({ kind }) => kind === 'refused')) return;
  }
  await context.caller.call('follow_ups_done', keysOf(context, place), [field]);
}
