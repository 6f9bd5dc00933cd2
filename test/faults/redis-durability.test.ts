/** The durability table of docs/reference/queue-redis.md: what `strict` asks of a server, and what it answers when that is not kept. */
import { describe, expect, test } from 'vitest';
import { silentLog } from '../../src/log.js';
import { createQueue, type Queue } from '../../src/queue/index.js';
import { inspectDurability } from '../../src/queue/redis/durability.js';
import {
  createRedisQueueStore,
  type RedisQueueStore,
  type RedisQueueStoreOptions,
} from '../../src/queue/redis/index.js';
import {
  findRedisServer,
  type RedisServer,
  type RedisServerOptions,
} from '../../src/testing/redis-server.js';
import { until } from '../../src/testing/until.js';
import { useOpened } from './redis/opened.js';

const { atEnd, startServer, connect } = useOpened();

type Options = Partial<Omit<RedisQueueStoreOptions, 'url' | 'client' | 'cluster'>>;

function open(server: RedisServer, options: Options = {}): { store: RedisQueueStore; queue: Queue } {
  const store = createRedisQueueStore({ url: server.url, durability: 'strict', prefix: 't', ...options });
  atEnd(() => store.stop());
  return { store, queue: createQueue({ store }) };
}

/** A primary and its replica, in step. */
async function startPair(
  primaryOptions: RedisServerOptions,
  replicaOptions: RedisServerOptions,
): Promise<{ primary: RedisServer; replica: RedisServer }> {
  const primary = await startServer(primaryOptions);
  const settings = { ...replicaOptions.settings, replicaof: `127.0.0.1 ${primary.port}` };
  const replica = await startServer({ ...replicaOptions, settings });
  await until(async () => (await connect(primary).info('replication')).includes('state=online'));
  return { primary, replica };
}

const holds = (call: () => Promise<unknown>): Promise<boolean> =>
  call().then(
    () => true,
    () => false,
  );

const one = (id: string) => [{ id, payload: {} }];
const notDurable = { code: 'not-durable' };
const notReplicated = { code: 'not-replicated' };

