/** `headgate work`: the workers without a server; several may run beside each other on one PostgreSQL. */
import type { Command } from 'commander';
import {
  metricsHostHelp,
  metricsPortHelp,
  notifyConfigHelp,
  feedTimelinesHelp,
  redisDurabilityHelp,
  redisUrlHelp,
  type Environment,
  type Flags,
} from '../config.js';

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
    .action(async (flags: Flags) => (await import('../runs/work.js')).work(flags, environment));
}
