/** `headgate serve`: the API and the dashboard; with the embedded database the workers too, since one process holds it. */
import type { Command } from 'commander';
import {
  notifyConfigHelp,
  feedTimelinesHelp,
  redisDurabilityHelp,
  redisUrlHelp,
  type Environment,
  type Flags,
} from '../config.js';

export function addServe(program: Command, environment: Environment): void {
  program
    .command('serve')
    .description('serve the HTTP API and the dashboard')
    .option(
      '--database-url <url>',
      'a PostgreSQL 15+ to use (HEADGATE_DATABASE_URL); without it the embedded one',
    )
    .option('--redis-url <url>', redisUrlHelp)
    .option('--redis-durability <level>', redisDurabilityHelp)
    .option('--feed-timelines <where>', feedTimelinesHelp)
    .option('--notify-config <file>', notifyConfigHelp)
    .option('--data <folder>', 'folder of the embedded database (HEADGATE_DATA; ./.headgate)')
    .option('--port <number>', 'port to listen on (HEADGATE_PORT; 4400; 0 takes a free one)')
    .option(
      '--host <address>',
      'address to listen on (HEADGATE_HOST; 127.0.0.1; another needs HEADGATE_API_KEYS)',
    )
    .option('--log-level <level>', 'debug, info, warn, error or silent (HEADGATE_LOG_LEVEL; warn)')
    .option(
      '--no-work',
      'leave fan-out, notifications and housekeeping to `headgate work` (with --database-url)',
    )
    .addHelpText('after', '\nExample:\n  headgate serve --database-url postgres://localhost/app --port 4400')
    .action(async (flags: Flags) => (await import('../runs/serve.js')).serve(flags, environment));
}
