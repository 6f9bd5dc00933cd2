/**
 * Who must have a change before it is answered. Guarantees: one WAIT or WAITAOF goes with a whole pipeline and its counts are
 * checked; it speaks for what the calls have seen as well, not only for what they have written themselves.
 */
import type { ChainableCommander } from 'ioredis';
import { redisQueueError } from './errors.js';
import type { FunctionLibrary } from './library.js';

/**
 * - `flush`: the disks of the primary and of the replicas have it (WAITAOF; Redis 7.2, Valkey).
 * - `receipt`: the replicas have received it (WAIT); the primary flushes as its settings say.
 */
export type RedisConfirmation = 'flush' | 'receipt';

export interface Confirmation {
  readonly by: RedisConfirmation;
  readonly replicas: number;
  readonly timeoutMs: number;
  /** From 7.2 on the server waits only for what the same connection has written: a call that found its work done needs a write. */
  readonly needsMark: boolean;
}

export type Result = [error: Error | null, reply: unknown];

interface Called {
  readonly keys: readonly string[];
}

/** Goes at the end of the pipeline that holds the calls. */
export function appendConfirmation(
  pipeline: ChainableCommander,
  { by, replicas, timeoutMs, needsMark }: Confirmation,
  library: FunctionLibrary,
  calls: readonly Called[],
): void {
  // Calls of no queue are compared and set: they write, or acknowledge nothing.
  const ofQueue = needsMark ? calls.find(({ keys }) => keys.length > 1) : undefined;
  if (ofQueue)
    pipeline.callBuffer('fcall', library.functionName('mark'), ofQueue.keys.length, ...ofQueue.keys);
  if (by === 'receipt') {
    pipeline.wait(replicas, timeoutMs);
    return;
  }
  // A replica that is asked together with the data answers before it has flushed, and again only after a second.
  const halfMs = Math.ceil(timeoutMs / 2);
  if (replicas > 0) pipeline.wait(replicas, halfMs);
  pipeline.call('WAITAOF', 1, replicas, halfMs);
}

/** Why the calls of the pipeline must not be acknowledged; `results` are those behind the calls' own. */
export function findUnconfirmed(
  { by, replicas }: Confirmation,
  results: readonly Result[],
): Error | undefined {
  const failure = results.find(([error]) => error !== null)?.[0];
  if (failure) return failure;
  const reply = results.at(-1)?.[1];
  if (reply === undefined) return redisQueueError('not-replicated', 'nobody has confirmed the change');
  const [flushed, confirmed] = by === 'flush' ? (reply as unknown[]).map(Number) : [1, Number(reply)];
  if (flushed! >= 1 && confirmed! >= replicas) return undefined;
  const here = by === 'flush' ? `${flushed ? '' : 'not '}flushed by the server itself, and ` : '';
  const text = `${here}confirmed by ${confirmed} of ${replicas} replicas in time`;
  return redisQueueError('not-replicated', `the change is ${text}`);
}
