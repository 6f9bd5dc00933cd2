/** Options of the timelines in Redis, checked once. */
import type { Cluster, ClusterNode, Redis } from 'ioredis';
import { invalidInput } from '../../errors.js';
import type { Log } from '../../log.js';

interface CommonOptions {
  /** First part of every key. Default `headgate-feed`. */
  readonly prefix?: string | undefined;
  /**
   * Hash tags that the timelines are spread over, 1 to 16,384: a call never leaves its tag. Default: 1 on a single server, 64
   * for each primary of a Cluster when the feed is first started; from then on the number that was used first holds.
   */
  readonly buckets?: number | undefined;
  /** A command without an answer for this long fails, in milliseconds; the home is then read from the posts. Default 1,000. */
  readonly timeoutMs?: number | undefined;
  readonly log?: Log | undefined;
}

/** One of: an address, the nodes of a Cluster, or an ioredis client that stays the caller's to close. */
export type RedisTimelinesOptions = CommonOptions &
  (
    | { readonly url: string; readonly cluster?: never; readonly client?: never }
    | { readonly cluster: readonly ClusterNode[]; readonly url?: never; readonly client?: never }
    | { readonly client: Redis | Cluster; readonly url?: never; readonly cluster?: never }
  );

export function checkOptions(options: RedisTimelinesOptions): void {
  const { prefix = 'headgate-feed', buckets, timeoutMs } = options;
  if (!/^[\w:.-]{1,64}$/.test(prefix))
    throw invalidInput('prefix', prefix, '1 to 64 characters of A-Z a-z 0-9 _ : . -');
  const given = [options.url, options.cluster, options.client].filter((way) => way !== undefined);
  if (given.length !== 1) throw invalidInput('url', given.length, 'exactly one of url, cluster and client');
  wholeNumber('buckets', buckets, 16_384);
  wholeNumber('timeoutMs', timeoutMs, 60_000);
}

function wholeNumber(field: string, value: number | undefined, max: number): void {
  if (value === undefined) return;
  if (!Number.isSafeInteger(value) || value < 1 || value > max)
    throw invalidInput(field, value, `a whole number from 1 to ${max}`);
}
