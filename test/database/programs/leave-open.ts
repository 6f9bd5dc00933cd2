/** Uses an embedded database and forgets to close it: the process must end by itself all the same. */
import { openPglite } from '../../../src/database/index.js';

const [folder = '', seedFile = ''] = process.argv.slice(2);
const database = await openPglite({ folder, seedFile });
await database.script('create table if not exists left_open (a int); insert into left_open values (1)');
console.log('done');
