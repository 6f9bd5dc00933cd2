/** dequeue: asks again while more is due than one call may move, and while a filter's index has not been walked to its end. */
import { randomToken } from '../../../ids.js';
import type { LeasedMessage } from '../../message.js';
import type { DequeueRequest } from '../../store.js';
import { type Context, type Place, run } from '../call.js';
import { decodeLeased } from '../codec.js';

/** Handed out by one call at most. */
export const dequeueMax = 1_000;
/** Rounds that only move what is due; after them messages are handed out although more is due. */
const sweepsMax = 200;

/** A shard other than the first stands in the token, so that its holder is led there. */
export const leaseToken = (requestId: string, shard: number): string =>
  `${requestId}.${shard === 0 ? '' : `${shard}~`}${randomToken()}`;

export async function dequeue(
  context: Context,
  place: Place,
  request: DequeueRequest,
): Promise<LeasedMessage[]> {
  const { count, leaseMs = '', requestId, where, now } = request;
  const token = leaseToken(requestId, place.shard);
  const pairs = Object.entries(where).flat();
  let cursor: readonly [score: string, member: string | Buffer] = ['', ''];
  for (let sweeps = 0; ; ) {
    const force = sweeps < sweepsMax ? '0' : '1';
    const args = [Math.min(count, dequeueMax), leaseMs, token, force, ...cursor, ...pairs];
    const { again, answer } = await run(context, place, 'dequeue', now, args);
    if (again === 0) return decodeAll(place.queue, answer as Buffer[]);
    if (again === 1) sweeps += 1;
    else {
      const [score, member] = answer as [Buffer, Buffer];
      cursor = [score.toString('latin1'), member];
    }
  }
}

/** Requests without a filter, no two of one request id, in one step; an answer each. */
export async function dequeueTogether(
  context: Context,
  place: Place,
  requests: readonly DequeueRequest[],
): Promise<LeasedMessage[][]> {
  const each = requests.flatMap(({ count, leaseMs = '', requestId }) => [
    Math.min(count, dequeueMax),
    leaseMs,
    leaseToken(requestId, place.shard),
  ]);
  for (let sweeps = 0; ; sweeps += 1) {
    const args = [sweeps < sweepsMax ? '0' : '1', ...each];
    const { again, answer } = await run(context, place, 'dequeue_together', requests[0]?.now, args);
    if (again !== 0) continue;
    const answers: LeasedMessage[][] = requests.map(() => []);
    const found = answer as (number | Buffer[])[];
    for (let index = 0; index < found.length; index += 2)
      answers[Number(found[index]) - 1] = decodeAll(place.queue, found[index + 1] as Buffer[]);
    return answers;
  }
}

/** Id, body and state record of each message. */
export function decodeAll(queue: string, parts: readonly Buffer[]): LeasedMessage[] {
  const messages: LeasedMessage[] = [];
  for (let index = 0; index < parts.length; index += 3)
    messages.push(decodeLeased(queue, parts[index]!.toString(), parts[index + 1]!, parts[index + 2]!));
  return messages;
}
