/**
 * Where an operation goes: straight to the one place of a queue, or to the shards that its messages, ids or tokens lead to. Answers are in
 * the order of the request either way.
 */
import { invalidInput } from '../../errors.js';
import type { LeasedMessage, Message, MessageEvent } from '../message.js';
import type { EnqueueOutcome, FollowUp, LeaseOutcome, LeaseRef, QueueConfiguration } from '../store.js';
import type { Context, Place, Request } from './call.js';
import { completeWithFollowUps, settleAndDequeue } from './operations/complete-and-more.js';
import { depth, oldest } from './operations/depth.js';
import { dequeue, dequeueTogether } from './operations/dequeue.js';
import { enqueue } from './operations/enqueue.js';
import { completeAcrossSlots, type FollowUpAccess } from './operations/follow-ups.js';
import { listPage } from './operations/list.js';
import { cancel, change, purge, requeue } from './operations/operate.js';
import { get, history } from './operations/read.js';
import { complete, extend, fail, release } from './operations/settle.js';
import {
  askAll,
  depthOfShards,
  dequeueFromShards,
  listOfShards,
  oldestOfShards,
  shardOfMessage,
  shardOfToken,
  spread,
} from './shards.js';

/** A queue's places, and what is known of it. */
export interface Target {
  readonly context: Context;
  readonly places: readonly Place[];
  readonly configuration: () => Promise<QueueConfiguration>;
}

const only = ({ places }: Target): Place | undefined => (places.length === 1 ? places[0] : undefined);

async function routeEnqueue(
  target: Target,
  { messages, now }: Pick<Request<'enqueue'>, 'messages' | 'now'>,
): Promise<{ outcomes: EnqueueOutcome[]; isNew: boolean }> {
  const { context, places, configuration } = target;
  const exclusiveKey = async (): Promise<string> => {
    const { type } = await configuration();
    return type.kind === 'exclusive' ? type.key : '';
  };
  const place = only(target);
  if (place) return enqueue(context, place, { messages, now, exclusiveKey });
  const { type } = await configuration();
  let isNew = false;
  const outcomes = await spread(
    messages,
    (message) => shardOfMessage(message, type, places.length),
    async (shard, items) => {
      const answer = await enqueue(context, places[shard]!, { messages: items, now, exclusiveKey });
      isNew ||= answer.isNew;
      return answer.outcomes;
    },
  );
  return { outcomes, isNew };
}

function routeDequeue(target: Target, request: Request<'dequeue'>): Promise<LeasedMessage[]> {
  const place = only(target);
  return place
    ? dequeue(target.context, place, request)
    : dequeueFromShards(target.context, target.places, request);
}

async function routeDequeues(
  target: Target,
  requests: readonly Request<'dequeue'>[],
): Promise<LeasedMessage[][]> {
  const place = only(target);
  if (requests.length === 1) return [await routeDequeue(target, requests[0]!)];
  return place
    ? dequeueTogether(target.context, place, requests)
    : Promise.all(requests.map((request) => routeDequeue(target, request)));
}

type Settle<Lease extends LeaseRef> = (
  context: Context,
  place: Place,
  request: { readonly queue: string; readonly leases: readonly Lease[]; readonly now: number | undefined },
) => Promise<LeaseOutcome[]>;

const routeSettle =
  <Lease extends LeaseRef>(settle: Settle<Lease>) =>
  (
    target: Target,
    request: { readonly queue: string; readonly leases: readonly Lease[]; readonly now: number | undefined },
  ): Promise<LeaseOutcome[]> => {
    const { context, places } = target;
    const place = only(target);
    if (place) return settle(context, place, request);
    return spread(
      request.leases,
      // A token of no shard of this queue is nobody's: the first shard says so.
      ({ leaseToken }) => Math.min(shardOfToken(leaseToken), places.length - 1),
      (shard, leases) => settle(context, places[shard]!, { ...request, leases }),
    );
  };

