/** Waits for a condition and never for a number of milliseconds: what every test here waits with. */
import { setTimeout as delay } from 'node:timers/promises';

export interface UntilOptions {
  /** What is waited for, for whoever reads the failure. Default: the text of `fact`. */
  readonly what?: string;
  /** After so long it throws; default 40,000 ms, which a machine with other work to do needs at times. */
  readonly boundMs?: number;
  /** Between two looks; default 10 ms. */
  readonly everyMs?: number;
}

type Nothing = false | undefined | null | 0 | '';

/** Looks until `fact` answers true, or anything that counts as it, and answers that. */
export async function until<T>(
  fact: () => T | Promise<T>,
  { what = fact.toString(), boundMs = 40_000, everyMs = 10 }: UntilOptions = {},
): Promise<Exclude<T, Nothing>> {
  const endsAtMs = performance.now() + boundMs;
  for (;;) {
    const found = await fact();
    if (found) return found as Exclude<T, Nothing>;
    if (performance.now() > endsAtMs) throw new Error(`not within ${boundMs} ms: ${what}`);
    await delay(everyMs);
  }
}
