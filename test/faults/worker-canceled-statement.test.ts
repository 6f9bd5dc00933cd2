/** A dequeue that the server refuses once, while nothing else happens on the queue. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Database } from '../../src/database/index.js';
import { createQueue, createWorker } from '../../src/queue/index.js';
import { createPostgresQueueStore } from '../../src/queue/postgres/index.js';
import { testServers } from '../database/test-databases.js';
import { within } from '../limits.js';
import { until } from '../../src/testing/until.js';

describe.each(testServers())('a canceled statement on $name', ({ open }) => {
  let database: Database;
  beforeAll(async () => {
    database = await open();
  });
  afterAll(() => database.close());

  test('Q25: a message that comes due starts although the first dequeue of it was canceled', async () => {
    const schema = 'canceled_once';
    const queue = createQueue({ store: createPostgresQueueStore({ database, schema }) });
    await queue.start();
    // A sequence is not rolled back: only the first time that a message is handed out fails, as by a cancel request.
    await database.script(`
      create sequence ${schema}.refusals;
      create function ${schema}.refuse_once() returns trigger language plpgsql as $$ begin
        if nextval('${schema}.refusals') = 1 then
          raise exception 'canceling statement due to user request' using errcode = 'query_canceled';
        end if;
        return new;
      end $$;
      create trigger refuse_once before update on ${schema}.messages
        for each row when (new.state = 2) execute function ${schema}.refuse_once();
    `);
    const startedAt: number[] = [];
    const worker = createWorker({ queue, queues: ['q'], handler: () => void startedAt.push(Date.now()) });
    await worker.start();
    await queue.enqueue('q', [{ id: 'm', payload: 1, delayMs: 1_000 }]);
    const { visibleAt } = (await queue.get('q', 'm'))!;
    await until(() => startedAt.length === 1, { boundMs: 1_000 + within(2_000) });
    const { rows } = await database.query<{ last_value: string }>(
      `select last_value from ${schema}.refusals`,
    );
    expect(Number(rows[0]!.last_value)).toBe(2);
    expect(startedAt[0]! - visibleAt).toBeLessThan(within(2_000));
    await until(async () => (await queue.get('q', 'm'))?.state === 'completed');
    // What was canceled has spent nothing.
    expect(await queue.get('q', 'm')).toMatchObject({ attempts: 1 });
    await worker.stop();
    await queue.stop();
  });
});
