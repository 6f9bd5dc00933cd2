/**
 * A process that delivers until it is killed, for the experiment `guarantee`: the engine, or the naive loop, which takes a
 * job from one queue, calls, and tries again whatever did not answer.
 */
import { openPostgres } from '../../../src/database/index.js';
import { createQueue, createWorker } from '../../../src/queue/index.js';
import { createPostgresQueueStore } from '../../../src/queue/postgres/index.js';
import { openEngine } from './engine.js';
import { guaranteeTimings, webhookTo, type WorkerTask } from './guarantee-task.js';

const leaseMs = 2_000;
const slots = 40;

async function runEngine({ databaseUrl, port }: WorkerTask): Promise<void> {
  const database = await openPostgres({ connectionString: databaseUrl, poolMax: 8 });
  const engine = await openEngine({
    database,
    suffix: 'guarantee',
    providers: [webhookTo(port)],
    timings: guaranteeTimings,
  });
  await engine.notify.worker({ slots, floors: false, leaseMs }).start();
}

async function runNaive({ databaseUrl, port }: WorkerTask): Promise<void> {
  const database = await openPostgres({ connectionString: databaseUrl, poolMax: 8 });
  const queue = createQueue({ store: createPostgresQueueStore({ database, schema: 'queue_naive' }) });
  await queue.start();
  const provider = webhookTo(port);
  const worker = createWorker({
    queue,
    queues: ['jobs'],
    slots,
    leaseMs,
    prefetch: false,
    retry: { delayMs: 200, delayMaxMs: 1_000 },
    async handler({ id, attempts }) {
      const outcome = await provider.attempt(
        {
          reference: id,
          attempt: attempts,
          kind: 'any',
          destination: { channel: 'webhook', address: `http://127.0.0.1:${port}/` },
          content: { type: 'any', data: {} },
          createdAt: Date.now(),
          timeLeftMs: 60_000,
        },
        { signal: AbortSignal.timeout(1_000) },
      );
      if (outcome.kind !== 'sent') throw new Error(outcome.kind);
    },
  });
  await worker.start();
}

const task = JSON.parse(process.argv[2] as string) as WorkerTask;
await (task.loop === 'engine' ? runEngine(task) : runNaive(task));
process.stdout.write('started\n');
