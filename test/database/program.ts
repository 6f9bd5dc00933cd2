/** Runs a small program of `programs/` in a process of its own and follows what it prints. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

export interface Program {
  readonly child: ChildProcess;
  /** The lines it has printed so far. */
  readonly lines: readonly string[];
  /** Resolves with the exit code (null: ended by a signal) when it has ended and all its lines are read. */
  readonly ended: Promise<number | null>;
  kill(signal: NodeJS.Signals): void;
}

const running = new Set<ChildProcess>();

export function startProgram(name: string, ...args: readonly string[]): Program {
  const file = fileURLToPath(new URL(`./programs/${name}.ts`, import.meta.url));
  const child = spawn(process.execPath, ['--import', 'tsx', file, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  running.add(child);
  const lines: string[] = [];
  createInterface({ input: child.stdout }).on('line', (line) => lines.push(line));
  const ended = once(child, 'close').then(([code]) => {
    running.delete(child);
    return code as number | null;
  });
  return { child, lines, ended, kill: (signal) => child.kill(signal) };
}

/** Ends what a failed test left behind. */
export function killPrograms(): void {
  for (const child of running) child.kill('SIGKILL');
}
