/** `headgate work`: the workers without a server; several may run beside each other on one PostgreSQL. */
import type { Command } from 'commander';
import { invalidInput } from '../../errors.js';
import { noMetrics } from '../../metrics.js';
import { createPrometheus } from '../../server/index.js';
import {
  metricsConfig,
  metricsHostHelp,
  metricsPortHelp,
  notifyConfigHelp,
  feedTimelinesHelp,
  redisDurabilityHelp,
  redisUrlHelp,
  serveConfig,
  type Environment,
  type Flags,
} from '../config.js';
import { createLog } from '../log.js';
import { createMetricsServer } from '../metrics-server.js';
import { loadNotifyConfiguration } from '../notify/load.js';
import { stopDeadlineMs, watchSignals } from '../shutdown.js';
import { wire, type Parts } from '../wire.js';

export function addWork(program: Command, environment: Environment): void {
  program
    .command('work')
    .description('run the workers: fan-out, notifications and housekeeping')
    .option('--database-url <url>', 'the PostgreSQL that `headgate serve` uses (HEADGATE_DATABASE_URL)')
    .option('--redis-url <url>', redisUrlHelp)
    .option('--redis-durability <level>', redisDurabilityHelp)
    .option('--feed-timelines <where>', feedTimelinesHelp)
    .option('--notify-config <file>', notifyConfigHelp)
    .option('--metrics-port <number>', metricsPortHelp)
    .option('--metrics-host <address>', metricsHostHelp)
    .option('--log-level <level>', 'debug, info, warn, error or silent (HEADGATE_LOG_LEVEL; warn)')
    .addHelpText('after', '\nExample:\n  headgate work --database-url postgres://localhost/app')
    .action(async (flags: Flags) => {
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
    });
}
