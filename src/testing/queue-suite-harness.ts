/** What the store suite gives each test: a queue on a fresh store, a manual clock, and factories that state only what matters. */
import {
  createQueue,
  type DequeueOptions,
  type LeasedMessage,
  type NewMessage,
  type Queue,
} from '../queue/index.js';
import type { QueueStore } from '../queue/index.js';
import { ManualClock } from './manual-clock.js';

/** A fresh, started store; `close` ends everything that was opened for it. */
export interface OpenedQueueStore {
  readonly store: QueueStore;
  close(): Promise<void>;
}

export interface QueueStoreSuiteOptions {
  readonly name: string;
  /** Called before each test. */
  open(): Promise<OpenedQueueStore>;
  /** Many sessions at once; an embedded database has one. Default true. */
  readonly hasSessions?: boolean;
}

/** The moment at which each test begins. */
export const startsAt = 1_760_000_000_000;

export class QueueHarness {
  readonly clock = new ManualClock(startsAt);
  readonly queue: Queue;
  readonly store: QueueStore;
  readonly #close: () => Promise<void>;

  constructor({ store, close }: OpenedQueueStore) {
    this.store = store;
    this.queue = createQueue({ store, clock: this.clock });
    this.#close = close;
  }

  async close(): Promise<void> {
    await this.queue.stop({ deadlineMs: 1_000 });
    await this.#close();
  }

  /** Enqueues by id with an empty payload; all must be created. */
  async enqueue(ids: readonly string[], more: Partial<NewMessage> = {}, queue = 'q'): Promise<void> {
    const outcomes = await this.queue.enqueue(
      queue,
      ids.map((id) => ({ id, payload: {}, ...more })),
    );
    const others = outcomes.filter((outcome) => outcome.kind !== 'enqueued' || !outcome.created);
    if (others.length > 0) throw new Error(`not created: ${JSON.stringify(others)}`);
  }

  async take(options: DequeueOptions = {}, queue = 'q'): Promise<LeasedMessage[]> {
    return this.queue.dequeue(queue, options);
  }

  async takeOne(options: DequeueOptions = {}, queue = 'q'): Promise<LeasedMessage> {
    const [message] = await this.queue.dequeue(queue, options);
    if (!message) throw new Error(`nothing to dequeue from ${queue}`);
    return message;
  }

  /** Ids in the order in which they are handed out. */
  async takeIds(options: DequeueOptions = {}, queue = 'q'): Promise<string[]> {
    return (await this.take(options, queue)).map(({ id }) => id);
  }

  async stateOf(id: string, queue = 'q'): Promise<string | undefined> {
    return (await this.queue.get(queue, id))?.state;
  }

  /** Live depth as [invisible, pending, running]. */
  async depth(where: Record<string, string> = {}, queue = 'q'): Promise<[number, number, number]> {
    const { invisible, pending, running } = await this.queue.depth(queue, where);
    return [invisible, pending, running];
  }

  /** Housekeeping until it finds nothing more to do. */
  async tidy(): Promise<void> {
    for (let step = 0; step < 1_000; step += 1) {
      if ((await this.store.housekeep({ now: this.clock.storeNow() })).moved === 0) return;
    }
    throw new Error('housekeeping does not come to an end');
  }
}

/** The harness with its methods free to be taken apart. */
export function bind(harness: QueueHarness) {
  return {
    queue: harness.queue,
    store: harness.store,
    clock: harness.clock,
    enqueue: harness.enqueue.bind(harness),
    take: harness.take.bind(harness),
    takeOne: harness.takeOne.bind(harness),
    takeIds: harness.takeIds.bind(harness),
    stateOf: harness.stateOf.bind(harness),
    depth: harness.depth.bind(harness),
    tidy: harness.tidy.bind(harness),
  };
}

export const idsOf = (count: number, prefix = 'm'): string[] =>
  Array.from({ length: count }, (_, index) => `${prefix}${index}`);

/** Random order from a seed, the same on every machine (mulberry32). */
export function seededRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

export function shuffled<T>(items: readonly T[], random: () => number): T[] {
  const result = [...items];
  for (let index = result.length - 1; index > 0; index -= 1) {
    const other = Math.floor(random() * (index + 1));
    [result[index], result[other]] = [result[other]!, result[index]!];
  }
  return result;
}
