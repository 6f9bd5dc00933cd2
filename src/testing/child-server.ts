/**
 * Runs servers as children that cannot outlive their parent. A guard (a shell) holds one end of a pipe whose other end
 * this process holds; when the pipe closes, however this process came to its end, the guard ends the server and removes
 * its folder.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';

export interface ServerUser {
  readonly uid: number;
  readonly gid: number;
}

export interface ChildServerOptions {
  readonly command: string;
  /** Holds the server's files; removed by the guard when this process dies. */
  readonly folder: string;
  readonly logFile: string;
  /** How the guard ends an orphaned server. */
  readonly orphanSignal: 'QUIT' | 'TERM' | 'KILL';
  readonly user?: ServerUser | undefined;
}

// The guard reads the pid of the server, then waits for the end of the pipe. The line `released` sends it away.
const guardScript = `
folder=$1 signal=$2 pid=
while read -r line; do
  case $line in released) exit 0 ;; *) pid=$line ;; esac
done
if [ -n "$pid" ]; then
  kill -"$signal" "$pid"
  tries=0
  while kill -0 "$pid" && [ $tries -lt 50 ]; do sleep 0.1; tries=$((tries + 1)); done
fi 2>/dev/null
rm -rf "$folder"
`;

export class ChildServer {
  readonly #options: ChildServerOptions;
  readonly #guard: ChildProcess;
  #server: ChildProcess | undefined;

  constructor(options: ChildServerOptions) {
    this.#options = options;
    const { folder, orphanSignal, user } = options;
    this.#guard = spawn('/bin/sh', ['-c', guardScript, 'guard', folder, orphanSignal], {
      cwd: '/',
      detached: true,
      stdio: ['pipe', 'ignore', 'ignore'],
      ...user,
    });
    letGo(this.#guard);
  }

  /** Starts the server; its output goes to the log file. */
  start(args: readonly string[]): void {
    const { command, logFile, user } = this.#options;
    const log = openSync(logFile, 'a');
    // In a session of its own, so that Ctrl-C reaches it only through its parent.
    this.#server = spawn(command, args, { cwd: '/', detached: true, stdio: ['ignore', log, log], ...user });
    closeSync(log);
    this.#guard.stdin?.write(`${this.#server.pid ?? ''}\n`);
    letGo(this.#server);
  }

  get pid(): number | undefined {
    return this.isRunning() ? this.#server?.pid : undefined;
  }

  isRunning(): boolean {
    const server = this.#server;
    return server?.pid !== undefined && server.exitCode === null && server.signalCode === null;
  }

  /** Sends the signal and waits until the server has exited. */
  async end(signal: NodeJS.Signals): Promise<void> {
    const server = this.#server;
    if (!server || !this.isRunning()) return;
    server.ref();
    const exited = once(server, 'exit');
    server.kill(signal);
    await exited;
    this.#guard.stdin?.write('\n');
  }

  /** Sends the guard away; the folder is the caller's to remove. */
  release(): void {
    this.#guard.stdin?.end('released\n');
  }
}

/** Lets this process end while the child runs. */
function letGo(child: ChildProcess): void {
  child.on('error', () => {});
  child.unref();
  if (!child.stdin) return;
  child.stdin.on('error', () => {});
  (child.stdin as unknown as { unref(): void }).unref();
}

/** A port that was free a moment ago; whoever uses it tries again with another when it no longer is. */
export async function findFreePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}

/** Servers refuse to run as root: then they run as the first user of `names` that exists. */
export function findServerUser(names: readonly string[]): ServerUser | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const users = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'));
  for (const name of names) {
    const user = users.find(([userName]) => userName === name);
    if (user) return { uid: Number(user[2]), gid: Number(user[3]) };
  }
  throw new Error(`running as root, and none of the users ${names.join(', ')} exists to run the server`);
}
