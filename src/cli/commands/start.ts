/** `headgate start`: the product at work on this machine, with a demo world on the embedded database. */
import type { Command } from 'commander';
import {
  notifyConfigHelp,
  type Environment,
  type Flags,
  feedTimelinesHelp,
  redisDurabilityHelp,
  redisUrlHelp,
} from '../config.js';

export function addStart(program: Command, environment: Environment): void {
  program
    .command('start')
    .description('start Headgate on the embedded database with a living demo world')
    .option('--port <number>', 'port to listen on (HEADGATE_PORT; 4400; 0 takes a free one)')
    .option('--data <folder>', 'folder of the embedded database (HEADGATE_DATA; ./.headgate)')
    .option('--redis-url <url>', redisUrlHelp)
    .option('--redis-durability <level>', redisDurabilityHelp)
    .option('--feed-timelines <where>', feedTimelinesHelp)
    .option('--notify-config <file>', `${notifyConfigHelp}; without one, kinds of a demo`)
    .option(
      '--follows <file>',
      'a follow graph to load: edge list, optionally gzip, # comments (HEADGATE_FOLLOWS)',
    )
    .option('--accounts <number>', 'accounts of the generated graph (HEADGATE_ACCOUNTS; 2000)')
    .option('--rate <number>', 'posts a second of the demo traffic (HEADGATE_RATE; 2)')
    .option('--log-level <level>', 'debug, info, warn, error or silent (HEADGATE_LOG_LEVEL; warn)')
    .addHelpText(
      'after',
      '\nExample:\n  headgate start --follows slashdot-follows.txt.gz --data ./slashdot --port 4401',
    )
    .action(async (flags: Flags) => (await import('../runs/start.js')).start(flags, environment));
}
