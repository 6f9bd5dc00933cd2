/**
 * What becomes of a delivery by what is known after an attempt, as SQL over a row `r` of delivery and kind joined, with
 * the time as `r.now`. One text for the answer of a provider and for the sweep, so that a process that died and one that
 * lived decide alike.
 */

/** The state after an attempt whose outcome nobody knows. */
export function stateAfterAmbiguous(retryAt: string): string {
  return `case
      when r.delivery = 'at-most-once' then 'ambiguous'
      when r.now >= r.expires_at then 'expired'
      when r.attempts >= r.attempts_max then 'failed'
      when ${retryAt} >= r.expires_at then 'expired'
      else 'waiting' end`;
}

/** The reason that goes with it. */
export const reasonAfterAmbiguous = `case
      when r.delivery = 'at-most-once' then 'nobody knows whether it arrived, and it is sent at most once'
      when r.now >= r.expires_at then 'deadline passed'
      when r.attempts >= r.attempts_max then 'attempts used up'
      else 'the next attempt would come after the deadline' end`;

/** Doubles with each attempt up to the kind's longest pause; up to a fifth more by `jitter`. */
export function retryAtAfterAmbiguous(input: { jitter: string; retryAfterMs: string }): string {
  const { jitter, retryAfterMs } = input;
  return `(r.now + greatest(coalesce(${retryAfterMs}, 0),
      least(r.retry_after_max_ms, r.retry_after_ms * power(2, least(r.attempts - 1, 30))) * (1 + ${jitter} * 0.2))::bigint)`;
}

/**
 * Nothing was sent, so the pause begins short (at most 1 s) and doubles while nothing is accepted. What the provider asks
 * for is obeyed, and the return is spread over two fifths of it, so that they do not all come back at once.
 */
export function retryAtAfterDecline(input: { jitter: string; retryAfterMs: string }): string {
  const { jitter, retryAfterMs } = input;
  return `(r.now + greatest(coalesce(${retryAfterMs} * (1 + ${jitter} * 0.4), 0),
      least(r.retry_after_max_ms, least(r.retry_after_ms, 1000) * power(2, least(r.declines, 30))) * (1 + ${jitter} * 0.5))::bigint)`;
}

/** When the sweep looks at a row that waits: after its wake-up must have come, and not after its deadline. */
export function sweepAt(input: { runAfter: string; expiresAt: string; sweepMs: string }): string {
  return `greatest(${input.runAfter}, least(${input.expiresAt}, ${input.runAfter} + ${input.sweepMs}::bigint))`;
}
