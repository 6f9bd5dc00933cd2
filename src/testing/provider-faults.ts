/**
 * How a counterpart of a provider misbehaves: a script of faults, drawn with a seed or given one by one, so that a run
 * can be repeated exactly. `accepts` says whether the message counts as taken whatever the caller is told.
 */
export type Fault =
  /** Does its job. */
  | { readonly kind: 'none' }
  /** Says nothing for ever. */
  | { readonly kind: 'silent'; readonly accepts?: boolean }
  /** Cuts the connection; HTTP after the whole request, SMTP and SMPP where their own faults do not say otherwise. */
  | { readonly kind: 'cut'; readonly accepts?: boolean }
  /** Does its job so many milliseconds late. */
  | { readonly kind: 'late'; readonly delayMs: number; readonly accepts?: boolean }
  /** Answers one byte a second for ever. */
  | { readonly kind: 'drip'; readonly accepts?: boolean }
  /** Answers this (HTTP status, SMTP reply, SMPP status). */
  | {
      readonly kind: 'answer';
      readonly status: number;
      readonly headers?: Readonly<Record<string, string>>;
      readonly body?: string;
      readonly accepts?: boolean;
    };

export interface FaultScript {
  /** The fault of the next request. */
  next(): Fault;
}

const none: Fault = { kind: 'none' };

/** In the order given, then none; with `repeat` the last one for ever. */
export function faultList(faults: readonly Fault[], { repeat = false } = {}): FaultScript {
  let index = 0;
  return {
    next() {
      const fault = faults[index] ?? (repeat ? faults.at(-1) : undefined);
      index += 1;
      return fault ?? none;
    },
  };
}

/** Draws each fault with its share of all requests; the same seed gives the same script. */
export function faultShares(input: {
  readonly seed: number;
  readonly shares: readonly (readonly [share: number, fault: Fault])[];
}): FaultScript {
  const random = seededRandom(input.seed);
  return { next: () => drawShare(input.shares, random()) ?? none };
}

/** Which of the shares a number from 0 to 1 falls into; undefined: what is left of the whole. */
export function drawShare<T>(
  shares: readonly (readonly [share: number, of: T])[],
  drawn: number,
): T | undefined {
  let left = drawn;
  for (const [share, of] of shares) {
    if (left < share) return of;
    left -= share;
  }
  return undefined;
}

/** Evenly from 0 to 1, the same for the same seed (mulberry32). */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** Whether a message counts as taken under this fault. Default: only when the job is done. */
export function accepts(fault: Fault): boolean {
  if (fault.kind === 'none') return true;
  if (fault.kind === 'late') return fault.accepts ?? true;
  return fault.accepts ?? false;
}
