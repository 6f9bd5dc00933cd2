/** One call of one queue: the arguments that all functions share, and what every reply carries beside its answer. */
import type { MessageEvent } from '../message.js';
import type { QueueStore } from '../store.js';
import type { FunctionCaller } from './caller.js';
import { decodeEvents } from './codec.js';
import type { Keys } from './keys.js';

export type Request<Operation extends keyof QueueStore> = QueueStore[Operation] extends
  | ((request: infer R) => unknown)
  | undefined
  ? R
  : never;

/** What an operation needs of its store. */
export interface Context {
  readonly caller: FunctionCaller;
  readonly keys: Keys;
  readonly isCluster: boolean;
  /** Undefined while nobody listens. */
  readonly publish: ((events: readonly MessageEvent[]) => void) | undefined;
  /** Names a damaged message in the log, at a bounded rate. */
  readonly damaged: (queue: string, id: string) => void;
}

/** A queue, or one shard of it. */
export interface Place {
  readonly queue: string;
  readonly shard: number;
}

export interface Answer {
  /** 0: done. Anything else: call again, as the function says. */
  readonly again: number;
  readonly answer: unknown;
}

export type Arguments = readonly (string | number | Buffer)[];

export const keysOf = ({ keys }: Context, { queue, shard }: Place): readonly string[] =>
  keys.declared(queue, shard);

/** What a reply says, and its events and damaged messages told. */
export function answerOf(context: Context, place: Place, reply: unknown): Answer {
  // An answer that stands alone, see `reply` in lua/flush.lua.
  if (reply === null) return { again: 0, answer: [] };
  if (!Array.isArray(reply) || typeof reply[0] !== 'number') return { again: 0, answer: reply };
  const [again, answer, events, damaged] = reply as [number, unknown, Buffer[]?, Buffer[]?];
  if (events && events.length > 0) context.publish?.(decodeEvents(place.queue, events));
  for (const id of damaged ?? []) context.damaged(place.queue, id.toString());
  return { again: Number(again), answer };
}

export async function run(
  context: Context,
  place: Place,
  name: string,
  now: number | undefined,
  args: Arguments,
  more: { readonly keys?: readonly string[] } = {},
): Promise<Answer> {
  const keys = more.keys ?? keysOf(context, place);
  const wantsEvents = context.publish === undefined ? '0' : '1';
  const reply = await context.caller.call(name, keys, [now ?? '', wantsEvents, ...args]);
  return answerOf(context, place, reply);
}

/** Calls again while more is due first, but not for ever. */
const againMax = 200;

export async function runWhileDue(
  context: Context,
  place: Place,
  name: string,
  now: number | undefined,
  args: Arguments,
): Promise<Answer> {
  for (let round = 1; ; round += 1) {
    const reply = await run(context, place, name, now, args);
    if (reply.again !== 1 || round >= againMax) return reply;
  }
}
