/**
 * Many clients on a real server through every kind of trouble: sessions ended, connections cut and half-open, the server
 * killed and started again. Afterwards the recorded history is checked against every promise of the queue.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openPostgres, type Database } from '../../src/database/index.js';
import { createQueue, type LeasedMessage, type Queue } from '../../src/queue/index.js';
import { createPostgresQueueStore } from '../../src/queue/postgres/index.js';
import { type PostgresServer, type Proxy, startPostgresServer, startProxy } from '../../src/testing/index.js';
import {
  checkQueueHistory,
  type QueueEnding,
  QueueRecord,
  recordQueueStore,
} from '../../src/testing/queue-history-check.js';
import { seededRandom } from '../../src/testing/queue-suite-harness.js';

const seed = Number(process.env['HEADGATE_SEED'] ?? Math.floor(Math.random() * 2 ** 31));
const isLong = process.env['HEADGATE_LONG'] === '1';
const runMs = isLong ? 120_000 : 6_000;
const leaseMs = 1_500;

describe(`a storm over the postgres store (replay: HEADGATE_SEED=${seed})`, () => {
  let server: PostgresServer;
  let proxy: Proxy;
  let direct: Database;
  const databases: Database[] = [];
  beforeAll(async () => {
    server = await startPostgresServer({ version: 'system' });
    proxy = await startProxy({ target: { host: '127.0.0.1', port: server.port } });
    direct = await openPostgres({ connectionString: server.url });
  });
  afterAll(async () => {
    await Promise.allSettled(databases.map((database) => database.close()));
    await direct.close();
    await proxy.stop();
    await server.stop();
  });

  async function openClient(record: QueueRecord): Promise<Queue> {
    const url = new URL(server.url);
    url.port = String(proxy.port);
    const database = await openPostgres({
      connectionString: url.href,
      poolMax: 3,
      acquireTimeoutMs: 2_000,
      queryTimeoutMs: 2_000,
    });
    databases.push(database);
    return createQueue({ store: recordQueueStore(createPostgresQueueStore({ database }), record) });
  }

  test.each(['simple', 'exclusive'] as const)(
    'keeps every promise of a queue that is %s',
    { timeout: isLong ? 900_000 : runMs + 120_000 },
    async (kind) => {
      const random = seededRandom(seed);
      const pick = (count: number) => Math.floor(random() * count);
      const record = new QueueRecord();
      const steady = createQueue({
        store: recordQueueStore(createPostgresQueueStore({ database: direct }), record),
      });
      await steady.store.start();
      await steady.configure(kind, {
        history: 'message',
        leaseMs,
        ...(kind === 'exclusive' ? { type: { kind, key: 'user' } } : {}),
      });
      const clients = await Promise.all([0, 1, 2].map(() => openClient(record)));
      const endsAtMs = performance.now() + runMs;
      let made = 0;

      const storm = async () => {
        const troubles = [
          () =>
            direct.query(
              'select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and datname = current_database()',
            ),
          async () => proxy.cut(),
          async () => {
            await server.kill();
            await server.restart();
          },
        ];
        while (performance.now() < endsAtMs) {
          await delay(500 + pick(1_500));
          await troubles[pick(troubles.length)]!().catch(() => undefined);
        }
      };

      /** Enqueues, takes, and does to each message one of what a holder can do; what fails is tried again the same way. */
      const client = async (queue: Queue) => {
        while (performance.now() < endsAtMs) {
          try {
            const messages = Array.from({ length: 1 + pick(5) }, () => {
              made += 1;
              return { id: `m${made}`, payload: made, metadata: { user: `u${pick(20)}` }, attemptsMax: 50 };
            });
            await queue.enqueue(kind, messages);
            await queue.store.housekeep({ now: undefined });
            for (const message of await queue.dequeue(kind, { count: 1 + pick(5) }))
              await act(queue, message);
          } catch {
            await delay(50);
          }
        }
      };
      const act = async (queue: Queue, message: LeasedMessage) => {
        const choice = pick(10);
        if (choice < 6) await queue.complete(kind, [message]);
        else if (choice === 6) await queue.fail(kind, [{ ...message, error: 'x', retryDelayMs: pick(200) }]);
        else if (choice === 7) await queue.release(kind, [message]);
        else if (choice === 8) await queue.extend(kind, [{ ...message, leaseMs }]);
      };

      await Promise.all([storm(), ...clients.map(client)]);

      await expect.poll(() => drain(steady, kind), { timeout: 60_000, interval: 200 }).toBe(0);
      const endings = new Map<string, QueueEnding>();
      const ids = [...record.created];
      for (let from = 0; from < ids.length; from += 20) {
        const some = ids.slice(from, from + 20).map(async (id) => {
          const [message, events] = await Promise.all([steady.get(kind, id), steady.history(kind, id)]);
          endings.set(id, { message, events });
        });
        await Promise.all(some);
      }
      expect(record.created.size).toBeGreaterThan(20);
      expect(
        checkQueueHistory(record, endings, ({ metadata }) =>
          kind === 'exclusive' ? metadata['user'] : undefined,
        ),
      ).toEqual([]);
      await steady.store.stop();
    },
  );

  /** Completes what there is, an exclusive queue one message a value at a time; answers how much is left alive. */
  async function drain(queue: Queue, name: string): Promise<number> {
    await queue.store.housekeep({ now: undefined });
    for (let round = 0; round < 1_000; round += 1) {
      const messages = await queue.dequeue(name, { count: 500, leaseMs: 60_000 });
      if (messages.length === 0) break;
      await queue.complete(name, messages);
    }
    const { invisible, pending, running } = await queue.depth(name);
    return invisible + pending + running;
  }
});
