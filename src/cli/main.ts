#!/usr/bin/env node
/** The command line: reads arguments, runs one command, and turns every failure into a sentence and a documented exit code. */
import { Command } from 'commander';
import { version } from '../version.js';
import { addStart } from './commands/start.js';
import { addFeed } from './commands/feed.js';
import { addMigrate } from './commands/migrate.js';
import { addNotify } from './commands/notify.js';
import { addQueue } from './commands/queue.js';
import { addServe } from './commands/serve.js';
import { addWork } from './commands/work.js';
import { exitCodes } from './exit-codes.js';

const program = new Command('headgate')
  .description('A priority queue, a home feed and notifications, on an embedded Postgres or on your own.')
  .version(version)
  .showSuggestionAfterError()
  .showHelpAfterError('(headgate --help tells what there is)')
  .configureOutput({ outputError: (text, write) => write(text) })
  .exitOverride((error) => {
    process.exit(error.exitCode === 0 ? exitCodes.done : exitCodes.usage);
  });

for (const add of [addStart, addServe, addWork, addMigrate, addQueue, addFeed, addNotify])
  add(program, process.env);
program.addHelpText(
  'after',
  `
Exit codes: ${exitCodes.done} done, ${exitCodes.failed} failed, ${exitCodes.usage} wrong use, ${exitCodes.folderLocked} the data folder is held by another process.`,
);

try {
  await program.parseAsync(process.argv);
} catch (error) {
  const { describeFailure } = await import('./failure.js');
  const { text, exitCode } = describeFailure(error);
  process.stderr.write(`headgate: ${text}\n`);
  process.exit(exitCode);
}
