/**
 * Where a command finds Headgate: the server that `--url` names, else the one that holds the data folder, else one that
 * this process brings up for the length of the command. All three are spoken to over HTTP, so a command has one code path.
 */
import { existsSync } from 'node:fs';
import { invalidInput } from '../errors.js';
import { readFolderLock } from '../database/index.js';
import { noMetrics } from '../metrics.js';
import { createPrometheus, createServer } from '../server/index.js';
import { createApiClient, type ApiClient } from './api-client.js';
import { clientConfig, type Environment, type Flags } from './config.js';
import { createLog } from './log.js';
import { loadNotifyConfiguration } from './notify/load.js';
import { wire } from './wire.js';

async function bringUp(
  flags: Flags,
  environment: Environment,
): Promise<{ address: string; close(): Promise<void> }> {
  const log = createLog('warn');
  const notify = await loadNotifyConfiguration({ flags, environment, log });
  const parts = await wire(clientConfig(flags, environment), { log, metrics: noMetrics, notify });
  const server = createServer({
    port: 0,
    parts: {
      queue: () => parts.queue,
      feed: () => parts.feed,
      notify: () => parts.notify,
      notifyPublicUrl: () => parts.notifyPublicUrl,
      prometheus: createPrometheus({ processMetrics: false }),
      readiness: () => ({ serving: true, ready: true, stage: 'ready', progress: undefined }),
      durability: () => parts.durability,
    },
  });
  const close = async (): Promise<void> => {
    await server.stop();
    await parts.stop();
  };
  try {
    await server.start();
    return { address: server.address(), close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Runs `work` with a client and leaves nothing running. */
export async function withClient<T>(
  flags: Flags,
  environment: Environment,
  work: (client: ApiClient) => Promise<T>,
): Promise<T> {
  const config = clientConfig(flags, environment);
  if (config.url !== undefined) return work(createApiClient(config.url, config.apiKey));
  if (config.databaseUrl === undefined) {
    const holder = await readFolderLock(config.dataFolder);
    if (holder?.address !== undefined) return work(createApiClient(holder.address, config.apiKey));
    if (holder) {
      throw invalidInput(
        '--url',
        undefined,
        `the address of a server: process ${holder.pid} holds ${config.dataFolder} and has none, or is still starting`,
      );
    }
    if (!existsSync(config.dataFolder))
      throw invalidInput(
        '--data',
        config.dataFolder,
        'a folder that Headgate has been started on, or --url with the address of a server',
      );
  }
  const own = await bringUp(flags, environment);
  try {
    return await work(createApiClient(own.address));
  } finally {
    await own.close();
  }
}
