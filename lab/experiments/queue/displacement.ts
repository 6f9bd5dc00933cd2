/** By how many less urgent messages one was overtaken, counted only where the order of the calls leaves no doubt. */

export interface Written {
  readonly priority: number;
  /** When its enqueue was answered. */
  readonly acknowledgedAt: number;
}

export interface Taken {
  readonly id: string;
  /** When the dequeue that handed it out began and was answered. */
  readonly askedAt: number;
  readonly answeredAt: number;
}

/**
 * A message is overtaken by a less urgent one when it had been acknowledged before the other's dequeue began, and that
 * dequeue was answered before its own began.
 */
export function largestDisplacement(written: ReadonlyMap<string, Written>, taken: readonly Taken[]): number {
  const all = taken.map(({ id, askedAt, answeredAt }) => ({ ...written.get(id)!, askedAt, answeredAt }));
  let largest = 0;
  for (const message of all) {
    let overtaken = 0;
    for (const other of all) {
      if (
        other.priority > message.priority &&
        other.askedAt > message.acknowledgedAt &&
        other.answeredAt < message.askedAt
      )
        overtaken += 1;
    }
    largest = Math.max(largest, overtaken);
  }
  return largest;
}
