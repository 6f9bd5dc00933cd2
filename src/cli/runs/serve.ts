/** What `headgate serve` does. */
import type { Environment, Flags } from '../config.js';
import { createLog } from '../log.js';
import { loadNotifyConfiguration } from '../notify/load.js';
import { runServer } from '../run-server.js';
import { serveConfig } from '../serve-config.js';

export async function serve(flags: Flags, environment: Environment): Promise<void> {
  const config = serveConfig(flags, environment);
  const log = createLog(config.logLevel);
  const notify = await loadNotifyConfiguration({ flags, environment, log });
  await runServer({
    config,
    notify: () => notify,
    withWorkers: config.databaseUrl === undefined || flags['work'] !== false,
    onReady: ({ address }) => process.stdout.write(`ready on ${address}\n`),
    print: (line) => void process.stdout.write(`${line}\n`),
  });
}
