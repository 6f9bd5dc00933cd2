/** The server of a command that found none: on a free port of loopback, for as long as the command runs. */
import { noMetrics } from '../../metrics.js';
import { createPrometheus, createServer } from '../../server/index.js';
import { clientConfig, type Environment, type Flags } from '../config.js';
import { createLog } from '../log.js';
import { loadNotifyConfiguration } from '../notify/load.js';
import { wire } from '../wire.js';

export async function bringUp(
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
