/** Writes rows into an embedded database until it is killed and prints the id of each once it is acknowledged. */
import { openPglite } from '../../../src/database/index.js';

const [folder = '', seedFile = ''] = process.argv.slice(2);
const database = await openPglite({ folder, seedFile });
await database.script('create table if not exists written (id int8 primary key, filler text)');
const { rows } = await database.query<{ next: string }>(
  'select coalesce(max(id), 0) + 1 as next from written',
);
console.log('ready');
for (let id = BigInt(rows[0]?.next ?? 1); ; id += 2n) {
  await database.query("insert into written values ($1, repeat('x', 2000))", [id]);
  console.log(`${id}`);
  await database.transaction(async (transaction) => {
    await transaction.query("insert into written values ($1, repeat('y', 2000))", [id + 1n]);
  });
  console.log(`${id + 1n}`);
}
