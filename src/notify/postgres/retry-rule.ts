/**
 * What becomes of a delivery by what is known after an attempt, as calls of the functions in which it stands (migration
 * 0004), over a row `r` of delivery and kind joined, with the time as `r.now`.
 */

/** The state after an attempt whose outcome nobody knows. */
export const stateAfterAmbiguous = (schema: string, retryAt: string): string =>
  `${schema}.state_after_ambiguous(r.delivery, r.attempts, r.attempts_max, r.now, r.expires_at, ${retryAt})`;

/** The reason that goes with it. */
export const reasonAfterAmbiguous = (schema: string): string =>
  `${schema}.reason_after_ambiguous(r.delivery, r.attempts, r.attempts_max, r.now, r.expires_at)`;

/** When it is tried again, if it is. */
export const retryAtAfterAmbiguous = (schema: string, jitter: string): string =>
  `${schema}.retry_at_after_ambiguous(r.now, r.attempts, r.retry_after_ms, r.retry_after_max_ms, null, ${jitter})`;

/** When the sweep looks at a row that waits: after its wake-up must have come, and not after its deadline. */
export function sweepAt(
  schema: string,
  input: { runAfter: string; expiresAt: string; sweepMs: string },
): string {
  return `${schema}.sweep_at(${input.runAfter}, ${input.expiresAt}, ${input.sweepMs}::bigint)`;
}
