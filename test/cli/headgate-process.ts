/** Runs the built command line as a process of its own, the way a user does, and never leaves one behind. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { until } from '../../src/testing/until.js';

const main = resolve(import.meta.dirname, '../../dist/cli/main.js');
/** A first start of the embedded database on a busy machine. */
const startMs = 60_000;

export interface HeadgateProcess {
  readonly child: ChildProcess;
  /** What it has printed so far, both streams. */
  output(): string;
  /** The address it listens on, as soon as it says so. */
  address(): Promise<string>;
  /** Resolves when /ready answers 200. */
  ready(): Promise<string>;
  /** Exit code, or the signal that ended it. */
  exit(): Promise<number | string>;
  kill(signal: NodeJS.Signals): Promise<number | string>;
}

export interface Answer {
  readonly status: number;
  // oxlint-disable-next-line typescript/no-explicit-any -- answers are looked at by tests only
  readonly body: any;
}

export async function call(address: string, method: string, path: string, body?: unknown): Promise<Answer> {
  const response = await fetch(`${address}${path}`, {
    method,
    ...(body === undefined
      ? {}
      : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
  });
  const text = await response.text();
  return { status: response.status, body: text === '' ? undefined : JSON.parse(text) };
}

export function runHeadgate(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): HeadgateProcess {
  const child = spawn(process.execPath, [main, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...env },
  });
  const killWithParent = (): void => void child.kill('SIGKILL');
  process.once('exit', killWithParent);
  let output = '';
  child.stdout.on('data', (chunk) => (output += chunk));
  child.stderr.on('data', (chunk) => (output += chunk));
  const ended = once(child, 'exit').then(([code, signal]) => {
    process.off('exit', killWithParent);
    return (code ?? signal) as number | string;
  });
  const running = (): void => {
    if (child.exitCode !== null || child.signalCode !== null)
      throw new Error(`headgate ended early:\n${output}`);
  };
  const address = (): Promise<string> =>
    until(
      () => {
        const found = /listens on (http:\S+)/.exec(output)?.[1];
        if (found === undefined) running();
        return found;
      },
      { what: 'the listening line', boundMs: startMs },
    );
  return {
    child,
    output: () => output,
    address,
    async ready() {
      const url = await address();
      await until(
        async () => {
          running();
          return (await call(url, 'GET', '/ready')).status === 200;
        },
        { what: 'readiness', boundMs: startMs },
      );
      return url;
    },
    exit: () => ended,
    kill(signal) {
      child.kill(signal);
      return ended;
    },
  };
}
