/** How many messages of a queue have used up their attempts: counted up to a page, seldom, and shared by all who look. */
import type { ServerParts } from './parts.js';

const countMax = 100;
const keptMs = 10_000;

/** Answers 100 for a hundred or more. */
export function createErroredCount({ queue }: ServerParts): (name: string) => Promise<number> {
  const known = new Map<string, { readonly atMs: number; readonly count: Promise<number> }>();
  return (name) => {
    const nowMs = performance.now();
    const last = known.get(name);
    if (last !== undefined && nowMs - last.atMs < keptMs) return last.count;
    const count = queue()
      .list(name, { state: 'errored', limit: countMax })
      .then(({ messages }) => messages.length)
      .catch((error: unknown) => {
        known.delete(name);
        throw error;
      });
    known.set(name, { atMs: nowMs, count });
    return count;
  };
}
