/**
 * Tells the store how messages ended. Settlements gather while a call is on its way and go with the next one, so that
 * load makes the batches larger and an idle worker waits for nothing. Guarantees: every settlement is repeated until the
 * store has answered it (all are safe to repeat), one bad settlement holds no other back, and at most
 * `bytesPerCall` of results go in one call.
 */
import type { Clock } from '../../clock.js';
import type { Log } from '../../log.js';
import type { Metrics } from '../../metrics.js';
import type { QueueCounters } from '../counters.js';
import { parseErrorText } from '../parse.js';
import type { FollowUp, LeaseOutcome, QueueStore } from '../store.js';
import type { CallGate } from './calls.js';
import type { Held } from './held.js';
import { lossError, type Leases } from './leases.js';
import type { WorkerMetric } from './metrics.js';

const settlementsPerCall = { inTurn: 1_000, sideBySide: 2_000 } as const;
const bytesPerCall = 4 * 1_048_576;
/** Whoever holds a row is most often done with it by then. */
const busyPauseMs = 20;
/** How often a settlement that the store calls busy goes with the others again before it goes alone. */
const busyTogetherMax = 2;

export type Settlement =
  | {
      readonly kind: 'complete';
      readonly held: Held;
      readonly result: string | undefined;
      readonly followUps: readonly FollowUp[] | undefined;
    }
  | {
      readonly kind: 'fail';
      readonly held: Held;
      readonly error: string;
      readonly retryDelayMs: number | undefined;
    }
  | { readonly kind: 'release'; readonly held: Held; readonly delayMs: number };

export type Completion = Extract<Settlement, { kind: 'complete' }>;

export interface SettlerOptions {
  readonly store: Pick<QueueStore, 'complete' | 'fail' | 'release' | 'sideBySide'>;
  readonly clock: Clock;
  readonly gate: CallGate;
  readonly leases: Leases;
  readonly log: Log;
  readonly metrics: Metrics<WorkerMetric>;
  readonly counters: QueueCounters;
  /** Something can be sent or has been answered. */
  readonly wake: () => void;
  /** Messages of this queue have ended or gone back: others may have become dequeueable. */
  readonly onSettled: (queue: string, kind: Settlement['kind']) => void;
}

/** What waits to be sent of one queue. `alone`: the store said busy, so they are asked one by one. */
class Pending {
  readonly complete: Completion[] = [];
  readonly others: Settlement[] = [];
  readonly alone: Settlement[] = [];
  calls = 0;
  /** Halved by a call that failed: whatever is wrong with one settlement, the others get through. */
  sizeMax: number;

  constructor(sizeMax: number) {
    this.sizeMax = sizeMax;
  }
}

export class Settler {
  readonly #options: SettlerOptions;
  readonly #perCall: number;
  readonly #queues = new Map<string, Pending>();
  readonly #timers = new Set<NodeJS.Timeout>();
  #open = 0;

  constructor(options: SettlerOptions) {
    this.#options = options;
    this.#perCall = settlementsPerCall[options.store.sideBySide === true ? 'sideBySide' : 'inTurn'];
  }

  /** Settlements that the store has not answered. */
  get size(): number {
    return this.#open;
  }

  add(settlement: Settlement): void {
    settlement.held.phase = 'settling';
    this.#open += 1;
    this.#put(settlement);
    this.#options.wake();
  }

  flush(): void {
    for (const [queue, pending] of this.#queues) {
      if (pending.calls > 0) continue;
      const alone = pending.alone.shift();
      if (alone !== undefined) this.#send(queue, pending, [alone]);
      const completions = this.#take(pending);
      if (completions.length > 0) this.#send(queue, pending, completions);
      for (const kind of ['fail', 'release'] as const) {
        const settlements = takeKind(pending, kind);
        if (settlements.length > 0) this.#send(queue, pending, settlements);
      }
      if (isEmpty(pending)) this.#queues.delete(queue);
    }
  }

  /**
   * Completions that go along with a dequeue, those with follow-ups excepted, and none when more than `most` wait; the caller
   * hands them to `answered` or `giveBack`.
   */
  takeCompletions(queue: string, most: number): Completion[] {
    const pending = this.#queues.get(queue);
    if (pending === undefined || pending.sizeMax < this.#perCall || pending.complete.length > most) return [];
    return this.#take(pending, ({ followUps }) => followUps === undefined);
  }

  giveBack(settlements: readonly Settlement[]): void {
    for (const settlement of settlements) this.#put(settlement);
  }

  answered(settlements: readonly Settlement[], outcomes: readonly LeaseOutcome[]): void {
    const counts = new Map<string, number>();
    const busy: Settlement[] = [];
    for (const [index, settlement] of settlements.entries()) {
      const outcome = outcomes[index];
      if (outcome === undefined || outcome.kind === 'busy') {
        busy.push(settlement);
        continue;
      }
      const label = this.#answer(settlement, outcome);
      if (label !== undefined) counts.set(label, (counts.get(label) ?? 0) + 1);
    }
    if (busy.length > 0) this.#later(busy);
    const first = settlements[0];
    if (first === undefined) return;
    const { queue } = first.held.message;
    this.#options.counters.settled(queue, first.kind, outcomes);
    for (const [outcome, count] of counts) {
      this.#options.metrics.add('headgate_worker_messages_total', { queue, outcome }, count);
    }
    this.#options.onSettled(queue, first.kind);
  }

  /** Forgets what the store has not answered; the leases end by themselves. */
  stop(): void {
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers.clear();
    this.#queues.clear();
  }

  #put(settlement: Settlement): void {
    const pending = this.#pendingOf(settlement.held.message.queue);
    if (settlement.kind === 'complete') pending.complete.push(settlement);
    else pending.others.push(settlement);
  }

