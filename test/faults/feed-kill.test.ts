/** Case F07: a worker process is killed in the middle of a fan-out; afterwards every follower has the post once. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { Database } from '../../src/database/index.js';
import { createFeed, type Feed, type FeedOptionsInput } from '../../src/feed/index.js';
import { createPostgresFeedStore } from '../../src/feed/postgres/index.js';
import { createQueue, type Queue } from '../../src/queue/index.js';
import { createPostgresQueueStore } from '../../src/queue/postgres/index.js';
import { testServers } from '../database/test-databases.js';
import type { WorkerProcessInput } from './feed/worker-process.js';

const options: FeedOptionsInput = { batchSize: 1_000, threshold: { pullFrom: 100_000, pushBelow: 90_000 } };
const program = fileURLToPath(new URL('./feed/worker-process.ts', import.meta.url));

describe.each(testServers().slice(0, 1))('a killed feed worker on $name', (server) => {
  let database: Database;
  let feed: Feed;
  let queue: Queue;
  const children: ChildProcess[] = [];
  let schemas = 0;
  let names = { schema: '', queueSchema: '' };

  beforeAll(async () => {
    database = await server.open();
  });
  afterEach(async () => {
    for (const child of children.splice(0)) {
      if (child.exitCode === null && child.signalCode === null) {
        child.kill('SIGKILL');
        await once(child, 'close');
      }
    }
    await feed.stop();
    await queue.stop();
  });
  afterAll(() => database.close());

  async function open(): Promise<void> {
    schemas += 1;
    names = { schema: `killed_feed_${schemas}`, queueSchema: `killed_queue_${schemas}` };
    queue = createQueue({ store: createPostgresQueueStore({ database, schema: names.queueSchema }) });
    feed = createFeed({
      database,
      queue,
      store: createPostgresFeedStore({ database, schema: names.schema }),
      options,
    });
    await queue.start();
    await feed.start();
  }

  async function startWorker(pauseMs: number): Promise<{ child: ChildProcess; lines: string[] }> {
    const input: WorkerProcessInput = { url: await server.url(), ...names, options, pauseMs };
    const child = spawn(process.execPath, ['--import', 'tsx', program, JSON.stringify(input)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    children.push(child);
    const lines: string[] = [];
    createInterface({ input: child.stdout }).on('line', (line) => lines.push(line));
    await expect.poll(() => lines, { timeout: 30_000 }).toContain('ready');
    return { child, lines };
  }

  async function kill(child: ChildProcess): Promise<void> {
    child.kill('SIGKILL');
    await once(child, 'close');
  }

  /** Followers with an empty timeline each. */
  async function followers(author: string, count: number): Promise<void> {
    await feed.importFollows(Array.from({ length: count }, (_, number) => [`f${number}`, author] as const));
    await database.query(
      `with made as (
         update ${names.schema}.readers r set state = 'live', token = nextval('${names.schema}.timeline_tokens'),
           seen_at = extract(epoch from now()) * 1000
         from ${names.schema}.accounts a where a.number = r.account and a.id <> $1 returning r.account, r.token)
       insert into ${names.schema}.timeline (reader, post) select account, -token from made`,
      [author],
    );
  }

  async function delivered(post: string): Promise<{ readers: number; entries: number }> {
    const { rows } = await database.query<{ readers: number; entries: number }>(
      `select count(distinct reader)::integer as readers, count(*)::integer as entries
       from ${names.schema}.timeline t join ${names.schema}.posts p on p.id = t.post where t.post = $1 and t.reader <> p.author`,
      [post],
    );
    return rows[0] ?? { readers: 0, entries: 0 };
  }

  test('F07 between two batches and inside one, 5,000 followers have the post once', async () => {
    await open();
    await followers('author', 5_000);
    const { post } = await feed.publish({ author: 'author', text: 'x' });
    const first = await startWorker(300);
    await expect
      .poll(async () => (await feed.fanOutProgress(post.id))?.batchesDone, { timeout: 30_000 })
      .toBe(2);
    await expect
      .poll(() => first.lines.filter((line) => line.startsWith('in batch')).length)
      .toBeGreaterThan(2);
    await kill(first.child);
    const part = await delivered(post.id);
    expect(part.entries).toBeLessThan(5_000);
    expect(part.entries).toBe(part.readers);
    expect((await feed.home({ reader: 'author' })).items.map((item) => item.id)).toEqual([post.id]);
    const before = await feed.stats();
    expect(before.fanOuts.big.unfinished + before.fanOuts.small.unfinished).toBe(1);

    await startWorker(0);
    await expect.poll(async () => (await feed.fanOutProgress(post.id))?.done, { timeout: 30_000 }).toBe(true);
    expect(await delivered(post.id)).toEqual({ readers: 5_000, entries: 5_000 });
  });

  test('F07 a worker killed in the fan-out of a small author leaves nothing undelivered', async () => {
    await open();
    await followers('author', 50);
    const { post } = await feed.publish({ author: 'author', text: 'x' });
    const first = await startWorker(60_000);
    await expect.poll(() => first.lines, { timeout: 30_000 }).toContain('in all');
    await kill(first.child);
    expect(await delivered(post.id)).toEqual({ readers: 0, entries: 0 });
    await startWorker(0);
    await expect.poll(async () => (await delivered(post.id)).entries, { timeout: 30_000 }).toBe(50);
    expect((await feed.home({ reader: 'f7' })).items.map((item) => item.id)).toEqual([post.id]);
  });
});
