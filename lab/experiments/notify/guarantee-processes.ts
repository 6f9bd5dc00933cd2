/** Worker processes of the guarantee experiment, to be killed in the middle of their work. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { WorkerTask } from './guarantee-task.js';

/** Keeps so many processes running, and kills one of them now and then. */
export class Processes {
  readonly #task: WorkerTask;
  #running: ChildProcess[] = [];
  kills = 0;

  constructor(task: WorkerTask) {
    this.#task = task;
  }

  async start(count: number): Promise<void> {
    await Promise.all(
      Array.from({ length: count }, async () => {
        const file = fileURLToPath(new URL('guarantee-worker.ts', import.meta.url));
        const args = ['--import', 'tsx', file, JSON.stringify(this.#task)];
        const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
        this.#running.push(child);
        await Promise.race([once(child.stdout, 'data'), once(child, 'exit')]);
      }),
    );
  }

  async killOne(random: () => number): Promise<void> {
    const [child] = this.#running.splice(Math.floor(random() * this.#running.length), 1);
    if (child === undefined) return;
    this.kills += 1;
    await end(child);
    await this.start(1);
  }

  async stop(): Promise<void> {
    await Promise.all(this.#running.splice(0).map(end));
  }
}

async function end(child: ChildProcess): Promise<void> {
  const exited = once(child, 'exit');
  if (child.kill('SIGKILL')) await exited;
}