  #pendingOf(queue: string): Pending {
    let pending = this.#queues.get(queue);
    if (pending === undefined) {
      pending = new Pending(this.#perCall);
      this.#queues.set(queue, pending);
    }
    return pending;
  }

  #take(pending: Pending, goes: (completion: Completion) => boolean = () => true): Completion[] {
    if (!this.#options.gate.mayCall()) return [];
    let bytes = 0;
    let count = 0;
    for (const completion of pending.complete) {
      bytes += completion.result?.length ?? 0;
      if (!goes(completion) || count === pending.sizeMax || (count > 0 && bytes > bytesPerCall)) break;
      count += 1;
    }
    return pending.complete.splice(0, count);
  }

  #send(queue: string, pending: Pending, settlements: readonly Settlement[]): void {
    if (this.#options.gate.mayCall()) void this.#sendNow(queue, pending, settlements);
    else this.giveBack(settlements);
  }

  async #sendNow(queue: string, pending: Pending, settlements: readonly Settlement[]): Promise<void> {
    pending.calls += 1;
    const result = await this.#options.gate.run(() => this.#call(queue, settlements));
    pending.calls -= 1;
    if (result.ok) {
      pending.sizeMax = Math.min(this.#perCall, pending.sizeMax * 2);
      this.answered(settlements, result.value);
    } else {
      pending.sizeMax = Math.max(1, Math.floor(pending.sizeMax / 2));
      this.giveBack(settlements);
    }
    this.#options.wake();
  }

  #call(queue: string, settlements: readonly Settlement[]): Promise<LeaseOutcome[]> {
    const { store, clock } = this.#options;
    const now = clock.storeNow();
    const kind = settlements[0]?.kind;
    if (kind === 'complete') {
      return store.complete({
        queue,
        leases: (settlements as readonly Completion[]).map(completionLease),
        now,
      });
    }
    if (kind === 'fail') {
      const leases = (settlements as readonly Extract<Settlement, { kind: 'fail' }>[]).map(
        ({ held: { message }, error, retryDelayMs }) => ({
          id: message.id,
          leaseToken: message.leaseToken,
          error,
          retryDelayMs,
        }),
      );
      return store.fail({ queue, leases, now });
    }
    const leases = (settlements as readonly Extract<Settlement, { kind: 'release' }>[]).map(
      ({ held: { message }, delayMs }) => ({
        id: message.id,
        leaseToken: message.leaseToken,
        delayMs,
        refund: true,
      }),
    );
    return store.release({ queue, leases, now });
  }

  /** The metric's label, or undefined when the settlement goes on. */
  #answer(settlement: Settlement, outcome: Exclude<LeaseOutcome, { kind: 'busy' }>): string | undefined {
    const { held } = settlement;
    if (outcome.kind === 'refused') return this.#refused(settlement, outcome.error);
    this.#end(held);
    if (outcome.kind === 'done')
      return { complete: 'completed', fail: 'failed', release: 'released' }[settlement.kind];
    held.execution?.abort(lossError(held, outcome.kind));
    const { queue, id } = held.message;
    this.#options.log.warn(
      { queue, message: id, outcome: outcome.kind },
      'a message had left this worker before it was settled',
    );
    return outcome.kind;
  }

  /** A result that the store refuses would be refused again: the message is errored and says why. */
  #refused(settlement: Settlement, error: unknown): string | undefined {
    const { held } = settlement;
    const { queue, id } = held.message;
    this.#options.log.error(
      { queue, message: id, settlement: settlement.kind, error },
      'the store refused a settlement',
    );
    if (settlement.kind === 'complete') {
      this.#put({ kind: 'fail', held, error: parseErrorText(error), retryDelayMs: undefined });
      return undefined;
    }
    this.#end(held);
    return 'refused';
  }

  #end(held: Held): void {
    held.phase = 'ended';
    this.#options.leases.remove(held);
    this.#open -= 1;
  }

  /** Somebody else held these rows: they go again with the others, and alone when that does not help. */
  #later(settlements: readonly Settlement[]): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      for (const settlement of settlements) {
        settlement.held.timesBusy += 1;
        if (settlement.held.timesBusy <= busyTogetherMax) this.#put(settlement);
        else this.#pendingOf(settlement.held.message.queue).alone.push(settlement);
      }
      this.#options.wake();
    }, busyPauseMs);
    this.#timers.add(timer);
  }
}

export function completionLease({ held: { message }, result, followUps }: Completion) {
  return {
    id: message.id,
    leaseToken: message.leaseToken,
    result,
    ...(followUps === undefined ? {} : { followUps }),
  };
}

function takeKind(pending: Pending, kind: 'fail' | 'release'): Settlement[] {
  const taken: Settlement[] = [];
  const kept: Settlement[] = [];
  for (const settlement of pending.others) {
    if (settlement.kind === kind && taken.length < pending.sizeMax) taken.push(settlement);
    else kept.push(settlement);
  }
  pending.others.splice(0, pending.others.length, ...kept);
  return taken;
}

function isEmpty(pending: Pending): boolean {
  return pending.calls === 0 && pending.complete.length + pending.others.length + pending.alone.length === 0;
}
