/**
 * One serving process from its first moment to its last: the socket answers /health before the database is open, the
 * parts come up behind it, and a signal, or a failure on the way, takes everything down in order within five seconds.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { groundError } from '../errors.js';
import { readFolderLock } from '../database/index.js';
import type { Log } from '../log.js';
import {
  createPrometheus,
  createServer,
  type Progress,
  type Readiness,
  type ServerParts,
} from '../server/index.js';
import type { ServeConfig } from './serve-config.js';
import type { NotifyConfiguration } from './notify/load.js';
import { createLog } from './log.js';
import { stopDeadlineMs, watchSignals } from './shutdown.js';
import { storeErrors, wire, type Parts } from './wire.js';

export interface Running {
  readonly parts: Parts;
  readonly address: string;
  readonly log: Log;
  /** Aborted when the process is asked to stop. */
  readonly signal: AbortSignal;
  /** Tells /ready how far the work before readiness is. */
  report(progress: Progress): void;
}

export interface RunOptions {
  readonly config: ServeConfig;
  /** Kinds and providers of notifications, once the server has an address; undefined: none. */
  readonly notify: (address: string) => NotifyConfiguration | undefined;
  /** Fan-out and housekeeping run in this process too. */
  readonly withWorkers: boolean;
  /** What must be done before the process is ready; answers what has to be stopped first at the end. */
  readonly prepare?: (running: Running) => Promise<{ stop(): Promise<void> } | undefined>;
  readonly onReady: (running: Running) => void;
  readonly print: (line: string) => void;
}

async function refuseHeldFolder(config: ServeConfig): Promise<void> {
  if (config.databaseUrl !== undefined) return;
  const holder = await readFolderLock(config.dataFolder);
  if (!holder) return;
  const where =
    holder.address === undefined ? `process ${holder.pid}` : `${holder.address} (process ${holder.pid})`;
  throw groundError(
    'folder-locked',
    `the data folder ${config.dataFolder} is held by the running Headgate at ${where}`,
    {
      ids: { folder: config.dataFolder },
    },
  );
}

function dashboardFolder(): string | undefined {
  const folder = fileURLToPath(new URL('../dashboard/', import.meta.url));
  return existsSync(join(folder, 'index.html')) ? folder : undefined;
}

/** Runs until a signal; resolves when everything has been stopped. */
export async function runServer(options: RunOptions): Promise<void> {
  const { config, withWorkers, prepare, onReady, print } = options;
  const shutdown = watchSignals();
  const log = createLog(config.logLevel);
  const prometheus = createPrometheus();
  let parts: Parts | undefined;
  let readiness: Readiness = {
    serving: false,
    ready: false,
    stage: 'opening the database',
    progress: undefined,
  };

  const opened = (): Parts => {
    if (!parts) throw groundError('stopped', 'the parts are not open');
    return parts;
  };
  const serverParts: ServerParts = {
    queue: () => opened().queue,
    feed: () => opened().feed,
    notify: () => opened().notify,
    notifyPublicUrl: () => opened().notifyPublicUrl,
    prometheus,
    readiness: () => readiness,
    durability: () => parts?.durability ?? 'not known yet: the database is being opened',
  };

  await refuseHeldFolder(config);
  const { port, host, apiKeys } = config;
  const server = createServer({
    parts: serverParts,
    port,
    host,
    apiKeys,
    dashboardFolder: dashboardFolder(),
    storeErrors,
    log,
  });
  let prepared: { stop(): Promise<void> } | undefined;
  try {
    await server.start();
    const address = server.address();
    print(`headgate listens on ${address} and is starting; ${address}/ready tells how far it is`);
    const wired = await wire(config, { log, metrics: prometheus.backend, notify: options.notify(address) });
    parts = wired;
    wired.publishAddress(address);
    readiness = { ...readiness, serving: true, stage: 'starting the workers' };
    if (withWorkers && !shutdown.signal.aborted) await wired.workers.start();
    const running: Running = {
      parts: wired,
      address,
      log,
      signal: shutdown.signal,
      report: (progress) => {
        readiness = { serving: true, ready: false, stage: progress.stage, progress };
      },
    };
    if (!shutdown.signal.aborted) prepared = await prepare?.(running);
    if (!shutdown.signal.aborted) {
      readiness = { serving: true, ready: true, stage: 'ready', progress: undefined };
      onReady(running);
    }
    await shutdown.wait();
    print('stopping');
  } finally {
    shutdown.begin();
    readiness = { ...readiness, serving: false, ready: false, stage: 'stopping' };
    await prepared?.stop();
    await server.stop();
    await parts?.stop({ deadlineMs: stopDeadlineMs - 1_500 });
  }
}
