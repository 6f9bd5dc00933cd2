/**
 * Where a command finds Headgate: the server that `--url` names, else the one that holds the data folder, else one that
 * this process brings up for the length of the command. All three are spoken to over HTTP, so a command has one code path.
 * What a running server makes needless is loaded only without one: it is most of what a command costs.
 */
import { existsSync } from 'node:fs';
import { invalidInput } from '../errors.js';
import { createApiClient, type ApiClient } from './api-client.js';
import { clientConfig, type Environment, type Flags } from './config.js';

/** Runs `work` with a client and leaves nothing running. */
export async function withClient<T>(
  flags: Flags,
  environment: Environment,
  work: (client: ApiClient) => Promise<T>,
): Promise<T> {
  const config = clientConfig(flags, environment);
  if (config.url !== undefined) return work(createApiClient(config.url, config.apiKey));
  if (config.databaseUrl === undefined) {
    const { readFolderLock } = await import('../database/index.js');
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
  const { bringUp } = await import('./runs/bring-up.js');
  const own = await bringUp(flags, environment);
  try {
    return await work(createApiClient(own.address));
  } finally {
    await own.close();
  }
}
