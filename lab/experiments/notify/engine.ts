/** Notification engines on a throwaway PostgreSQL server with fsync on, and the kinds of the reference, for experiments. */
import { openPostgres, type Database } from '../../../src/database/index.js';
import {
  createNotify,
  defineKinds,
  type KindTable,
  type Notify,
  type NotifyTimings,
  type Provider,
} from '../../../src/notify/index.js';
import { createPostgresNotifyStore } from '../../../src/notify/postgres/index.js';
import { createQueue, type Queue } from '../../../src/queue/index.js';
import { createPostgresQueueStore } from '../../../src/queue/postgres/index.js';
import { startPostgresServer, type PostgresServer } from '../../../src/testing/index.js';

/** The reference: codes in 15 s at least once, receipts of orders at least once, promotions at most once. */
export const labKinds = defineKinds({
  otp: {
    delivery: 'at-least-once',
    channels: ['sms'],
    deadline: '15s',
    attemptsMax: 3,
    retryAfter: '2s',
    priority: 'urgent',
    floor: 60,
    required: true,
    templates: { sms: { text: 'Your code is {{ code }}' } },
  },
  order: {
    delivery: 'at-least-once',
    channels: ['webhook'],
    deadline: '1h',
    attemptsMax: 5,
    retryAfter: 200,
    templates: {
      webhook: { type: 'order.placed' },
      email: { subject: 'Order {{ number }}', text: 'Thank you.' },
    },
  },
  promo: {
    delivery: 'at-most-once',
    channels: ['push', 'webhook'],
    templates: { webhook: { type: 'promo' }, push: { title: 'New', body: '{{ what }}' } },
  },
});
export type LabKinds = typeof labKinds;

export interface LabEngine<Table extends KindTable = LabKinds> {
  readonly notify: Notify<Table>;
  readonly queue: Queue;
  readonly database: Database;
  /** Quoted, for statements of the experiment itself. */
  readonly schema: string;
  stop(): Promise<void>;
}

/** An engine in schemas that end in `suffix`; engines of several processes share them. */
export async function openEngine<Table extends KindTable = LabKinds>(input: {
  readonly database: Database;
  readonly providers: readonly Provider[];
  readonly suffix: string;
  readonly kinds?: Table;
  readonly timings?: Partial<NotifyTimings>;
  readonly clock?: Parameters<typeof createNotify>[0]['clock'];
}): Promise<LabEngine<Table>> {
  const { database, suffix, providers, timings = {} } = input;
  const clock = input.clock === undefined ? {} : { clock: input.clock };
  const queue = createQueue({
    store: createPostgresQueueStore({ database, schema: `queue_${suffix}` }),
    ...clock,
  });
  await queue.start();
  const notify = createNotify<Table>({
    database,
    store: createPostgresNotifyStore({ database, schema: `notify_${suffix}` }),
    queue,
    kinds: input.kinds ?? (labKinds as unknown as Table),
    providers,
    timings,
    ...clock,
  });
  await notify.start();
  return {
    notify,
    queue,
    database,
    schema: `"notify_${suffix}"`,
    async stop() {
      await notify.stop();
      await queue.stop();
    },
  };
}

export interface LabServer {
  readonly server: PostgresServer;
  readonly durability: string;
  /** A pool on a database of its own. */
  open(options?: {
    readonly poolMax?: number;
  }): Promise<{ readonly database: Database; readonly url: string }>;
}

/** Runs `work` with a server of its own, and closes what it opened. */
export async function withLabServer<T>(work: (lab: LabServer) => Promise<T>): Promise<T> {
  const server = await startPostgresServer({ fsync: true });
  const opened: Database[] = [];
  try {
    const durability = `PostgreSQL ${server.majorVersion}, fsync on, synchronous_commit on`;
    return await work({
      server,
      durability,
      async open({ poolMax = 10 } = {}) {
        const url = await server.createDatabase();
        const database = await openPostgres({ connectionString: url, poolMax, acquireTimeoutMs: 60_000 });
        opened.push(database);
        return { database, url };
      },
    });
  } finally {
    for (const database of opened) await database.close();
    await server.stop();
  }
}

/** Resolves when `fact` holds; throws after the bound, naming what was waited for. */
export async function until(what: string, boundMs: number, fact: () => unknown): Promise<void> {
  for (const endsAtMs = performance.now() + boundMs; ; ) {
    if (await fact()) return;
    if (performance.now() > endsAtMs) throw new Error(`not within ${boundMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** Calls `work` with 0, 1, … below `count`, `width` of them side by side. */
export async function sideBySide(
  count: number,
  width: number,
  work: (index: number) => Promise<unknown>,
): Promise<void> {
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: width }, lane));
}
