/** `headgate migrate`: brings the schemas of a database up to date and tells which migrations that took. */
import type { Command } from 'commander';
import { noMetrics } from '../../metrics.js';
import {
  storeConfig,
  type Environment,
  type Flags,
  feedTimelinesHelp,
  redisDurabilityHelp,
  redisUrlHelp,
} from '../config.js';
import { createLog } from '../log.js';
import { wire } from '../wire.js';

export function addMigrate(program: Command, environment: Environment): void {
  program
    .command('migrate')
    .description(
      'bring the schemas of the database up to date; safe beside running processes and when run twice',
    )
    .option(
      '--database-url <url>',
      'a PostgreSQL 15+ to use (HEADGATE_DATABASE_URL); without it the embedded one',
    )
    .option('--redis-url <url>', redisUrlHelp)
    .option('--redis-durability <level>', redisDurabilityHelp)
    .option('--feed-timelines <where>', feedTimelinesHelp)
    .option('--data <folder>', 'folder of the embedded database (HEADGATE_DATA; ./.headgate)')
    .action(async (flags: Flags) => {
      // opening a database brings it up to date; the log says which migrations that took
      const parts = await wire(storeConfig(flags, environment), {
        log: createLog('info'),
        metrics: noMetrics,
      });
      await parts.stop();
      process.stdout.write('the schemas are up to date\n');
    });
}
