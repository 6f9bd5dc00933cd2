/** `headgate migrate`: brings the schemas of a database up to date and tells which migrations that took. */
import type { Command } from 'commander';
import {
  type Environment,
  type Flags,
  feedTimelinesHelp,
  redisDurabilityHelp,
  redisUrlHelp,
} from '../config.js';

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
    .action(async (flags: Flags) => (await import('../runs/migrate.js')).migrate(flags, environment));
}
