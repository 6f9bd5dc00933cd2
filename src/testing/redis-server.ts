/**
 * Throwaway Redis or Valkey servers for tests and benchmarks: on a free port of the loopback interface, with their data in the temp folder,
 * gone when stopped, and gone as well when this process is killed.
 */
import { execFileSync } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { ChildServer, findFreePort } from './child-server.js';

export interface RedisServerOptions {
  /** The program to start. Default: what `HEADGATE_REDIS_SERVER` names, else `redis-server`. */
  readonly program?: string;
  /** Whether every write is flushed before it is answered, within a second, or there is no append-only file. Default `none`. */
  readonly fsync?: 'always' | 'everysec' | 'none';
  /** More server settings, such as `{ maxmemory: '64mb' }`. */
  readonly settings?: Readonly<Record<string, string>>;
}

export interface RedisServer {
  readonly url: string;
  readonly port: number;
  readonly pid: number | undefined;
  readonly logFile: string;
  /** A connection for the test itself; the caller ends it. */
  connect(): Redis;
  /** Ends the server and removes its data. May be called twice. */
  stop(): Promise<void>;
  /** SIGKILL; the data stays for `restart`. */
  kill(): Promise<void>;
  /** Starts again on the same port with the same data. */
  restart(): Promise<void>;
}

const startTimeoutMs = 20_000;
/** The bus of a Cluster node listens 10,000 ports above. */
const portMax = 55_535;

/** What is started unless told otherwise; see docs/reference/queue-redis.md. */
const programDefault = (): string => process.env['HEADGATE_REDIS_SERVER'] || 'redis-server';

/** Whether there is a server to start; without one its tests are skipped. */
export function findRedisServer(program = programDefault()): boolean {
  try {
    execFileSync(program, ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

export async function startRedisServer(options: RedisServerOptions = {}): Promise<RedisServer> {
  const folder = await mkdtemp(join(tmpdir(), 'headgate-redis-'));
  const server = new Server(folder, options);
  try {
    await server.start();
    return server;
  } catch (error) {
    await server.stop();
    throw error;
  }
}

async function findPort(): Promise<number> {
  for (;;) {
    const port = await findFreePort();
    if (port < portMax) return port;
  }
}

function settingsOf({ fsync = 'none', settings }: RedisServerOptions): Record<string, string> {
  return {
    bind: '127.0.0.1',
    save: '',
    appendonly: fsync === 'none' ? 'no' : 'yes',
    appendfsync: fsync === 'none' ? 'no' : fsync,
    // Or a replica is served only after 5 s, and until then WAIT counts none.
    'repl-diskless-sync-delay': '0',
    ...settings,
  };
}

class Server implements RedisServer {
  readonly logFile: string;
  #port = 0;
  readonly #folder: string;
  readonly #options: RedisServerOptions;
  readonly #child: ChildServer;
  #stopping: Promise<void> | undefined;

  constructor(folder: string, options: RedisServerOptions) {
    this.#folder = folder;
    this.#options = options;
    this.logFile = join(folder, 'server.log');
    this.#child = new ChildServer({
      command: options.program ?? programDefault(),
      folder,
      logFile: this.logFile,
      orphanSignal: 'KILL',
    });
  }

  get port(): number {
    return this.#port;
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  get url(): string {
    return `redis://127.0.0.1:${this.#port}`;
  }

  async start(): Promise<void> {
    const endsAtMs = performance.now() + startTimeoutMs;
    for (;;) {
      this.#port = await findPort();
      if (await this.#launch()) return;
      if (performance.now() > endsAtMs) throw new Error(`Redis did not start:\n${await this.#readLog()}`);
    }
  }

  connect(): Redis {
    const client = new Redis(this.url, { retryStrategy: () => 50 });
    // The server goes away when the test says so; commands tell their own failure.
    client.on('error', () => {});
    return client;
  }

  stop(): Promise<void> {
    this.#stopping ??= (async () => {
      await this.#child.end('SIGKILL');
      this.#child.release();
      await rm(this.#folder, { recursive: true, force: true });
    })();
    return this.#stopping;
  }

  async kill(): Promise<void> {
    await this.#child.end('SIGKILL');
  }

  async restart(): Promise<void> {
    await this.#child.end('SIGTERM');
    if (!(await this.#launch())) throw new Error(`Redis did not restart:\n${await this.#readLog()}`);
  }

  /** True once the server answers, false when it has exited instead. */
  async #launch(): Promise<boolean> {
    const settings = { ...settingsOf(this.#options), port: String(this.#port), dir: this.#folder };
    this.#child.start(Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]));
    const endsAtMs = performance.now() + startTimeoutMs;
    while (this.#child.isRunning()) {
      if (await this.#answers()) return true;
      if (performance.now() > endsAtMs)
        throw new Error(`Redis does not get ready:\n${await this.#readLog()}`);
      await delay(10);
    }
    return false;
  }

  async #answers(): Promise<boolean> {
    const client = new Redis(this.url, {
      lazyConnect: true,
      retryStrategy: () => null,
      maxRetriesPerRequest: 0,
    });
    client.on('error', () => {});
    try {
      await client.connect();
      return (await client.ping()) === 'PONG';
    } catch {
      return false;
    } finally {
      client.disconnect();
    }
  }

  async #readLog(): Promise<string> {
    return (await readFile(this.logFile, 'utf8').catch(() => '')).slice(-4_000);
  }
}