describe.skipIf(!findRedisServer())('confirmed by receipt (needs redis-server on the PATH)', () => {
  test('strict refuses a server without an append-only file, and one that does not flush every write', async () => {
    const bare = await startServer();
    await expect(open(bare).store.start()).rejects.toMatchObject(notDurable);
    await expect(open(bare, { durability: 'everysec' }).store.start()).rejects.toMatchObject(notDurable);
    const everysec = await startServer({ fsync: 'everysec' });
    await expect(open(everysec, { confirm: 'receipt' }).store.start()).rejects.toMatchObject(notDurable);
    await open(everysec, { durability: 'everysec' }).store.start();
  });

  test('strict refuses a server that evicts', async () => {
    const settings = { maxmemory: '64mb', 'maxmemory-policy': 'allkeys-lru' };
    const server = await startServer({ fsync: 'always', settings });
    await expect(open(server).store.start()).rejects.toMatchObject(notDurable);
  });

  test('strict takes a server that flushes every write, and says what that survives', async () => {
    const server = await startServer({ fsync: 'always' });
    expect(await open(server).store.durability()).toMatchObject({
      confirmedBy: 0,
      survives: 'an acknowledged change survives a killed server and a power cut of its machine',
    });
  });

  test('strict answers a change only when the replica has it, and says when it has not', async () => {
    const { primary, replica } = await startPair({ fsync: 'everysec' }, {});
    const { store, queue } = open(primary, { confirm: 'receipt', replicaTimeoutMs: 2_000 });
    expect(await store.durability()).toMatchObject({ confirmedBy: 1 });
    await queue.enqueue('q', [...one('a'), ...one('b')]);
    expect(await connect(replica).hlen('t:{q}:m')).toBe(2);
    process.kill(replica.pid!, 'SIGSTOP');
    await expect(queue.enqueue('q', one('unsure'))).rejects.toMatchObject(notReplicated);
    await expect(queue.dequeue('q')).rejects.toMatchObject(notReplicated);
    process.kill(replica.pid!, 'SIGCONT');
    await until(() => holds(() => queue.enqueue('q', one('unsure'))));
    expect(await queue.depth('q')).toMatchObject({ pending: 2, running: 1 });
  });

  test('all replicas that were asked for must have a change, and are asked for at start', async () => {
    const { primary, replica } = await startPair({ fsync: 'everysec' }, {});
    const two = { confirm: 'receipt', replicas: 2 } as const;
    await expect(open(primary, two).store.start()).rejects.toMatchObject({
      ...notDurable,
      message: expect.stringContaining('2 replicas must confirm, and 1 are connected') as string,
    });
    await startServer({ settings: { replicaof: `127.0.0.1 ${primary.port}` } });
    const hasBoth = async () =>
      (await connect(primary).info('replication')).match(/state=online/g)?.length === 2;
    await until(hasBoth);
    const { queue } = open(primary, { confirm: 'receipt', replicaTimeoutMs: 2_000 });
    await queue.enqueue('q', one('a'));
    process.kill(replica.pid!, 'SIGSTOP');
    await expect(queue.enqueue('q', one('b'))).rejects.toMatchObject({
      ...notReplicated,
      message: expect.stringContaining('1 of 2 replicas') as string,
    });
    process.kill(replica.pid!, 'SIGCONT');
  });

  test('of several primaries the weakest counts', async () => {
    const { primary } = await startPair({ fsync: 'everysec' }, {});
    const alone = await startServer({ fsync: 'everysec' });
    const primaries = [connect(primary), connect(alone)];
    const options = { url: primary.url, durability: 'strict', confirm: 'receipt' } as const;
    await expect(inspectDurability({ primaries, options, log: silentLog })).rejects.toMatchObject(notDurable);
    const first = primaries.slice(0, 1);
    expect(await inspectDurability({ primaries: first, options, log: silentLog })).toMatchObject({
      confirmedBy: 1,
    });
  });

  test('what another connection has written is not acknowledged by a call that only finds it there', async () => {
    const { primary, replica } = await startPair({ fsync: 'everysec' }, {});
    const options: Options = { confirm: 'receipt', replicaTimeoutMs: 2_000 };
    const [first, second] = [open(primary, options), open(primary, options)];
    await Promise.all([first.store.start(), second.store.start()]);
    await first.queue.enqueue('q', one('a'));
    process.kill(replica.pid!, 'SIGSTOP');
    await expect(first.queue.enqueue('q', one('b'))).rejects.toMatchObject(notReplicated);
    await expect(second.queue.enqueue('q', one('b'))).rejects.toMatchObject(notReplicated);
    process.kill(replica.pid!, 'SIGCONT');
    await until(() => holds(() => second.queue.enqueue('q', one('b'))));
  });
});

const program = 'valkey-server';

