/**
 * A process that sends one notification, delivers it, and kills itself at the step that it is told: before a statement
 * is sent, or after its answer has come. Run by notify-kill.test.ts.
 */
import { openPostgres, type Database, type Queryable } from '../../src/database/index.js';
import { createWebhookProvider, type Provider } from '../../src/notify/index.js';
import { openWorld, quickKinds, type TestKinds } from '../notify/world.js';

export interface ChildTask {
  readonly url: string;
  readonly suffix: string;
  readonly port: number;
  readonly kind: keyof TestKinds & ('order' | 'promo');
  readonly key: string;
  /** `step:before`, `step:after`; `call:during` for the moment when the request is on its way. */
  readonly die: string;
}

const task = JSON.parse(process.argv[2] as string) as ChildTask;
let armed = false;

/** Nothing runs after it: no handler, no flush. */
function die(): void {
  process.kill(process.pid, 'SIGKILL');
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10_000);
}

function at(point: string): void {
  if (armed && point === task.die) die();
}

const steps: readonly [string, RegExp][] = [
  ['accept', /insert into "n_\w+"\.notifications/],
  ['enqueue', /"q_\w+"\.enqueue\(/],
  ['dequeue', /"q_\w+"\.dequeue\(/],
  ['claim', /"n_\w+"\.claim\(/],
  ['settle', /"n_\w+"\.settle\(/],
  ['complete', /"q_\w+"\.(complete|settle_and_dequeue)\(/],
];

function watched(queryable: Queryable): Queryable['query'] {
  return async (text, values) => {
    const step = steps.find(([, pattern]) => pattern.test(text))?.[0];
    // A dequeue that finds nothing is no step of the path.
    if (step !== undefined && step !== 'dequeue') at(`${step}:before`);
    const result = await queryable.query(text, values);
    if (step !== undefined && (step !== 'dequeue' || result.rowCount > 0)) at(`${step}:after`);
    return result as never;
  };
}

function watchedDatabase(database: Database): Database {
  return {
    ...database,
    driver: database.driver,
    query: watched(database),
    script: (text) => database.script(text),
    listen: (channel, handler) => database.listen(channel, handler),
    durability: () => database.durability(),
    close: () => database.close(),
    async transaction(work, options) {
      const result = await database.transaction(async (transaction) => {
        const own = await work({
          inTransaction: true,
          query: watched(transaction),
          script: (text) => transaction.script(text),
        });
        at('commit:before');
        return own;
      }, options);
      at('commit:after');
      return result;
    },
  };
}

function watchedProvider(provider: Provider): Provider {
  return {
    ...provider,
    async attempt(request, context) {
      at('call:before');
      if (task.die === 'call:during') setTimeout(die, 100);
      const outcome = await provider.attempt(request, context);
      at('call:after');
      return outcome;
    },
  };
}

const database = await openPostgres({ connectionString: task.url, poolMax: 4 });
const provider = createWebhookProvider({
  secrets: ['secret'],
  timeoutMs: 1_000,
  allow: [`127.0.0.1:${task.port}`],
});
const world = await openWorld({
  database: watchedDatabase(database),
  suffix: task.suffix,
  kinds: quickKinds,
  timings: { marginMs: 400 },
  providers: [watchedProvider(provider)],
});
armed = true;
const worker = world.notify.worker({ slots: 2, floors: false, leaseMs: 500 });
await worker.start();
await world.notify.send(task.kind, {
  user: 'u',
  key: task.key,
  data: { number: 1, what: 'boots' },
  to: [{ channel: 'webhook', address: `http://127.0.0.1:${task.port}/` }],
});
process.stdout.write('accepted');
setTimeout(() => process.exit(3), 20_000);
