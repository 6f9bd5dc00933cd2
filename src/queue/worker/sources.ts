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
  /** Messages asked for and not refused by an answer, by weight: whoever has least is next. */
  served = 0;
  /** False from an empty answer until the queue takes part again. */
  joined = false;
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

  servedFor(shares: ReadonlyMap<Source, number>): number {
    return this.served + (shares.get(this) ?? 0) / this.weight;
  }

  /** Answers the number of the call. */
  ask(count: number): number {
    this.calls += 1;
    this.#asked += 1;
    this.served += count / this.weight;
    return this.#asked;
  }

  answered(request: { readonly call: number; readonly asked: number; readonly got: number }): void {
    const { call, asked, got } = request;
    this.calls -= 1;
    this.served -= (asked - got) / this.weight;
    if (got > 0) {
      this.state = got >= asked ? 'full' : 'maybe';
      this.#knownUpTo = Math.max(this.#knownUpTo, call);
    } else if (call > this.#knownUpTo) {
      this.state = 'empty';
      this.joined = false;
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

/** Steps in which a count is divided: fine enough to be fair, few enough to cost nothing. */
const stepsMost = 64;

/**
 * Divides `count` among the sources that may have something, in turn and in proportion to their weights: the one that has
 * had least for its weight is next. One whose call is on its way cannot take more; the others may get ahead of it by about
 * one round of all slots, so that it is neither waited for long nor left behind.
 */
export function shareOut(request: {
  readonly sources: readonly Source[];
  readonly count: number;
  readonly slots: number;
  readonly canAsk: (source: Source) => boolean;
}): Map<Source, number> {
  const { count, slots, canAsk } = request;
  const shares = new Map<Source, number>();
  const sources = request.sources.filter((source) => source.state !== 'empty');
  const [only] = sources;
  if (only === undefined || count <= 0) return shares;
  joinIn(sources);
  if (sources.length === 1) return canAsk(only) ? shares.set(only, count) : shares;
  const ahead = slots / sources.reduce((total, source) => total + source.weight, 0);
  const step = Math.ceil(count / stepsMost);
  for (let left = count; left > 0; left -= step) {
    const least = Math.min(...sources.map((source) => source.servedFor(shares)));
    const next = sources
      .filter((source) => canAsk(source) && source.servedFor(shares) <= least + ahead)
      .reduce<Source | undefined>((best, source) => {
        return best === undefined || source.servedFor(shares) < best.servedFor(shares) ? source : best;
      }, undefined);
    if (next === undefined) return shares;
    shares.set(next, (shares.get(next) ?? 0) + Math.min(step, left));
  }
  return shares;
}

/** A queue that was empty does not catch up on what it did not need. */
function joinIn(sources: readonly Source[]): void {
  const least = Math.min(...sources.filter(({ joined }) => joined).map(({ served }) => served));
  for (const source of sources) {
    if (!source.joined && Number.isFinite(least)) source.served = Math.max(source.served, least);
    source.joined = true;
  }
}
