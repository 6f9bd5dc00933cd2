/**
 * Load on a queue while something happens to its server, and the check of what was recorded: producers and consumers repeat every call
 * until it is answered, as clients should, and write down what they were told.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { randomToken } from '../../../src/ids.js';
import { isHeadgateError } from '../../../src/errors.js';
import type { LeasedMessage, QueueStore } from '../../../src/queue/index.js';

export interface LeaseRecord {
  readonly id: string;
  readonly leaseToken: string;
  readonly attempts: number;
  /** By the server's clock. */
  readonly startedAt: number;
  readonly leaseUntil: number;
}

export interface LoadHistory {
  /** Ids whose enqueue was acknowledged. */
  readonly enqueued: Set<string>;
  readonly leases: LeaseRecord[];
  /** Completions that were accepted, by id: the tokens. */
  readonly completed: Map<string, Set<string>>;
  /** Completions under a token whose message had already been completed by another, and were accepted all the same. */
  readonly staleAccepted: string[];
  /** Calls that failed and were repeated. */
  failures: number;
}

export interface LoadOptions {
  readonly producers: readonly QueueStore[];
  readonly consumers: readonly QueueStore[];
  readonly queue: string;
  readonly messages: number;
  readonly leaseMs: number;
  /** Goes on beyond `messages` until it fires. */
  readonly producing?: AbortSignal;
  /** Ends when the queue is empty: what was acknowledged may have been lost. Default: when all of it has been completed. */
  readonly untilEmpty?: boolean;
  /** Metadata of a message; default none. */
  readonly metadata?: (number: number) => Record<string, string>;
}

const batch = 10;
const timeoutMs = 50_000;

/** Repeats until answered. A failure that is not the server's absence is the test's. */
async function persist<T>(history: LoadHistory, call: () => Promise<T>): Promise<T> {
  const endsAtMs = performance.now() + timeoutMs;
  for (;;) {
    try {
      return await call();
    } catch (error) {
      const isPassing =
        isHeadgateError(error, 'redis-unavailable') || isHeadgateError(error, 'not-replicated');
      if (!isPassing || performance.now() > endsAtMs) throw error;
      history.failures += 1;
      await delay(20);
    }
  }
}

export class Load {
  readonly history: LoadHistory = {
    enqueued: new Set(),
    leases: [],
    completed: new Map(),
    staleAccepted: [],
    failures: 0,
  };
  readonly #options: LoadOptions;
  #produced = false;

  constructor(options: LoadOptions) {
    this.#options = options;
  }

  /** Resolves when all that was acknowledged has been completed. */
  async run(): Promise<void> {
    const { producers, consumers } = this.#options;
    const consuming = consumers.map((store) => this.#consume(store));
    await Promise.all(producers.map((store, index) => this.#produce(store, index)));
    this.#produced = true;
    await Promise.all(consuming);
  }

  /** How far the load has come, from 0 to 1. */
  get progress(): number {
    return this.history.completed.size / this.#options.messages;
  }

  async #produce(store: QueueStore, producer: number): Promise<void> {
    const { messages, producers, queue, producing, metadata = () => ({}) } = this.#options;
    const share = Math.floor(messages / producers.length);
    const goesOn = (): boolean => producing !== undefined && !producing.aborted;
    for (let from = 0; from < share || goesOn(); from += batch) {
      // Consumers have to come to an end of it.
      if (from >= share) await delay(20);
      const length = from >= share ? batch : Math.min(batch, share - from);
      const ids = Array.from({ length }, (_, index) => `p${producer}-${from + index}`);
      const outcomes = await persist(this.history, () =>
        store.enqueue({
          queue,
          now: undefined,
          messages: ids.map((id, index) => message(id, metadata(from + index))),
        }),
      );
      for (const outcome of outcomes) if (outcome.kind === 'enqueued') this.history.enqueued.add(outcome.id);
    }
  }

  async #consume(store: QueueStore): Promise<void> {
    const { queue, leaseMs } = this.#options;
    const endsAtMs = performance.now() + timeoutMs;
    while (!(this.#produced && (await this.#isDone(store)))) {
      if (performance.now() > endsAtMs) {
        if (this.#options.untilEmpty) throw new Error('the queue was not emptied in time');
        return;
      }
      const requestId = randomToken();
      const leases = await persist(this.history, () =>
        store.dequeue({ queue, count: 5, where: {}, leaseMs, requestId, worker: undefined, now: undefined }),
      );
      this.#record(leases);
      if (leases.length === 0) await delay(5);
      // A holder that is slow at times: its lease runs out, and its completion must not count.
      if (leases.length > 0 && Math.random() < 0.02) await delay(leaseMs + 50);
      await this.#complete(store, leases);
    }
  }

  async #isDone(store: QueueStore): Promise<boolean> {
    if (this.#options.untilEmpty) {
      const { queue } = this.#options;
      const depth = await persist(this.history, () => store.depth({ queue, where: {}, now: undefined }));
      return depth.invisible + depth.pending + depth.running === 0;
    }
    for (const id of this.history.enqueued) if (!this.history.completed.has(id)) return false;
    return true;
  }

  #record(leases: readonly LeasedMessage[]): void {
    for (const { id, leaseToken, attempts, startedAt, leaseUntil } of leases)
      this.history.leases.push({ id, leaseToken, attempts, startedAt: startedAt ?? 0, leaseUntil });
  }

  async #complete(store: QueueStore, leases: readonly LeasedMessage[]): Promise<void> {
    if (leases.length === 0) return;
    const { queue } = this.#options;
    const outcomes = await persist(this.history, () =>
      store.complete({
        queue,
        leases: leases.map(({ id, leaseToken }) => ({ id, leaseToken, result: undefined })),
        now: undefined,
      }),
    );
    for (const [index, outcome] of outcomes.entries()) {
      if (outcome.kind !== 'done') continue;
      const { id, leaseToken } = leases[index]!;
      const tokens = this.history.completed.get(id) ?? new Set();
      if (tokens.size > 0 && !tokens.has(leaseToken)) this.history.staleAccepted.push(id);
      this.history.completed.set(id, tokens.add(leaseToken));
    }
  }
}

