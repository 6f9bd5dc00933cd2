/** A queue on a schema of its own, on a database of the run. */
import { createQueue, type Queue, type QueueStore } from '../../../src/queue/index.js';
import type { Database } from '../../../src/database/index.js';
import { createPostgresQueueStore } from '../../../src/queue/postgres/index.js';
import { ManualClock } from '../../../src/testing/manual-clock.js';
import { prepareSchema } from '../../../src/testing/prepare-schema.js';

let schemas = 0;

export interface OpenedQueue {
  readonly schema: string;
  readonly store: QueueStore;
  readonly queue: Queue;
  readonly clock: ManualClock;
}

/** Migrated but not started: nothing runs in the background. */
export async function openQueue(database: Database): Promise<OpenedQueue> {
  schemas += 1;
  const schema = `queue_${process.pid}_${schemas}`;
  await prepareSchema(database, 'queue', schema);
  const store = createPostgresQueueStore({ database, schema });
  await store.start();
  const clock = new ManualClock();
  return { schema, store, queue: createQueue({ store, clock }), clock };
}
