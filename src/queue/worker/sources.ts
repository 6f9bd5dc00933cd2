/** What a worker knows of each of its queues, and how shared slots are divided among them. */
import type { Clock } from '../../clock.js';
import type { ResolvedLane } from '../lanes.js';
import type { Metadata } from '../message.js';

/** How often a queue that gives messages is asked whether it is exclusive. */
const typeMsMax = 30_000;
/** How long a queue is not fetched from in advance after it gave a message on its last attempt. */
const lastAttemptPauseMs = 5_000;

export interface LaneSource {
  readonly lane: number;
  readonly where: Metadata;
  maybe: boolean;
  hinted: boolean;
  /** Messages asked for by the call on its way. */
  asked: number;
}

export class Source {
  readonly queue: string;
  readonly weight: number;
  readonly lanes: readonly LaneSource[];
  state: 'maybe' | 'full' | 'empty' = 'maybe';
  calls = 0;
  /** Calls are numbered: an empty answer says nothing when a later call found something or a hint came after it. */
  #asked = 0;
  #knownUpTo = 0;
  /** Unknown until the store has told; taken for exclusive until then. */
  exclusive: boolean | undefined;
  credit = 0;
  #prefetchOffUntilMs = 0;
  #typeAskedAtMs = Number.NEGATIVE_INFINITY;

  constructor(queue: string, weight: number, lanes: readonly ResolvedLane[]) {
    this.queue = queue;
    this.weight = weight;
    this.lanes = lanes.flatMap((lane, index) =>
      lane.floor > 0 && (lane.queue === undefined || lane.queue === queue)
        ? [{ lane: index, where: lane.where, maybe: true, hinted: false, asked: 0 }]
        : [],
    );
  }

  /** Something may have become dequeueable. */
  hint(): void {
    this.#knownUpTo = this.#asked;
    if (this.state === 'empty') this.state = 'maybe';
    for (const lane of this.lanes) {
      lane.maybe = true;
      lane.hinted = true;
    }
  }

  /** Answers the number of the call. */
  ask(): number {
    this.calls += 1;
    this.#asked += 1;
    return this.#asked;
  }

  answered(request: { readonly call: number; readonly asked: number; readonly got: number }): void {
    const { call, asked, got } = request;
    this.calls -= 1;
    if (got > 0) {
      this.state = got >= asked ? 'full' : 'maybe';
      this.#knownUpTo = Math.max(this.#knownUpTo, call);
    } else if (call > this.#knownUpTo) {
      this.state = 'empty';
      for (const lane of this.lanes) lane.maybe = false;
    }
  }

  /** Whether it is time to ask for the queue's type; says yes once. */
  asksType(clock: Clock): boolean {
    const nowMs = clock.monotonicMs();
    if (nowMs - this.#typeAskedAtMs < typeMsMax) return false;
    this.#typeAskedAtMs = nowMs;
    return true;
  }

  mayPrefetch(clock: Clock): boolean {
    return this.exclusive === false && clock.monotonicMs() >= this.#prefetchOffUntilMs;
  }

  gaveLastAttempt(clock: Clock): void {
    this.#prefetchOffUntilMs = clock.monotonicMs() + lastAttemptPauseMs;
  }
}

/**
 * Divides `count` among the sources in turn and in proportion to their weights (smooth weighted round robin: the one with
 * the greatest credit gets the next, so that small counts are fair over time too).
 */
export function shareOut(sources: readonly Source[], count: number): Map<Source, number> {
  const shares = new Map<Source, number>();
  const [only] = sources;
  if (only === undefined || count <= 0) return shares;
  if (sources.length === 1) return shares.set(only, count);
  const weights = sources.reduce((total, source) => total + source.weight, 0);
  const rounds = Math.floor(count / 100);
  if (rounds > 0) {
    for (const source of sources) shares.set(source, Math.floor((source.weight / weights) * rounds * 100));
  }
  let left = count - [...shares.values()].reduce((total, share) => total + share, 0);
  for (; left > 0; left -= 1) {
    for (const source of sources) source.credit += source.weight;
    const next = sources.reduce((best, source) => (source.credit > best.credit ? source : best));
    next.credit -= weights;
    shares.set(next, (shares.get(next) ?? 0) + 1);
  }
  return shares;
}