describe.skipIf(!findRedisServer(program))('confirmed by flush (needs valkey-server on the PATH)', () => {
  test('a server that flushes once a second is refused: it confirms flushes that it has not made', async () => {
    const server = await startServer({ program, fsync: 'everysec' });
    await expect(open(server).store.start()).rejects.toMatchObject(notDurable);
    await expect(open(server, { confirm: 'flush' }).store.start()).rejects.toMatchObject(notDurable);
  });

  test('a change that is not flushed in time is not acknowledged, and the error says who has not', async () => {
    const server = await startServer({ program, fsync: 'always' });
    const { store, queue } = open(server, { replicaTimeoutMs: 2_000 });
    expect(await store.durability()).toMatchObject({ confirmation: { by: 'flush', replicas: 0 } });
    // The queue's name is confirmed before its first message: here it is there already.
    await queue.enqueue('q', one('first'));
    const client = connect(server);
    // What it was set to at start no longer holds; the count tells.
    await client.config('SET', 'appendfsync', 'no');
    await expect(queue.enqueue('q', one('a'))).rejects.toMatchObject({
      ...notReplicated,
      message: 'the change is not flushed by the server itself, and confirmed by 0 of 0 replicas in time',
    });
    await client.config('SET', 'appendfsync', 'always');
    expect(await queue.enqueue('q', one('a'))).toMatchObject([{ created: false }]);
    await client.config('SET', 'appendonly', 'no');
    await expect(queue.enqueue('q', one('b'))).rejects.toMatchObject(notDurable);
  });

  test('calls that come while one is confirmed share the next confirmation', async () => {
    const server = await startServer({ program, fsync: 'always' });
    const { store, queue } = open(server);
    await store.start();
    const client = connect(server);
    await client.config('RESETSTAT');
    const queues = Array.from({ length: 40 }, (_, index) => `q${index}`);
    await Promise.all(queues.map((name) => queue.enqueue(name, one('a'))));
    await Promise.all(queues.map((name) => queue.dequeue(name)));
    const stats = await client.info('commandstats');
    const waits = Number(/cmdstat_waitaof:calls=(\d+)/.exec(stats)?.[1]);
    // A few rounds of 80 calls: how many depends on how they come in.
    expect(waits).toBeGreaterThan(0);
    expect(waits).toBeLessThanOrEqual(20);
  });

  test('the disks of replicas are asked as well, and a replica that falls behind acknowledges nothing', async () => {
    const { primary, replica } = await startPair({ program, fsync: 'always' }, { program, fsync: 'always' });
    const { store, queue } = open(primary, { replicaTimeoutMs: 2_000 });
    expect(await store.durability()).toMatchObject({
      confirmedBy: 1,
      survives: expect.stringContaining('a power cut of all machines') as string,
    });
    await queue.enqueue('q', one('a'));
    await connect(replica).config('SET', 'appendfsync', 'no');
    await expect(queue.enqueue('q', one('b'))).rejects.toMatchObject({
      ...notReplicated,
      message: 'the change is flushed by the server itself, and confirmed by 0 of 1 replicas in time',
    });
    await connect(replica).config('SET', 'appendfsync', 'always');
    await until(() => holds(() => queue.enqueue('q', one('b'))));
    expect(await queue.depth('q')).toMatchObject({ pending: 2 });
  });

  test('replicas that keep no append-only file are refused at start, unless their receipt is enough', async () => {
    const { primary, replica } = await startPair({ program, fsync: 'always' }, { program });
    const asked = open(primary, { silenceMs: 1_000 });
    await expect(asked.store.start()).rejects.toMatchObject(notDurable);
    const { queue, store } = open(primary, { confirm: 'receipt' });
    await queue.enqueue('q', one('a'));
    expect(await connect(replica).hlen('t:{q}:m')).toBe(1);
    expect(await store.durability()).toMatchObject({ confirmation: { by: 'receipt', replicas: 1 } });
  });

  test('by receipt, too, nothing is acknowledged by a connection that only finds it there', async () => {
    const { primary, replica } = await startPair({ program, fsync: 'always' }, { program });
    const options: Options = { confirm: 'receipt', replicaTimeoutMs: 2_000 };
    const [first, second] = [open(primary, options), open(primary, options)];
    await Promise.all([first.store.start(), second.store.start()]);
    await first.queue.enqueue('q', one('a'));
    await second.queue.depth('q');
    process.kill(replica.pid!, 'SIGSTOP');
    await expect(first.queue.enqueue('q', one('b'))).rejects.toMatchObject(notReplicated);
    await expect(second.queue.enqueue('q', one('b'))).rejects.toMatchObject(notReplicated);
    process.kill(replica.pid!, 'SIGCONT');
    await until(() => holds(() => second.queue.enqueue('q', one('b'))));
  });
});

describe.skipIf(!findRedisServer('redis-server'))(
  'a server without WAITAOF (needs redis-server on the PATH)',
  () => {
    test('a flush that was asked for by name is refused where nobody can tell of it', async () => {
      const server = await startServer({ program: 'redis-server', fsync: 'always' });
      const client = connect(server);
      const [command] = (await client.call('COMMAND', 'INFO', 'WAITAOF')) as unknown[];
      if (Array.isArray(command)) await open(server, { confirm: 'flush' }).store.start();
      else await expect(open(server, { confirm: 'flush' }).store.start()).rejects.toMatchObject(notDurable);
    });
  },
);
