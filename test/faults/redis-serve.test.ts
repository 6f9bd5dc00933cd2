/** `headgate serve --redis-url`: the queue of a running product on Redis, what the database commits carried there by the relay. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { findRedisServer } from '../../src/testing/redis-server.js';
import { testServers } from '../database/test-databases.js';
import { call, type HeadgateProcess, runHeadgate } from '../cli/headgate-process.js';
import { until } from '../../src/testing/until.js';
import { useOpened } from './redis/opened.js';

// A first start of the embedded database on a busy machine.
vi.setConfig({ testTimeout: 120_000 });

describe.skipIf(!findRedisServer())('headgate serve on Redis (needs redis-server on the PATH)', () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'headgate-serve-'));
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));
  // Behind the line above: what was opened last ends first, the folder of all of it last.
  const { atEnd, startServer, startCluster, connect } = useOpened();

  function serve(...flags: string[]): HeadgateProcess {
    const started = runHeadgate(['serve', '--port', '0', '--data', join(folder, 'data'), ...flags]);
    atEnd(() => started.kill('SIGKILL'));
    return started;
  }

  async function follow(address: string): Promise<void> {
    for (const id of ['ann', 'bob']) await call(address, 'PUT', `/v1/accounts/${id}`);
    await call(address, 'PUT', '/v1/accounts/bob/following/ann');
  }

  async function post(address: string, text: string): Promise<string> {
    const { status, body } = await call(address, 'POST', '/v1/posts', { author: 'ann', text });
    expect(status).toBe(201);
    return body.id;
  }

  const delivered = (address: string, id: string): Promise<unknown> =>
    until(
      async () => {
        const { body } = await call(address, 'GET', '/v1/accounts/bob/home');
        return body.items.some(
          (item: { id: string; fanOutDone: boolean }) => item.id === id && item.fanOutDone,
        );
      },
      { what: 'the fan-out' },
    );

  test('a post reaches the home of a follower, its work done by a queue on Redis', async () => {
    const server = await startServer({ fsync: 'always' });
    const address = await serve('--redis-url', server.url).ready();
    await follow(address);
    const id = await post(address, 'hello');
    await delivered(address, id);
    const message = await call(address, 'GET', `/v1/queues/feed-small/messages/fan-out:${id}`);
    expect(message.body).toMatchObject({ state: 'completed', attempts: 1 });
    const client = connect(server);
    expect(await client.smembers('headgate:queues')).toContain('feed-small');
    // Without the relay the sweep of forgotten fan-outs would have brought it there in the end.
    const metrics = await (await fetch(`${address}/metrics`)).text();
    expect(metrics).toContain('headgate_outbox_relayed_total{queue="feed-small",outcome="created"} 1');
    const { body } = await call(address, 'GET', '/health');
    expect(body.durability).toMatch(
      /^database: .+; queue on Redis: .*survives a killed server and a power cut/,
    );
  });

  test('a post is taken while Redis is away, and its fan-out is done when it is back', async () => {
    const server = await startServer({ fsync: 'always' });
    const address = await serve('--redis-url', server.url).ready();
    await follow(address);
    await delivered(address, await post(address, 'before'));
    await server.kill();
    const id = await post(address, 'meanwhile');
    await server.restart();
    await delivered(address, id);
  });

  test.each(testServers().slice(0, 1))(
    'a server and a worker process share Redis and $name',
    async ({ url }) => {
      const server = await startServer({ fsync: 'always' });
      const shared = ['--redis-url', server.url, '--database-url', await url()];
      const address = await serve('--no-work', ...shared).ready();
      await follow(address);
      const id = await post(address, 'hello');
      const worker = runHeadgate(['work', ...shared]);
      atEnd(() => worker.kill('SIGKILL'));
      await delivered(address, id);
      expect(await worker.kill('SIGTERM')).toBe(0);
    },
  );

  test('what the queue of the database still held is told of when the queue goes to Redis', async () => {
    const before = serve();
    const created = await call(await before.ready(), 'POST', '/v1/queues/mail/messages', {
      messages: [{ id: 'left', payload: 1 }],
    });
    expect(created.status).toBeLessThan(300);
    await before.kill('SIGTERM');
    const server = await startServer({ fsync: 'always' });
    const after = serve('--redis-url', server.url);
    await after.ready();
    expect(after.output()).toContain('messages wait in the queue of the database');
    expect(after.output()).toMatch(/"?mail"?: ?1/);
  });

  test('the queue lies on a Cluster when several of its nodes are named', async () => {
    const cluster = await startCluster({ replicas: false });
    const urls = cluster.servers.map(({ url }) => url).join(',');
    const address = await serve('--redis-url', urls, '--redis-durability', 'none').ready();
    await follow(address);
    await delivered(address, await post(address, 'hello'));
  });

  test('a Redis that may lose what it acknowledged is refused, unless that is asked for by name', async () => {
    const server = await startServer({ fsync: 'everysec' });
    const refused = serve('--redis-url', server.url);
    expect(await refused.exit()).toBe(1);
    expect(refused.output()).toContain('set appendfsync always (not-durable)');
    const address = await serve('--redis-url', server.url, '--redis-durability', 'everysec').ready();
    expect((await call(address, 'GET', '/health')).body.durability).toContain('loses about the last second');
  });

  test.each([
    [['--redis-url', 'http://localhost'], '--redis-url: expected a URL that begins with redis://'],
    [
      ['--redis-durability', 'some'],
      '--redis-durability: expected one of strict, everysec, none, got "some"',
    ],
  ])('refuses %j by name', async (flags, message) => {
    const refused = serve(...flags);
    expect(await refused.exit()).toBe(2);
    expect(refused.output()).toContain(message);
  });
});
