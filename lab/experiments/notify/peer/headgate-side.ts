/** Our side of the comparison: the engine as it is, one process that accepts and delivers. */
import { openPostgres } from '../../../../src/database/index.js';
import type { Component } from '../../../../src/lifecycle.js';
import type { Provider } from '../../../../src/notify/index.js';
import { openEngine } from '../engine.js';
import { Counterpart, measure, type SideTask } from './side.js';

const task = JSON.parse(process.argv[2] as string) as SideTask;
const counterpart = new Counterpart();
const provider: Provider = {
  name: 'counterpart',
  channel: 'email',
  attempt: ({ reference }) => counterpart.take(reference),
};
const database = await openPostgres({ connectionString: task.databaseUrl, poolMax: 10 });
const engine = await openEngine({ database, providers: [provider], suffix: 'peer' });
let worker: Component | undefined;
const answer = await measure(
  task,
  {
    send: (index) =>
      engine.notify.send('order', {
        user: `u${index % 1_000}`,
        key: `order-${index}`,
        data: { number: index },
        to: [{ channel: 'email', address: 'a@example.test' }],
      }),
    async start() {
      worker = engine.notify.worker({ slots: task.slots, floors: false });
      await worker.start();
    },
    pause: async () => worker?.stop(),
    written: async () => (await engine.notify.ledger()).sent,
  },
  counterpart,
);
await engine.stop();
await database.close();
process.stdout.write(`${JSON.stringify(answer)}\n`);
