/** Starts worker processes, listens to what they report, and ends them; none outlives its test. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { until } from '../../../src/testing/until.js';
import type { WorkerReport, WorkerTask } from './worker-process.js';

export type TimedReport = WorkerReport & { readonly atMs: number };

const program = fileURLToPath(new URL('./worker-process.ts', import.meta.url));
const running = new Set<ChildProcess>();

export class WorkerProcess {
  readonly reports: TimedReport[] = [];
  readonly #child: ChildProcess;
  readonly #exited: Promise<unknown>;

  private constructor(task: WorkerTask) {
    this.#child = fork(program, [JSON.stringify(task)], {
      execArgv: ['--import', 'tsx'],
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    running.add(this.#child);
    this.#exited = once(this.#child, 'exit').finally(() => running.delete(this.#child));
    this.#child.on('message', (report) =>
      this.reports.push({ ...(report as WorkerReport), atMs: performance.now() }),
    );
  }

  /** Resolves when its worker has started. */
  static async start(task: WorkerTask): Promise<WorkerProcess> {
    const started = new WorkerProcess(task);
    await until(() => started.reports.some(({ kind }) => kind === 'ready'), {
      what: 'a worker process is ready',
      boundMs: 30_000,
    });
    return started;
  }

  of(
    kind: 'started' | 'ended' | 'aborted',
  ): Extract<TimedReport, { kind: 'started' | 'ended' | 'aborted' }>[] {
    return this.reports.filter(
      (report): report is Extract<TimedReport, { id: string }> => report.kind === kind,
    );
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#exited;
  }

  /** Asks it to stop and waits until the process has ended by itself. */
  async stop(deadlineMs = 5_000): Promise<void> {
    this.#child.send({ stop: deadlineMs });
    await this.#exited;
  }
}

export async function killAll(): Promise<void> {
  await Promise.all(
    [...running].map(async (child) => {
      const exited = once(child, 'exit');
      child.kill('SIGKILL');
      await exited;
    }),
  );
}