const message = (id: string, metadata: Record<string, string>) => ({
  id,
  payload: JSON.stringify({ id }),
  metadata,
  priority: undefined,
  delayMs: undefined,
  attemptsMax: 1_000,
  leaseMs: undefined,
  uniqueWhileLive: false,
  trace: undefined,
});

export interface Losses {
  /** Acknowledged, and never completed. */
  readonly lost: number;
  /** Completed under two tokens: the first completion was acknowledged and lost. */
  readonly doneTwice: number;
  /** Handed out to two holders under one token. */
  readonly tokensTwice: number;
}

/** What a server without strict durability has lost. */
export function countLosses({ enqueued, completed, leases }: LoadHistory): Losses {
  const names = leases.map(({ id, leaseToken }) => `${id} ${leaseToken}`);
  return {
    lost: [...enqueued].filter((id) => !completed.has(id)).length,
    doneTwice: [...completed.values()].filter((tokens) => tokens.size > 1).length,
    tokensTwice: names.length - new Set(names).size,
  };
}

/** Completes every lease once more, when nothing runs: how many tokens are accepted of messages that another one has ended. */
export async function countOldTokensAccepted(
  store: QueueStore,
  queue: string,
  history: LoadHistory,
): Promise<number> {
  const accepted = new Map<string, number>();
  for (let from = 0; from < history.leases.length; from += 500) {
    const leases = history.leases.slice(from, from + 500);
    const outcomes = await store.complete({
      queue,
      leases: leases.map(({ id, leaseToken }) => ({ id, leaseToken, result: undefined })),
      now: undefined,
    });
    for (const { kind, id } of outcomes) if (kind === 'done') accepted.set(id, (accepted.get(id) ?? 0) + 1);
  }
  return [...accepted.values()].reduce((sum, count) => sum + count - 1, 0);
}

/** What a history breaks, in words; empty when all promises held. */
export function findBroken(history: LoadHistory): string[] {
  const broken = history.staleAccepted.map((id) => `${id}: completed under two tokens`);
  for (const id of history.enqueued)
    if (!history.completed.has(id)) broken.push(`${id}: acknowledged and lost`);
  for (const [id, leases] of byId(history.leases)) {
    for (const [index, lease] of leases.entries()) {
      const next = leases[index + 1];
      if (!next) continue;
      if (next.startedAt < lease.leaseUntil)
        broken.push(`${id}: leased at ${next.startedAt} within another's lease`);
      if (next.attempts <= lease.attempts)
        broken.push(`${id}: attempts go from ${lease.attempts} to ${next.attempts}`);
    }
  }
  return broken;
}

/** Distinct leases of each message by time. */
function byId(leases: readonly LeaseRecord[]): Map<string, LeaseRecord[]> {
  const all = new Map<string, Map<string, LeaseRecord>>();
  for (const lease of leases) {
    const ofMessage = all.get(lease.id) ?? new Map<string, LeaseRecord>();
    ofMessage.set(lease.leaseToken, lease);
    all.set(lease.id, ofMessage);
  }
  return new Map(
    [...all].map(([id, ofMessage]) => [
      id,
      [...ofMessage.values()].sort((a, b) => a.startedAt - b.startedAt),
    ]),
  );
}
