/** What the worker's tests share: stores to run on, and a store that can be disturbed. */
import type { Log } from '../../../src/log.js';
import { createQueue, type Queue, type QueueStore, type WorkerOptions } from '../../../src/queue/index.js';
import { createMemoryQueueStore } from '../../../src/queue/memory/index.js';

export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Something to wait for from the outside: a handler can hang on it. */
export function gate(): { readonly opened: Promise<void>; open(): void } {
  let open = (): void => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

export interface LogLine {
  readonly level: keyof Log;
  readonly fields: Record<string, unknown>;
  readonly message: string;
  readonly atMs: number;
}

export function recordingLog(): { readonly log: Log; readonly lines: LogLine[] } {
  const lines: LogLine[] = [];
  const write =
    (level: keyof Log) =>
    (fields: Record<string, unknown>, message: string): void => {
      lines.push({ level, fields, message, atMs: performance.now() });
    };
  return {
    log: { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') },
    lines,
  };
}

export interface StoreCall {
  readonly operation: string;
  readonly request: { readonly [field: string]: unknown };
  readonly atMs: number;
  ended: boolean;
}

/** What a disturbed call does: nothing special, fail before it reaches the store, or lose the reply after it has. */
export type Disturbance = 'none' | 'fail' | 'lose reply' | 'hang';

/** Passes every call on to `store`, writes it down, and disturbs it as `disturb` says. */
export function disturbedStore(
  store: QueueStore,
  disturb: (operation: string, request: StoreCall['request']) => Disturbance = () => 'none',
): { readonly store: QueueStore; readonly calls: StoreCall[] } {
  const calls: StoreCall[] = [];
  const proxy = new Proxy(store, {
    get(target, operation: string) {
      const member: unknown = Reflect.get(target, operation);
      if (typeof member !== 'function') return member;
      return async (request: StoreCall['request'], ...rest: unknown[]) => {
        const call: StoreCall = { operation, request, atMs: performance.now(), ended: false };
        calls.push(call);
        const disturbance = disturb(operation, request);
        try {
          if (disturbance === 'hang') await new Promise(() => {});
          if (disturbance === 'fail') throw new Error(`${operation}: the store is away`);
          const answer: unknown = await Reflect.apply(member, target, [request, ...rest]);
          if (disturbance === 'lose reply') throw new Error(`${operation}: the reply is lost`);
          return answer;
        } finally {
          call.ended = true;
        }
      };
    },
  });
  return { store: proxy, calls };
}

export interface QueueUnderTest {
  readonly name: string;
  /** A queue on an empty store, started; `stop` ends both. */
  open(): Promise<Queue>;
  /** Ends what all queues of a file share. */
  close(): Promise<void>;
}

export const memoryQueue: QueueUnderTest = {
  name: 'memory',
  async open() {
    const queue = createQueue({ store: createMemoryQueueStore() });
    await queue.start();
    return queue;
  },
  close: async () => {},
};

/** Retry without delay, so that tests wait for nothing. */
export const atOnce: Pick<WorkerOptions, 'retry'> = { retry: { delayMs: 0 } };
