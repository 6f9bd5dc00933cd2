/**
 * How many notifications of a kind one user, or one address, may be sent within a window. Asked at the door, in the
 * transaction that accepts: of many at once no more get through than the limit says; a repeat of a known key is never
 * counted, nor is what was not accepted.
 */
import { invalidInput, type HeadgateError } from '../errors.js';
import { parseDurationMs, type Duration } from './duration.js';
import { notifyError } from './errors.js';
import type { NewDelivery } from './store.js';

export interface SendLimit {
  /** Whose notifications are counted: those of a user, or those that go to an address, whoever the user is. */
  readonly per: 'user' | 'destination';
  /** 1 to 1,000. */
  readonly count: number;
  /** Any stretch of time of this length, not a fixed hour of the clock. */
  readonly window: Duration;
}

export interface LimitPolicy {
  readonly per: 'user' | 'destination';
  readonly count: number;
  readonly windowMs: number;
}

/** One limit of one notification: what is counted, how many there may be, and for how long they count. */
export interface CountedSubject {
  readonly subject: string;
  readonly count: number;
  readonly windowMs: number;
}

/** Each counted time is kept, so the largest count bounds a row. */
const countMax = 1_000;
const limitsMax = 10;

export function parseLimits(field: string, limits: readonly SendLimit[]): LimitPolicy[] {
  if (!Array.isArray(limits) || limits.length > limitsMax)
    throw invalidInput(field, limits, `a list of at most ${limitsMax} limits`);
  return limits.map(({ per, count, window }: SendLimit, index): LimitPolicy => {
    if (per !== 'user' && per !== 'destination')
      throw invalidInput(`${field}[${index}].per`, per, 'user or destination');
    if (!Number.isSafeInteger(count) || count < 1 || count > countMax)
      throw invalidInput(`${field}[${index}].count`, count, `a whole number from 1 to ${countMax}`);
    return { per, count, windowMs: parseDurationMs(`${field}[${index}].window`, window, 1) };
  });
}

/** What a notification counts for. One whose deliveries have all ended before they began counts for nothing. */
export function subjectsOf(
  limits: readonly LimitPolicy[],
  { user, deliveries }: { readonly user: string; readonly deliveries: readonly NewDelivery[] },
): CountedSubject[] {
  const live = deliveries.filter(({ suppressed }) => suppressed === undefined);
  if (live.length === 0) return [];
  return limits.flatMap(({ per, count, windowMs }) =>
    (per === 'user' ? [`user ${user}`] : live.map(addressOf)).map((subject) => ({
      subject,
      count,
      windowMs,
    })),
  );
}

/** An e-mail address in other letters reaches the same mailbox nearly everywhere. */
const addressOf = ({ destination: { channel, address } }: NewDelivery): string =>
  `${channel} ${channel === 'email' ? address.toLowerCase() : address}`;

export function limitReached(kind: string, retryAfterMs: number): HeadgateError {
  const seconds = Math.ceil(retryAfterMs / 1_000);
  return notifyError('send-limited', `no more of the kind "${kind}" for now; send again in ${seconds} s`, {
    ids: { kind },
    retryAfterMs,
  });
}
