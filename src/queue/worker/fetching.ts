/**
 * Decides what to ask the store for and asks. Guarantees: a dequeue whose reply was lost is repeated under its requestId,
 * so that it strands nothing; the calls on their way are few (two a queue, one a queue and lane, `callsMax` together);
 * shared slots are served queue by queue in proportion to the weights; a lane is asked for its floor alone.
 *
 * What is known of a queue:
 *   maybe ─fewer than asked for, but some─► maybe        maybe ─all that was asked for─► full (a lane may find more)
 *   maybe | full ─nothing─► empty                        empty ─hint, poll, or something settled─► maybe
 * A lane of a queue is asked only when the shared slots cannot take its messages: they are taken, or the queue is full.
 */
import { randomToken } from '../../ids.js';
import type { QueueCounters } from '../counters.js';
import type { SlotLedger } from '../lanes.js';
import { laneOf, noLane } from '../lanes.js';
import type { LeasedMessage, Metadata } from '../message.js';
import type { DequeueRequest } from '../store.js';
import type { CallGate } from './calls.js';
import type { WorkerSettings } from './options.js';
import { prefetchTarget, type Rate, type WaitingRoom } from './prefetch.js';
import { completionLease, type Completion, type Settler } from './settling.js';
import { Source, type LaneSource, shareOut } from './sources.js';

/** A call costs the same for any number: a commit, and two ways. But who carries calls out in turn holds all others up. */
const messagesPerCall = { inTurn: 500, sideBySide: 2_000 } as const;
const callsMax = 4;
/** More completions than this are sooner done by a process of their own than in one call with a dequeue. */
const completionsBesideMax = 100;
/** A second call of a queue goes out only for this many: below, the first one's answer comes sooner. */
const secondCallLeast = 100;

export interface FetcherOptions {
  readonly settings: WorkerSettings;
  readonly ledger: SlotLedger;
  readonly waiting: WaitingRoom;
  readonly settler: Settler;
  readonly rate: Rate;
  readonly gate: CallGate;
  readonly counters: QueueCounters;
  readonly wake: () => void;
  readonly onMessages: (
    messages: readonly LeasedMessage[],
    fetch: { readonly lane: number; readonly sentAtMs: number },
  ) => void;
}

interface Fetch {
  readonly source: Source;
  readonly lane: LaneSource | undefined;
  readonly count: number;
  /** No slot waits for it. */
  readonly ahead: boolean;
  /** The number of the call among those for the queue's shared slots. */
  readonly call: number;
  readonly requestId: string;
}

export class Fetcher {
  readonly sources: readonly Source[];
  readonly #options: FetcherOptions;
  readonly #messagesPerCall: number;
  /** Fetches whose reply was lost. */
  readonly #lost: Fetch[] = [];
  #calls = 0;
  #askedShared = 0;

  constructor(options: FetcherOptions) {
    this.#options = options;
    const { queues, lanes, store } = options.settings;
    this.#messagesPerCall = messagesPerCall[store.sideBySide === true ? 'sideBySide' : 'inTurn'];
    this.sources = queues.map(({ queue, weight }) => new Source(queue, weight, lanes));
  }

  /** Fetches that are on their way or have lost their reply. */
  get open(): number {
    return this.#calls + this.#lost.length;
  }

  /** Repeats what was lost and asks for what is free. */
  plan(): void {
    this.resume();
    const { settler, settings } = this.#options;
    const unsettledMax = 2 * (settings.slots * settings.callSize + settings.prefetch.messagesMax);
    if (settler.size > unsettledMax) return;
    this.#planShared();
    this.#planLanes();
  }

