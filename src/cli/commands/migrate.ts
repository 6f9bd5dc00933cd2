/** `headgate migrate`: brings the schemas of a database up to date and tells what it did. */
import type { Command } from 'commander';
import { storeConfig, type Environment, type Flags } from '../config.js';
import { createLog } from '../log.js';
import { migrateAll } from '../wire.js';

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
    .option('--data <folder>', 'folder of the embedded database (HEADGATE_DATA; ./.headgate)')
    .action(async (flags: Flags) => {
      const applied = await migrateAll(storeConfig(flags, environment), createLog('warn'));
      for (const [part, count] of Object.entries(applied)) {
        process.stdout.write(`${part}: ${count === 0 ? 'up to date' : `${count} migrations applied`}\n`);
      }
    });
}
