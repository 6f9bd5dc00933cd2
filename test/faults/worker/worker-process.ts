/**
 * A worker as a process of its own, to be killed. Told what to do by one JSON argument; reports over IPC when a message
 * starts and ends, and obeys `stop`.
 */
import { openPostgres } from '../../../src/database/index.js';
import {
  createQueue,
  createWorker,
  type LeasedMessage,
  type MessageContext,
  type WorkerOptions,
} from '../../../src/queue/index.js';
import { createPostgresQueueStore } from '../../../src/queue/postgres/index.js';

export interface WorkerTask {
  readonly url: string;
  readonly schema: string;
  /** What the handler does with each message: wait so long, block the event loop so long, or never end. */
  readonly handler: { readonly kind: 'wait' | 'block'; readonly ms: number } | { readonly kind: 'hang' };
  readonly options: Partial<
    Pick<WorkerOptions, 'slots' | 'leaseMs' | 'name' | 'queues' | 'lanes' | 'retry' | 'prefetch'>
  >;
  /** Added to this process's clock. */
  readonly clockShiftMs?: number;
  /** After this long the clock jumps by so much more. */
  readonly clockJump?: { readonly afterMs: number; readonly byMs: number };
}

export type WorkerReport =
  | { readonly kind: 'ready' | 'stopped' }
  | {
      readonly kind: 'started' | 'ended' | 'aborted';
      readonly id: string;
      readonly attempts: number;
      readonly code?: string;
    }
  | { readonly kind: 'log'; readonly level: string; readonly message: string; readonly error?: string };

const task = JSON.parse(process.argv[2] ?? '') as WorkerTask;
shiftClock(task);

const report = (line: WorkerReport): void => void process.send?.(line);

async function handle({ id, attempts }: LeasedMessage, { signal }: MessageContext): Promise<string> {
  report({ kind: 'started', id, attempts });
  signal.addEventListener('abort', () => report({ kind: 'aborted', id, attempts, code: signal.reason.code }));
  const { handler } = task;
  if (handler.kind === 'hang') await new Promise(() => {});
  else if (handler.kind === 'wait') await new Promise((resolve) => setTimeout(resolve, handler.ms));
  else {
    const untilMs = performance.now() + handler.ms;
    while (performance.now() < untilMs) Math.hypot(1, 2);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  report({ kind: 'ended', id, attempts });
  return `by ${process.pid}`;
}

const write =
  (level: string) =>
  ({ error }: Readonly<Record<string, unknown>>, message: string): void =>
    report({ kind: 'log', level, message, ...(error === undefined ? {} : { error: String(error) }) });
const log = { debug: () => {}, info: () => {}, warn: write('warn'), error: write('error') };

const database = await openPostgres({ connectionString: task.url });
const queue = createQueue({ store: createPostgresQueueStore({ database, schema: task.schema }), log });
await queue.start();
const worker = createWorker({
  queue,
  queues: ['q'],
  retry: { delayMs: 0 },
  log,
  ...task.options,
  handler: handle,
});
await worker.start();
process.on('message', (message: { readonly stop: number }) => {
  void stop(message.stop);
});
report({ kind: 'ready' });

/** Ends by itself when nothing is left open: the channel to the parent is closed, nothing is forced. */
async function stop(deadlineMs: number): Promise<void> {
  await worker.stop({ deadlineMs });
  await queue.stop();
  await database.close();
  report({ kind: 'stopped' });
  process.disconnect();
}

function shiftClock({ clockShiftMs = 0, clockJump }: WorkerTask): void {
  const now = Date.now;
  const startedAt = performance.now();
  Date.now = () => {
    const jumped = clockJump !== undefined && performance.now() - startedAt > clockJump.afterMs;
    return now() + clockShiftMs + (jumped ? clockJump.byMs : 0);
  };
}
