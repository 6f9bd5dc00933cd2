/** ready and housekeep: one read of all queues tells where something waits or is due; only there something is done. */
import { type Context, keysOf, type Place, run } from '../call.js';
import { type FollowUpAccess, moveFollowUps } from './follow-ups.js';

/** What `glance` says instead of the next expiry. */
const followUpsWait = 0;
/** Queues in one call; in a Cluster each queue is asked by itself. */
const queuesPerGlance = 100;
/** Steps of one queue in one round of housekeeping. */
const stepsMax = 4;

export interface Glance {
  readonly place: Place;
  readonly now: number;
  readonly waits: boolean;
  /** Unix milliseconds; undefined for none. */
  readonly nextDue: number | undefined;
  readonly nextExpiry: number | undefined;
}

export async function glance(
  context: Context,
  places: readonly Place[],
  now: number | undefined,
): Promise<Glance[]> {
  const size = context.isCluster ? 1 : queuesPerGlance;
  const calls: Promise<Glance[]>[] = [];
  for (let from = 0; from < places.length; from += size)
    calls.push(glanceSome(context, places.slice(from, from + size), now));
  return (await Promise.all(calls)).flat();
}

async function glanceSome(
  context: Context,
  places: readonly Place[],
  now: number | undefined,
): Promise<Glance[]> {
  const keys = places.flatMap((place) => keysOf(context, place));
  const reply = (await context.caller.call('glance', keys, [now ?? ''])) as number[];
  const [asOf = 0, ...numbers] = reply;
  const some = (value: number | undefined) => (value === undefined || value < 0 ? undefined : value);
  return places.map((place, index) => ({
    place,
    now: asOf,
    waits: numbers[3 * index] === 1,
    nextDue: some(numbers[3 * index + 1]),
    nextExpiry: some(numbers[3 * index + 2]),
  }));
}

export async function housekeep(
  context: Context,
  places: readonly Place[],
  access: FollowUpAccess,
): Promise<{ moved: number; nextDueMs: number | undefined; nextDueAt: number | undefined; asOf: number }> {
  const { now } = access;
  const glances = await glance(context, places, now);
  const asOf = glances[0]?.now ?? now ?? Date.now();
  let moved = 0;
  const isDue = ({ nextDue, nextExpiry }: Glance) =>
    Math.min(nextDue ?? Number.POSITIVE_INFINITY, nextExpiry ?? Number.POSITIVE_INFINITY) <= asOf;
  for (const { place, nextExpiry } of glances.filter(isDue)) {
    if (nextExpiry === followUpsWait) moved += await moveFollowUps(context, place, access);
    for (let step = 0; step < stepsMax; step += 1) {
      const { again, answer } = await run(context, place, 'housekeep', now, []);
      moved += Number(answer);
      if (again === 0) break;
    }
  }
  const due = glances.map(({ nextDue }) => nextDue).filter((at) => at !== undefined);
  const nextDueAt = due.length === 0 ? undefined : Math.min(...due);
  return {
    moved,
    asOf,
    nextDueAt,
    nextDueMs: nextDueAt === undefined ? undefined : Math.max(0, nextDueAt - asOf),
  };
}
