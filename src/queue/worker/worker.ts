/**
 * The worker: fetches messages of its queues, calls the handler in its slots and settles how they ended. A component:
 * start() and stop() may be called twice and in any order.
 */
import type { Component } from '../../lifecycle.js';
import { checkFloors } from '../lanes.js';
import { resolveOptions, type WorkerOptions } from './options.js';
import { Run } from './run.js';
import { stopRun } from './stopping.js';

/** Ctrl-C promises an end within five seconds. */
const deadlineMsDefault = 5_000;

export interface Worker extends Component {
  readonly name: string;
  /** Does not wait for the store: a worker starts while it is down. Refuses lanes whose floors leave no shared slot. */
  start(): Promise<void>;
  /** Takes no new messages, waits for the running ones and, at the deadline (default 5,000 ms), aborts and releases them. */
  stop(options?: { deadlineMs?: number }): Promise<void>;
  /** What the worker does this moment. */
  state(): WorkerState;
}

export interface WorkerState {
  readonly phase: 'running' | 'stopping' | 'stopped';
  readonly slots: number;
  /** Handlers that run. */
  readonly running: number;
  /** Messages fetched and not started. */
  readonly waiting: number;
  /** Messages whose end the store has not answered yet. */
  readonly unsettled: number;
}

/**
 * @example
 * const worker = createWorker({ queue, queues: ['mail'], handler: async (message, { signal }) => send(message.payload, signal) });
 * await worker.start();
 */
export function createWorker(options: WorkerOptions): Worker {
  const settings = resolveOptions(options);
  let run: Run | undefined;
  let stopping: Promise<void> | undefined;

  const worker: Worker = {
    name: settings.name,

    async start() {
      checkFloors(settings.lanes, settings.slots);
      await stopping;
      if (run !== undefined) return;
      run = new Run(settings);
      run.start();
    },

    async stop({ deadlineMs = deadlineMsDefault } = {}) {
      if (run === undefined) return;
      const ending = run;
      stopping ??= stopRun(ending, deadlineMs).finally(() => {
        run = undefined;
        stopping = undefined;
      });
      await stopping;
    },

    state: () => ({
      phase: run === undefined || run.phase === 'ended' ? 'stopped' : run.phase,
      slots: settings.slots,
      running: run?.slots.running ?? 0,
      waiting: run?.room.size ?? 0,
      unsettled: run?.settler.size ?? 0,
    }),
  };
  return worker;
}