const routeExtend = routeSettle(extend);
const routeComplete = routeSettle(complete);
const routeFail = routeSettle(fail);
const routeRelease = routeSettle(release);

/** Follow-ups of one lease, by the places they go to. */
async function routeFollowUps(
  target: Target,
  lease: Request<'complete'>['leases'][number] & { readonly followUps: readonly FollowUp[] },
  access: FollowUpAccess,
): Promise<LeaseOutcome> {
  const { context, places } = target;
  const place = places[Math.min(shardOfToken(lease.leaseToken), places.length - 1)]!;
  const targets = (await Promise.all(lease.followUps.map(access.spread))).flat();
  const isElsewhere = (other: Place) => other.queue !== place.queue || other.shard !== place.shard;
  if (context.isCluster && targets.some((followUp) => isElsewhere(followUp.place)))
    return completeAcrossSlots(context, place, lease, access);
  return completeWithFollowUps(context, place, { ...lease, targets }, access);
}

async function routeSettleAndDequeue(target: Target, request: Request<'settleAndDequeue'>) {
  const place = only(target);
  if (place) return settleAndDequeue(target.context, place, request);
  const { queue, complete: leases, now } = request;
  const completed = await routeComplete(target, { queue, leases, now });
  return { completed, messages: await routeDequeue(target, request.dequeue) };
}

const routeCancel = ({ context, places }: Target, request: Request<'cancel'>) =>
  askAll(places, (place) => cancel(context, place, request));

const routeChange = ({ context, places }: Target, request: Request<'change'>) =>
  askAll(places, (place) => change(context, place, request));

const routeRequeue = ({ context, places }: Target, request: Request<'requeue'>) =>
  askAll(places, (place) => requeue(context, place, request));

/** One shard a call: the first that has something to forget. */
async function routePurge({ context, places }: Target, request: Request<'purge'>) {
  for (const place of places) {
    const { removed } = await purge(context, place, request);
    if (removed > 0) return { removed };
  }
  return { removed: 0 };
}

async function routeGet({ context, places }: Target, { id }: Request<'get'>): Promise<Message | undefined> {
  const found = await Promise.all(places.map((place) => get(context, place, id)));
  return found.find((message) => message !== undefined);
}

async function routeHistory(
  { context, places }: Target,
  { id }: Request<'history'>,
): Promise<MessageEvent[]> {
  const found = await Promise.all(places.map((place) => history(context, place, id)));
  return found.find((events) => events.length > 0) ?? [];
}

function routeList(target: Target, request: Request<'list'>) {
  const place = only(target);
  return place
    ? listPage(target.context, place, request)
    : listOfShards(target.context, target.places, request);
}

function routeDepth(target: Target, request: Request<'depth'>) {
  const place = only(target);
  return place
    ? depth(target.context, place, request)
    : depthOfShards(target.context, target.places, request);
}

function routeOldest(target: Target, request: Request<'oldest'>) {
  const place = only(target);
  return place
    ? oldest(target.context, place, request)
    : oldestOfShards(target.context, target.places, request);
}

export function refuseRateLimit(places: readonly Place[], change: Partial<QueueConfiguration>): void {
  if (places.length > 1 && change.rateLimit !== undefined)
    throw invalidInput('rateLimit', change.rateLimit, 'none: each shard would let as many through');
}

export {
  routeCancel as cancel,
  routeChange as change,
  routeComplete as complete,
  routeDepth as depth,
  routeDequeue as dequeue,
  routeDequeues as dequeues,
  routeEnqueue as enqueue,
  routeExtend as extend,
  routeFail as fail,
  routeFollowUps as followUps,
  routeGet as get,
  routeHistory as history,
  routeList as list,
  routeOldest as oldest,
  routePurge as purge,
  routeRelease as release,
  routeRequeue as requeue,
  routeSettleAndDequeue as settleAndDequeue,
};
