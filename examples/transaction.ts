/** A message that exists if, and only if, the change that it speaks of exists: enqueue inside your own transaction. */
import { openPglite } from 'headgate/database';
import { createQueue } from 'headgate/queue';
import { createPostgresQueueStore } from 'headgate/queue/postgres';

const database = await openPglite({ folder: 'memory' });
const queue = createQueue({ store: createPostgresQueueStore({ database }) });
await queue.start();
await database.query('create table orders (id int primary key, state text not null)');

async function placeOrder(id: number, paid: boolean): Promise<void> {
  await database.transaction(async (transaction) => {
    await transaction.query("insert into orders values ($1, 'placed')", [id]);
    await queue.enqueue('shipping', [{ id: `order-${id}`, payload: { order: id } }], { transaction });
    if (!paid) throw new Error('the payment was refused');
  });
}

await placeOrder(1, true);
await placeOrder(2, false).catch(() => console.log('order 2 was rolled back, and its message with it'));

const { messages } = await queue.list('shipping', { state: 'pending' });
console.log(`to ship: ${messages.map((message) => message.id).join(', ')}`);

await queue.stop();
await database.close();
