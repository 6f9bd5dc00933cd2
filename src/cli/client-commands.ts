/** What all commands have in common that speak to a server: where they find it, and how they print. */
import type { Command } from 'commander';
import type { ApiClient } from './api-client.js';
import {
  notifyConfigHelp,
  feedTimelinesHelp,
  redisDurabilityHelp,
  redisUrlHelp,
  type Environment,
  type Flags,
} from './config.js';
import { withClient } from './connect.js';

export type ClientRun = (client: ApiClient, flags: Flags, ...args: string[]) => Promise<void>;

/** Adds commands below `parent`; each is given a client for as long as it runs. */
export function clientCommands(parent: Command, environment: Environment) {
  return (usage: string, description: string, run: ClientRun): Command =>
    parent
      .command(usage)
      .description(description)
      .option(
        '--url <url>',
        'the server to talk to (HEADGATE_URL); default: the one that holds the data folder',
      )
      .option('--data <folder>', 'folder of the embedded database (HEADGATE_DATA; ./.headgate)')
      .option('--database-url <url>', 'open this PostgreSQL where no server runs (HEADGATE_DATABASE_URL)')
      .option('--redis-url <url>', redisUrlHelp)
      .option('--redis-durability <level>', redisDurabilityHelp)
      .option('--feed-timelines <where>', feedTimelinesHelp)
      .option('--notify-config <file>', notifyConfigHelp)
      .option('--json', 'print JSON')
      .action((...given: unknown[]) => {
        const [flags, args] = [
          given.at(-2) as Flags,
          given.slice(0, -2).filter((arg) => typeof arg === 'string'),
        ];
        return withClient(flags, environment, (client) => run(client, flags, ...args));
      });
}
