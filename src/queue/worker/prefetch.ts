/**
 * How much may be held in advance, and what is held. Guarantees: at most `holdMs` of work at the present rate, nothing
 * that waits longer than twice that, never a message on its last attempt, and a held message starts only in a slot that
 * is free for its lane, so it never takes a floor's place.
 */
import type { Clock } from '../../clock.js';
import { noLane } from '../lanes.js';
import type { Held } from './held.js';
import type { PrefetchOptions } from './options.js';

/** Below this many messages there is nothing to win: a fetch brings about as many. */
const targetLeast = 10;
/** The first windows are short: until the rate is known a worker fetches no more than its free slots take. */
const windowMsFirst = 10;
const windowMsMax = 50;

/** The rate at which this worker ends messages, over the last windows of 50 ms. */
export class Rate {
  readonly #clock: Clock;
  #windowStartMs: number;
  #windowMs = windowMsFirst;
  #count = 0;
  /** Undefined from the first message after an idle time until one has ended. */
  #perMs: number | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#windowStartMs = clock.monotonicMs();
  }

  /** Messages have come to a worker that holds none: the time in which there was nothing to do says nothing of its rate. */
  begin(): void {
    if (this.#count > 0 || (this.#perMs ?? 0) > 0) return;
    this.#perMs = undefined;
    this.#windowMs = windowMsFirst;
    this.#windowStartMs = this.#clock.monotonicMs();
  }

  add(count: number): void {
    this.#count += count;
  }

  perMs(): number {
    const elapsedMs = this.#clock.monotonicMs() - this.#windowStartMs;
    const isUnknown = this.#perMs === undefined;
    if (elapsedMs < this.#windowMs || (isUnknown && this.#count === 0)) return this.#perMs ?? 0;
    const perMs = this.#count / elapsedMs;
    const share = isUnknown ? 1 : Math.max(0.5, Math.min(1, elapsedMs / (4 * windowMsMax)));
    this.#perMs = (1 - share) * (this.#perMs ?? 0) + share * perMs;
    this.#windowMs = Math.min(windowMsMax, 2 * this.#windowMs);
    this.#count = 0;
    this.#windowStartMs += elapsedMs;
    return this.#perMs;
  }
}

export function prefetchTarget(rate: Rate, options: PrefetchOptions): number {
  const target = Math.min(options.messagesMax, Math.floor(rate.perMs() * options.holdMs));
  return target < targetLeast ? 0 : target;
}

/** Messages that are here and have not started, in order of arrival within each lane. */
export class WaitingRoom {
  /** By lane; those of no lane come last. */
  readonly #lines: Line[];
  #size = 0;
  #arrivals = 0;

  constructor(laneCount: number) {
    this.#lines = Array.from({ length: laneCount + 1 }, () => new Line());
  }

  get size(): number {
    return this.#size;
  }

  add(held: Held): void {
    this.#line(held.lane).push({ held, arrival: this.#arrivals });
    this.#arrivals += 1;
    this.#size += 1;
  }

  /**
   * The lane whose next message should start: one with a free floor first, then the most urgent; undefined when no
   * message may start. Between queues, whose priorities do not compare, order of arrival counts.
   */
  nextLane(ledger: { canTake(lane: number): boolean; floorFree(lane: number): number }): number | undefined {
    if (this.#size === 0) return undefined;
    let best: { readonly lane: number; readonly entry: Entry } | undefined;
    for (const [index, line] of this.#lines.entries()) {
      const lane = index === this.#lines.length - 1 ? noLane : index;
      const entry = line.first();
      if (entry === undefined || !ledger.canTake(lane)) continue;
      if (ledger.floorFree(lane) > 0) return lane;
      if (best === undefined || comesBefore(entry, best.entry)) best = { lane, entry };
    }
    return best?.lane;
  }

  take(lane: number, count: number): Held[] {
    const taken = this.#line(lane).take(count);
    this.#size -= taken.length;
    return taken;
  }

  /** Takes out every message for which `leaves` holds. */
  takeIf(leaves: (held: Held) => boolean): Held[] {
    const taken: Held[] = [];
    for (const line of this.#lines) line.takeIf(leaves, taken);
    this.#size -= taken.length;
    return taken;
  }

  #line(lane: number): Line {
    return this.#lines[lane === noLane ? this.#lines.length - 1 : lane] as Line;
  }
}

interface Entry {
  readonly held: Held;
  readonly arrival: number;
}

function comesBefore(a: Entry, b: Entry): boolean {
  const left = a.held.message;
  const right = b.held.message;
  if (left.queue === right.queue && left.priority !== right.priority) return left.priority < right.priority;
  return a.arrival < b.arrival;
}

/** First in, first out; taking from the front moves an index and now and then the rest. */
class Line {
  #entries: Entry[] = [];
  #start = 0;

  push(entry: Entry): void {
    this.#entries.push(entry);
  }

  first(): Entry | undefined {
    return this.#entries[this.#start];
  }

  take(count: number): Held[] {
    const taken = this.#entries.slice(this.#start, this.#start + count).map(({ held }) => held);
    this.#start += taken.length;
    if (this.#start === this.#entries.length || this.#start > 1_000) {
      this.#entries = this.#entries.slice(this.#start);
      this.#start = 0;
    }
    return taken;
  }

  takeIf(leaves: (held: Held) => boolean, into: Held[]): void {
    const kept: Entry[] = [];
    for (const entry of this.#entries.slice(this.#start)) {
      if (leaves(entry.held)) into.push(entry.held);
      else kept.push(entry);
    }
    this.#entries = kept;
    this.#start = 0;
  }
}
