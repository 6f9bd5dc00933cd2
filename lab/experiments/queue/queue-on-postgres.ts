/** A queue on a throwaway PostgreSQL server with fsync on, for one experiment. */
import { type Database, openPostgres } from '../../../src/database/index.js';
import { createQueue, type NewMessage, type Queue } from '../../../src/queue/index.js';
import { createPostgresQueueStore } from '../../../src/queue/postgres/index.js';
import { type PostgresServer, startPostgresServer } from '../../../src/testing/index.js';

export interface LabQueue {
  readonly queue: Queue;
  readonly database: Database;
  readonly server: PostgresServer;
  readonly durability: string;
}

export async function withLabQueue<T>(
  options: { readonly settings?: Readonly<Record<string, string>>; readonly poolMax?: number },
  work: (lab: LabQueue) => Promise<T>,
): Promise<T> {
  const { settings = {}, poolMax = 10 } = options;
  const server = await startPostgresServer({ fsync: true, settings });
  try {
    const database = await openPostgres({
      connectionString: await server.createDatabase(),
      poolMax,
      acquireTimeoutMs: 60_000,
    });
    const queue = createQueue({ store: createPostgresQueueStore({ database }) });
    await queue.start();
    const { fsync, synchronousCommit } = await database.durability();
    const durability = `PostgreSQL ${server.majorVersion}, fsync ${fsync ? 'on' : 'off'}, synchronous_commit ${synchronousCommit}`;
    try {
      return await work({ queue, database, server, durability });
    } finally {
      await queue.stop();
      await database.close();
    }
  } finally {
    await server.stop();
  }
}

/** Enqueues `count` messages in steps of 1,000. */
export async function fill(
  queue: Queue,
  name: string,
  count: number,
  message: (index: number) => NewMessage,
): Promise<void> {
  for (let from = 0; from < count; from += 1_000) {
    const length = Math.min(1_000, count - from);
    await queue.enqueue(
      name,
      Array.from({ length }, (_, index) => message(from + index)),
    );
  }
}