  /**
   * Asks for more before what has just come is handled, so that a store that has a process of its own for each call works
   * meanwhile. Only while a queue gives all that is asked for: below that an answer would mostly be empty.
   */
  planAhead(): void {
    const isFull = ({ state }: Source) => state === 'full';
    if (this.#options.settings.store.sideBySide === true && this.sources.some(isFull)) this.plan();
  }

  /** Repeats what was lost: also while stopping, so that it can be handed back. */
  resume(): void {
    for (let lost = this.#lost[0]; lost !== undefined && this.#options.gate.mayCall(); lost = this.#lost[0]) {
      this.#lost.shift();
      void this.#send(lost, []);
    }
  }

  #planShared(): void {
    const { ledger, settings, waiting, rate } = this.#options;
    let idle = ledger.sharedFree() * settings.callSize - waiting.size - this.#askedShared;
    const ahead = prefetchTarget(rate, settings.prefetch);
    if (idle <= 0 && idle + ahead < ahead / 4) return;
    const mayAskTwice = settings.store.sideBySide !== true && idle + ahead >= secondCallLeast;
    const shares = shareOut({
      sources: this.sources,
      count: idle + ahead,
      slots: settings.slots,
      canAsk: ({ calls }) => calls === 0 || (calls === 1 && mayAskTwice),
    });
    for (const [source, wanted] of shares) {
      const count = Math.min(
        this.#messagesPerCall,
        source.mayPrefetch(settings.clock) ? wanted : Math.min(wanted, idle),
      );
      if (count < (source.calls === 0 ? 1 : secondCallLeast)) continue;
      if (!this.#maySend()) return;
      this.#ask({ source, lane: undefined, count, ahead: idle <= 0 });
      idle = Math.max(0, idle - count);
    }
  }

  #planLanes(): void {
    const { ledger, settings } = this.#options;
    if (settings.lanes.length === 0) return;
    for (const source of this.sources) {
      if (source.state !== 'full' && ledger.sharedFree() > 0) continue;
      for (const lane of source.lanes) {
        const count = Math.min(
          this.#messagesPerCall,
          ledger.floorFree(lane.lane) * settings.callSize - this.#askedOf(lane.lane),
        );
        if (!lane.maybe || lane.asked > 0 || count <= 0) continue;
        if (!this.#maySend()) return;
        this.#ask({ source, lane, count, ahead: false });
      }
    }
  }

  #askedOf(lane: number): number {
    let asked = 0;
    for (const source of this.sources) {
      for (const laneSource of source.lanes) if (laneSource.lane === lane) asked += laneSource.asked;
    }
    return asked;
  }

  #maySend(): boolean {
    return this.#calls < callsMax && this.#lost.length === 0 && this.#options.gate.mayCall();
  }

  #ask(request: Omit<Fetch, 'requestId' | 'call'>): void {
    const { source, lane, count } = request;
    let call = 0;
    if (lane === undefined) {
      call = source.ask(count);
      this.#askedShared += count;
    } else {
      lane.asked = count;
      lane.hinted = false;
    }
    const fetch = { ...request, call, requestId: randomToken() };
    const { settler, settings } = this.#options;
    const { settleAndDequeue, sideBySide } = settings.store;
    const goesAlone = settleAndDequeue === undefined || (sideBySide === true && fetch.ahead);
    const most = sideBySide === true ? completionsBesideMax : Number.POSITIVE_INFINITY;
    void this.#send(fetch, goesAlone ? [] : settler.takeCompletions(source.queue, most));
  }

  async #send(fetch: Fetch, completions: readonly Completion[]): Promise<void> {
    const { gate, settings, settler, wake } = this.#options;
    const sentAtMs = settings.clock.monotonicMs();
    this.#calls += 1;
    const result = await gate.run(() => this.#call(fetch, completions));
    this.#calls -= 1;
    if (result.ok) {
      settler.answered(completions, result.value.completed);
      this.#received(fetch, result.value.messages, sentAtMs);
    } else {
      settler.giveBack(completions);
      this.#lost.push(fetch);
    }
    wake();
  }

  async #call(fetch: Fetch, completions: readonly Completion[]): Promise<Answer> {
    const { store, clock, leaseMs, name } = this.#options.settings;
    const { queue } = fetch.source;
    const now = clock.storeNow();
    const where: Metadata = fetch.lane?.where ?? {};
    const dequeue: DequeueRequest = {
      queue,
      count: fetch.count,
      where,
      leaseMs,
      requestId: fetch.requestId,
      worker: name,
      now,
    };
    if (completions.length === 0 || store.settleAndDequeue === undefined) {
      return { completed: [], messages: await store.dequeue(dequeue) };
    }
    return store.settleAndDequeue({ queue, complete: completions.map(completionLease), dequeue, now });
  }

  #received(fetch: Fetch, messages: readonly LeasedMessage[], sentAtMs: number): void {
    const { source, lane, count } = fetch;
    this.#options.counters.dequeued(source.queue, messages);
    if (lane === undefined) {
      this.#askedShared -= count;
      source.answered({ call: fetch.call, asked: count, got: messages.length });
    } else {
      lane.asked = 0;
      lane.maybe = lane.hinted || messages.length > 0;
    }
    this.#options.onMessages(messages, { lane: lane?.lane ?? noLane, sentAtMs });
  }
}

interface Answer {
  readonly completed: Parameters<Settler['answered']>[1];
  readonly messages: readonly LeasedMessage[];
}

/** The lane a fetched message counts for: that of its fetch, else the first it matches. */
export function laneOfFetched(settings: WorkerSettings, fetchLane: number, message: LeasedMessage): number {
  return fetchLane === noLane ? laneOf(settings.lanes, message) : fetchLane;
}
