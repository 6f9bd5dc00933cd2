/** What both sides of the comparison are told and answer: sends accepted, then delivered, then both at the same time. */
import type { AttemptOutcome } from '../../../../src/notify/index.js';

export interface SideTask {
  readonly databaseUrl: string;
  readonly redisUrl: string;
  readonly sends: number;
  /** Callers of `send` side by side, each awaiting its answer. */
  readonly callers: number;
  /** Attempts side by side. */
  readonly slots: number;
}

export interface SideAnswer {
  /** Sends a second while nothing is delivered. */
  readonly accepted: number;
  /** Calls of the provider a second, outcome written, from a backlog. */
  readonly delivered: number;
  /** Sends accepted and delivered a second, both going on. */
  readonly whole: number;
  readonly lost: number;
  readonly doubled: number;
}

export interface Pipeline {
  send(index: number): Promise<unknown>;
  /** Begins to deliver. */
  start(): Promise<unknown>;
  /** Ends it when all that was begun is written down. */
  pause(): Promise<unknown>;
  /** How many outcomes stand in the database. */
  written(): Promise<number>;
}

/** A provider in this process that takes everything at once: what is measured is the pipeline. */
export class Counterpart {
  readonly calls = new Map<string, number>();
  #total = 0;

  get total(): number {
    return this.#total;
  }

  async take(reference: string): Promise<AttemptOutcome> {
    this.#total += 1;
    this.calls.set(reference, (this.calls.get(reference) ?? 0) + 1);
    return { kind: 'sent', messageId: `m-${this.#total}` };
  }
}

/** Measures a pipeline that is empty and paused. */
export async function measure(
  task: SideTask,
  pipeline: Pipeline,
  counterpart: Counterpart,
): Promise<SideAnswer> {
  const { sends, callers } = task;
  const begin = (): (() => number) => {
    const startedAtMs = performance.now();
    return () => sends / ((performance.now() - startedAtMs) / 1_000);
  };
  const sendAll = async (from: number): Promise<void> => {
    let next = 0;
    const caller = async (): Promise<void> => {
      while (next < sends) await pipeline.send(from + next++);
    };
    await Promise.all(Array.from({ length: callers }, caller));
  };
  const allCalled = async (count: number): Promise<void> => {
    while (counterpart.total < count) await new Promise((resolve) => setTimeout(resolve, 5));
    await pipeline.pause();
    const written = await pipeline.written();
    if (written !== count) throw new Error(`${written} outcomes are written of ${count}`);
  };

  const acceptedRate = begin();
  await sendAll(0);
  const accepted = acceptedRate();
  const deliveredRate = begin();
  await pipeline.start();
  await allCalled(sends);
  const delivered = deliveredRate();
  const wholeRate = begin();
  await pipeline.start();
  await sendAll(sends);
  await allCalled(2 * sends);
  const whole = wholeRate();
  const doubled = [...counterpart.calls.values()].filter((count) => count > 1).length;
  return { accepted, delivered, whole, lost: 2 * sends - counterpart.calls.size, doubled };
}
