/**
 * A queue spread over several hash tags. Guarantees: a message's shard follows from its exclusivity value, else from its id, so a value
 * and an id live in one shard; order is exact in a shard, and between shards as of the moment when their heads were read; a repeated
 * request gives the leases it holds in any of them. Duplicates of one id under different values are not found.
 */
import type { LeasedMessage, Message } from '../message.js';
import type { DequeueRequest, Depth, MessageToStore, QueueConfiguration } from '../store.js';
import { type Context, type Place, type Request, runWhileDue } from './call.js';
import { depth, oldest } from './operations/depth.js';
import { dequeue } from './operations/dequeue.js';
import { decodeCursor, encodeCursor, listed, type ListedMessage } from './operations/read.js';

const placesMax = 1_000;

/** The places of each queue, made once: every call asks for them. */
export class Places {
  readonly #shards: Readonly<Record<string, number>>;
  readonly #known = new Map<string, readonly Place[]>();

  constructor(shards: Readonly<Record<string, number>> = {}) {
    this.#shards = shards;
  }

  of(queue: string): readonly Place[] {
    const known = this.#known.get(queue);
    if (known) return known;
    const length = Object.hasOwn(this.#shards, queue) ? this.#shards[queue]! : 1;
    const places = Array.from({ length }, (_, shard) => ({ queue, shard }));
    if (this.#known.size >= placesMax) this.#known.clear();
    this.#known.set(queue, places);
    return places;
  }
}

/** FNV-1a: the same on every machine and in every version, or messages would be looked for in the wrong shard. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (const byte of Buffer.from(text)) value = Math.imul(value ^ byte, 0x01000193) >>> 0;
  return value;
}

const shardOf = (text: string, shards: number): number => hash(text) % shards;

export const shardOfMessage = (
  message: Pick<MessageToStore, 'id' | 'metadata'>,
  type: QueueConfiguration['type'],
  shards: number,
): number =>
  shardOf(type.kind === 'exclusive' ? (message.metadata[type.key] ?? message.id) : message.id, shards);

/** The shard stands in the token, behind the request id. */
export const shardOfToken = (leaseToken: string): number =>
  Number(/^[^.]*\.(\d{1,2})~/.exec(leaseToken)?.[1] ?? 0);

/** Sends each item to its shard, shards side by side, and answers in the order of the items. */
export async function spread<Item, Outcome>(
  items: readonly Item[],
  shardOfItem: (item: Item) => number,
  send: (shard: number, items: readonly Item[]) => Promise<Outcome[]>,
): Promise<Outcome[]> {
  const groups = new Map<number, number[]>();
  for (const [index, item] of items.entries()) {
    const shard = shardOfItem(item);
    groups.set(shard, [...(groups.get(shard) ?? []), index]);
  }
  const outcomes: Outcome[] = [];
  await Promise.all(
    [...groups].map(async ([shard, indexes]) => {
      const answers = await send(
        shard,
        indexes.map((index) => items[index]!),
      );
      for (const [place, index] of indexes.entries()) outcomes[index] = answers[place]!;
    }),
  );
  return outcomes;
}

/** Asks every shard, and takes the first answer that knows the item. */
export async function askAll<Outcome extends { readonly kind: string }>(
  places: readonly Place[],
  ask: (place: Place) => Promise<Outcome[]>,
): Promise<Outcome[]> {
  const [first = [], ...others] = await Promise.all(places.map(ask));
  return first.map((outcome, index) =>
    outcome.kind === 'unknown'
      ? (others.map((answers) => answers[index]!).find(({ kind }) => kind !== 'unknown') ?? outcome)
      : outcome,
  );
}

interface Heads {
  readonly place: Place;
  readonly isHeld: boolean;
  readonly priorities: readonly number[];
}

async function readHeads(context: Context, place: Place, request: DequeueRequest): Promise<Heads> {
  const args = [request.requestId, request.count, ...Object.entries(request.where).flat()];
  const { answer } = await runWhileDue(context, place, 'heads', request.now, args);
  const [held = 0, ...priorities] = answer as [number, ...Buffer[]];
  return { place, isHeld: held === 1, priorities: priorities.map(Number) };
}

/** How many of the best `count` of all lie in each shard. */
function shares(heads: readonly Heads[], count: number): Map<Place, number> {
  const all = heads.flatMap(({ place, priorities }) => priorities.map((priority) => ({ place, priority })));
  const wanted = new Map<Place, number>();
  for (const { place } of all.sort((a, b) => a.priority - b.priority).slice(0, count))
    wanted.set(place, (wanted.get(place) ?? 0) + 1);
  return wanted;
}

export async function dequeueFromShards(
  context: Context,
  places: readonly Place[],
  request: DequeueRequest,
): Promise<LeasedMessage[]> {
  const heads = await Promise.all(places.map((place) => readHeads(context, place, request)));
  const holding = heads.filter(({ isHeld }) => isHeld);
  const take = async (asked: ReadonlyMap<Place, number>): Promise<LeasedMessage[]> => {
    const calls = [...asked].map(([place, count]) => dequeue(context, place, { ...request, count }));
    const byOrder = (a: LeasedMessage, b: LeasedMessage): number =>
      a.priority - b.priority || a.enqueuedAt - b.enqueuedAt;
    return (await Promise.all(calls)).flat().sort(byOrder);
  };
  if (holding.length > 0) return take(new Map(holding.map(({ place }) => [place, request.count])));
  return take(shares(heads, request.count));
}

export async function depthOfShards(
  context: Context,
  places: readonly Place[],
  request: Request<'depth'>,
): Promise<Depth> {
  const depths = await Promise.all(places.map((place) => depth(context, place, request)));
  return depths.reduce((sum, next) => ({
    invisible: sum.invisible + next.invisible,
    pending: sum.pending + next.pending,
    running: sum.running + next.running,
    exact: sum.exact && next.exact,
    asOf: Math.min(sum.asOf, next.asOf),
  }));
}

export async function oldestOfShards(
  context: Context,
  places: readonly Place[],
  request: Request<'oldest'>,
): Promise<{ id: string; ageMs: number } | undefined> {
  const all = await Promise.all(places.map((place) => oldest(context, place, request)));
  return all
    .filter((found) => found !== undefined)
    .sort((a, b) => b.ageMs - a.ageMs)
    .at(0);
}

interface Reading {
  readonly shard: number;
  readonly rest: AsyncGenerator<ListedMessage>;
  next: ListedMessage | undefined;
}

/** A page of all shards, merged by what each is sorted by. The cursor holds one of each. */
export async function listOfShards(
  context: Context,
  places: readonly Place[],
  request: Request<'list'>,
): Promise<{ messages: Message[]; next: string | undefined }> {
  const direction = request.newestFirst === true ? -1 : 1;
  const cursors = request.after === undefined ? places.map(() => '') : request.after.split('~');
  const readings = await Promise.all(
    places.map(async (place, shard): Promise<Reading> => {
      const after = cursors[shard] ? decodeCursor(cursors[shard]) : undefined;
      const rest = listed(context, place, request, request.limit + 1, after);
      return { shard, rest, next: (await rest.next()).value ?? undefined };
    }),
  );
  const messages: Message[] = [];
  while (messages.length < request.limit) {
    const best = readings
      .filter(({ next }) => next !== undefined)
      .sort((a, b) => direction * (Number(a.next!.cursor[0]) - Number(b.next!.cursor[0])))
      .at(0);
    if (!best?.next) return { messages, next: undefined };
    messages.push(best.next.message);
    cursors[best.shard] = encodeCursor(best.next.cursor);
    best.next = (await best.rest.next()).value ?? undefined;
  }
  const hasMore = readings.some(({ next }) => next !== undefined);
  return { messages, next: hasMore ? cursors.join('~') : undefined };
}
