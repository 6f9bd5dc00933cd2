/** What `headgate work` does. */
import { invalidInput } from '../../errors.js';
import { noMetrics } from '../../metrics.js';
import { createPrometheus } from '../../server/index.js';
import { metricsConfig, type Environment, type Flags } from '../config.js';
import { createLog } from '../log.js';
import { createMetricsServer } from '../metrics-server.js';
import { loadNotifyConfiguration } from '../notify/load.js';
import { serveConfig } from '../serve-config.js';
import { stopDeadlineMs, watchSignals } from '../shutdown.js';
import { wire, type Parts } from '../wire.js';

export async function work(flags: Flags, environment: Environment): Promise<void> {
  const config = serveConfig(flags, environment);
  if (config.databaseUrl === undefined) {
    throw invalidInput(
      '--database-url',
      undefined,
      'a PostgreSQL (the embedded database belongs to one process: `headgate serve`)',
    );
  }
  const log = createLog(config.logLevel);
  const notify = await loadNotifyConfiguration({ flags, environment, log });
  const shutdown = watchSignals();
  const listening = metricsConfig(flags, environment);
  const prometheus = listening && createPrometheus();
  let parts: Parts | undefined;
  const metricsServer =
    listening &&
    prometheus &&
    createMetricsServer(listening, {
      prometheus,
      health: () => ({
        durability: parts?.durability ?? 'not known yet: the database is being opened',
        timelines: parts?.feed.timelinesApart(),
      }),
    });
  await metricsServer?.start();
  try {
    if (metricsServer) process.stdout.write(`metrics on ${metricsServer.address()}/metrics\n`);
    parts = await wire(config, { log, metrics: prometheus?.backend ?? noMetrics, notify });
    await parts.workers.start();
    process.stdout.write('working\n');
    await shutdown.wait();
  } finally {
    shutdown.begin();
    await parts?.stop({ deadlineMs: stopDeadlineMs - 1_500 });
    await metricsServer?.stop();
  }
}
