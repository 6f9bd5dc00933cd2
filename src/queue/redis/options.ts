/** Options of the redis store, checked once. */
import type { Cluster, ClusterNode, Redis } from 'ioredis';
import { invalidInput } from '../../errors.js';
import type { Log } from '../../log.js';
import type { EnqueueOutcome, MessageToStore } from '../store.js';
import type { RedisConfirmation } from './confirmation.js';

/**
 * What an acknowledged change survives; see docs/reference/queue-redis.md.
 * - `strict`: refuses a server that can lose one. Each change is answered when the disk of the server has it (`appendfsync
 *   always`), or its replicas have; see `confirm`.
 * - `everysec`: asks for an append-only file; the last second may be lost with the machine.
 * - `none`: takes any server; everything may be lost with it.
 */
export type RedisDurability = 'strict' | 'everysec' | 'none';

interface CommonOptions {
  /** No default: what may be lost is the caller's to choose. */
  readonly durability: RedisDurability;
  /** First part of every key. Default `headgate`. */
  readonly prefix?: string;
  /** Replicas that must confirm a change in `strict`. Default: those that are connected at start. */
  readonly replicas?: number;
  /**
   * What `strict` waits for: that disks have a change (`flush`), or that the replicas have received it (`receipt`). Default `flush`
   * where the server can tell (Redis 7.2, Valkey) and has `appendfsync always`, else `receipt`.
   */
  readonly confirm?: RedisConfirmation;
  /** How long a change waits for them, in milliseconds. Default 1,000. */
  readonly replicaTimeoutMs?: number;
  /** After this long without an answer a connection is given up, and a call after three such connections. In milliseconds. Default 10,000. */
  readonly silenceMs?: number;
  /** Queues that are spread over several hash tags, by name: 2 to 64. Fixed while such a queue holds messages. */
  readonly shards?: Readonly<Record<string, number>>;
  /** Takes what is enqueued in a caller's transaction; see src/queue/outbox. Without it that is refused. */
  readonly outbox?: RedisOutbox;
  readonly log?: Log;
}

/** The part of an outbox that the store needs. */
export interface RedisOutbox {
  enqueue(request: {
    readonly queue: string;
    readonly messages: readonly MessageToStore[];
    readonly transaction: unknown;
    readonly wake?: boolean | undefined;
    readonly now: number | undefined;
  }): Promise<EnqueueOutcome[]>;
}

/** One of: an address, the nodes of a Cluster, or an ioredis client that stays the caller's to close. */
export type RedisQueueStoreOptions = CommonOptions &
  (
    | { readonly url: string; readonly cluster?: never; readonly client?: never }
    | { readonly cluster: readonly ClusterNode[]; readonly url?: never; readonly client?: never }
    | { readonly client: Redis | Cluster; readonly url?: never; readonly cluster?: never }
  );

export const silenceDefaultMs = 10_000;
const durabilities: readonly unknown[] = ['strict', 'everysec', 'none'];
const confirmations: readonly unknown[] = ['flush', 'receipt'];

function positive(field: string, value: number | undefined, max: number): void {
  if (value === undefined) return;
  if (!Number.isSafeInteger(value) || value < 1 || value > max)
    throw invalidInput(field, value, `a whole number from 1 to ${max}`);
}

export function checkOptions(options: RedisQueueStoreOptions): void {
  const { durability, prefix = 'headgate', shards = {} } = options;
  if (!durabilities.includes(durability))
    throw invalidInput('durability', durability, 'strict, everysec or none');
  if (!/^[\w:.-]{1,64}$/.test(prefix))
    throw invalidInput('prefix', prefix, '1 to 64 characters of A-Z a-z 0-9 _ : . -');
  const given = [options.url, options.cluster, options.client].filter((way) => way !== undefined);
  if (given.length !== 1) throw invalidInput('url', given.length, 'exactly one of url, cluster and client');
  if (options.confirm !== undefined && !confirmations.includes(options.confirm))
    throw invalidInput('confirm', options.confirm, 'flush or receipt');
  positive('replicas', options.replicas, 100);
  positive('replicaTimeoutMs', options.replicaTimeoutMs, 60_000);
  positive('silenceMs', options.silenceMs, 600_000);
  for (const [queue, count] of Object.entries(shards)) {
    if (!Number.isSafeInteger(count) || count < 2 || count > 64)
      throw invalidInput(`shards.${queue}`, count, 'a whole number from 2 to 64');
  }
}
