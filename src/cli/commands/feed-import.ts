/** `headgate feed import`: follows and posts from files into the database. */
import type { Command } from 'commander';
import type { FollowFormat } from '../../feed/index.js';
import { number } from '../arguments.js';
import {
  type Environment,
  feedTimelinesHelp,
  type Flags,
  redisDurabilityHelp,
  redisUrlHelp,
} from '../config.js';

/** By name alone: the part is loaded when the command runs, and says itself what it takes. */
const formats: readonly FollowFormat[] = ['edges', 'csv', 'jsonl'];

export function addFeedImport(feed: Command, environment: Environment): void {
  feed
    .command('import <what> <file>')
    .description('bring follows or posts from a file into the database; doing it again changes nothing')
    .option('--format <format>', `of follows: ${formats.join(', ')}; default: by the name of the file`)
    .option('--bad-lines-max <number>', 'lines that may be left out', number('--bad-lines-max'), 100)
    .option('--data <folder>', 'folder of the embedded database (HEADGATE_DATA; ./.headgate)')
    .option('--database-url <url>', 'a PostgreSQL, beside its servers (HEADGATE_DATABASE_URL)')
    .option('--redis-url <url>', redisUrlHelp)
    .option('--redis-durability <level>', redisDurabilityHelp)
    .option('--feed-timelines <where>', feedTimelinesHelp)
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      `
WHAT is follows or posts; FILE may be gzip, and - is standard input.
  follows  an edge list (two ids a line), CSV, or JSON lines like ["ada","ben"]
  posts    JSON lines like {"author":"ada","key":"draft-17","text":"Hello","createdAt":1750000000000}

Example:
  headgate feed import follows graph.txt.gz --database-url postgres://localhost/app`,
    )
    .action(async (what: string, file: string, flags: Flags) => {
      const { feedImport } = await import('../runs/feed-import.js');
      await feedImport(what, file, { flags, environment });
    });
}
