/** The store suite on every store that can be opened here: memory, the embedded database, each PostgreSQL of the run. */
import { afterAll, describe } from 'vitest';
import type { Database } from '../../src/database/index.js';
import { createMemoryQueueStore } from '../../src/queue/memory/index.js';
import { createPostgresQueueStore } from '../../src/queue/postgres/index.js';
import { prepareSchema } from '../../src/testing/prepare-schema.js';
import { queueStoreSuite } from '../../src/testing/queue-store-suite.js';
import { testDatabases } from '../database/test-databases.js';

queueStoreSuite({
  name: 'memory',
  open: async () => ({ store: createMemoryQueueStore(), close: async () => {} }),
});

let schemas = 0;

describe.each(testDatabases())('on $name', ({ name, open }) => {
  let database: Promise<Database> | undefined;
  afterAll(async () => (await database)?.close());

  queueStoreSuite({
    name: `postgres on ${name}`,
    open: async () => {
      database ??= open();
      schemas += 1;
      const schema = `queue_${schemas}`;
      await prepareSchema(await database, 'queue', schema);
      const store = createPostgresQueueStore({ database: await database, schema });
      await store.start();
      return { store, close: async () => {} };
    },
  });
});
