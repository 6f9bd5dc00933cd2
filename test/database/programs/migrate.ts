/** Migrates a schema at a given moment and prints how many files it applied. */
import { setTimeout as delay } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { migrate, openPostgres } from '../../../src/database/index.js';

const [connectionString = '', schema = '', folder = '', atMs = '0'] = process.argv.slice(2);
const database = await openPostgres({ connectionString });
await database.query('select 1');
await delay(Math.max(0, Number(atMs) - Date.now()));
const applied = await migrate(database, { part: 'test', schema, directory: pathToFileURL(folder) });
console.log(`applied ${applied}`);
await database.close();
