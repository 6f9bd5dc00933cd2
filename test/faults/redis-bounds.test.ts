/**
 * No function of the redis store touches more than a bounded number of elements, however many messages there are in a state: counted
 * in what MONITOR shows of every call, not by a clock.
 */
import type { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { createQueue, type NewMessage, type Queue } from '../../src/queue/index.js';
import { createRedisQueueStore, type RedisQueueStore } from '../../src/queue/redis/index.js';
import { ManualClock } from '../../src/testing/manual-clock.js';
import { findRedisServer, type RedisServer, startRedisServer } from '../../src/testing/redis-server.js';

// Loads that run to their end on a busy machine.
vi.setConfig({ testTimeout: 150_000 });

/** Arguments of one command, and commands of one function: lua/keys.lua and the walks have a thousand members. */
const argumentsMax = 4_010;
const commandsMax = 6_000;
/** Arguments of all commands of one function: the thousand messages of a dequeue that stand in several indexes make 9,000. */
const elementsMax = 15_000;
const walkMax = 1_000;

const count = 10_000;

/** Watches the commands that functions issue. */
class Monitor {
  readonly #stream: Redis;
  readonly #client: Redis;
  /** By the text of an ECHO: who waits for the monitor to show it. */
  readonly #marks = new Map<string, () => void>();
  argumentsSeen = 0;
  commandsSeen = 0;
  rangeSeen = 0;
  elementsSeen = 0;
  #ofThisCall = 0;
  #elementsOfThisCall = 0;
  #total = 0;
  #looks = 0;

  private constructor(client: Redis, stream: Redis) {
    this.#client = client;
    this.#stream = stream;
    stream.on('monitor', (_time: string, args: string[], source: string) => this.#see(args, source));
  }

  static async start(client: Redis): Promise<Monitor> {
    return new Monitor(client, await client.monitor());
  }

  #see(args: readonly string[], source: string): void {
    if (source !== 'lua') {
      this.#ofThisCall = 0;
      this.#elementsOfThisCall = 0;
      if (/^echo$/i.test(args[0] ?? '')) this.#marks.get(args[1] ?? '')?.();
      return;
    }
    this.#ofThisCall += 1;
    this.#total += 1;
    this.commandsSeen = Math.max(this.commandsSeen, this.#ofThisCall);
    this.argumentsSeen = Math.max(this.argumentsSeen, args.length);
    this.#elementsOfThisCall += args.length;
    this.elementsSeen = Math.max(this.elementsSeen, this.#elementsOfThisCall);
    const [command = '', , from, to] = args;
    const limit = args.findIndex((arg) => arg === 'LIMIT');
    if (/^zrange$/i.test(command)) {
      const wanted = limit > 0 ? Number(args[limit + 2]) : Number(to) - Number(from) + 1;
      // A negative limit, like a negative end, is all that there is.
      this.rangeSeen = Math.max(this.rangeSeen, wanted < 0 ? Number.POSITIVE_INFINITY : wanted);
    }
  }

  /** Commands that functions have issued since the last look. */
  async sinceLastLook(): Promise<number> {
    // What MONITOR has to say arrives behind the answers, in the order of the calls.
    const mark = `mark ${(this.#looks += 1)}`;
    const seen = new Promise<void>((resolve) => this.#marks.set(mark, resolve));
    await this.#client.echo(mark);
    await seen;
    const total = this.#total;
    this.#total = 0;
    return total;
  }

  stop(): void {
    this.#stream.disconnect();
    this.#client.disconnect();
  }
}

describe.skipIf(!findRedisServer())('bounds of the redis store (needs redis-server on the PATH)', () => {
  let server: RedisServer;
  let store: RedisQueueStore;
  let queue: Queue;
  let monitor: Monitor;
  const clock = new ManualClock();

  beforeAll(async () => {
    server = await startRedisServer();
    store = createRedisQueueStore({ url: server.url, durability: 'none' });
    queue = createQueue({ store, clock });
    await store.start();
    monitor = await Monitor.start(server.connect());
  });
  afterAll(async () => {
    monitor.stop();
    await store.stop();
    await server.stop();
  });

  function fill(name: string, more: (number: number) => Partial<NewMessage>): Promise<unknown> {
    return queue.enqueue(
      name,
      Array.from({ length: count }, (_, number) => ({ id: `m${number}`, payload: {}, ...more(number) })),
    );
  }

  async function tidy(): Promise<number> {
    let rounds = 0;
    while ((await store.housekeep({ now: clock.storeNow() })).moved > 0) rounds += 1;
    return rounds;
  }

  test('Q42: many leases that end in one millisecond come back in steps', async () => {
    await fill('leases', () => ({}));
    while ((await queue.dequeue('leases', { count: 1_000, leaseMs: 1_000 })).length > 0);
    clock.advance(1_000);
    expect(await queue.dequeue('leases', { count: 1 })).toMatchObject([{ id: 'm0', attempts: 2 }]);
    expect(await queue.depth('leases')).toMatchObject({ pending: count - 1, running: 1 });
  });

  test('Q43: purge, list to the end, collection and requeue of many go in steps', async () => {
    await fill('many', (number) => ({ metadata: { kind: `k${number % 3}` }, attemptsMax: 1 }));
    for (;;) {
      const leases = await queue.dequeue('many', { count: 1_000 });
      if (leases.length === 0) break;
      await queue.fail(
        'many',
        leases.map((lease) => ({ ...lease, error: 'no' })),
      );
    }
    let listed = 0;
    for (let after: string | undefined; ; ) {
      const page = await queue.list('many', { state: 'errored', limit: 1_000, after });
      listed += page.messages.length;
      after = page.next;
      if (after === undefined) break;
    }
    expect(listed).toBe(count);
    const ids = Array.from({ length: count / 2 }, (_, number) => `m${number}`);
    expect((await queue.requeue('many', ids)).filter(({ kind }) => kind === 'requeued')).toHaveLength(
      count / 2,
    );
    expect(await queue.purge('many', 'pending')).toBe(count / 2);
    clock.advance(8 * 86_400_000);
    await tidy();
    expect(await queue.list('many', { state: 'errored' })).toMatchObject({ messages: [] });
  });

  test('Q40: a filter walks in steps past everything that does not match', async () => {
    await fill('filter', (number) => ({
      metadata: {
        region: number >= count - 3 ? 'us' : 'eu',
        kind: number >= count - 3 || number % 2 ? 'a' : 'b',
        far: 'x',
      },
    }));
    expect((await queue.dequeue('filter', { count: 5, where: { region: 'us', kind: 'a' } })).length).toBe(3);
    // Both pairs are frequent, and together they are nowhere.
    await queue.enqueue('filter', [{ id: 'one', payload: {}, metadata: { kind: 'c', far: 'x' } }]);
    await fill('filter-both', (number) => ({
      metadata: number % 2 ? { a: '1', b: '2' } : { a: '2', b: '1' },
    }));
    expect(await queue.dequeue('filter-both', { where: { a: '1', b: '1' } })).toEqual([]);
    expect(await queue.depth('filter-both', { a: '1', b: '2' })).toMatchObject({ pending: count / 2 });
    expect(await queue.oldest('filter-both', { a: '1', b: '2' })).toMatchObject({ id: 'm1' });
  });

  test('a value with many waiting messages is freed and taken without touching them', async () => {
    await queue.configure('values', { type: { kind: 'exclusive', key: 'user' } });
    await fill('values', () => ({ metadata: { user: 'u' } }));
    await queue.enqueue('values', [{ id: 'free', payload: {}, metadata: { user: 'v' } }]);
    const [lease] = await queue.dequeue('values', { count: 1 });
    expect(lease).toMatchObject({ id: 'm0' });
    expect((await queue.dequeue('values', { count: 10 })).map(({ id }) => id)).toEqual(['free']);
    await queue.complete('values', [lease!]);
    expect((await queue.dequeue('values', { count: 10 })).map(({ id }) => id)).toEqual(['m1']);
  });

  test('blocked messages are in the way of a filter once, not at every dequeue', async () => {
    await queue.configure('both', { type: { kind: 'exclusive', key: 'user' } });
    await fill('both', () => ({ metadata: { user: 'u', tenant: 't' } }));
    await queue.enqueue(
      'both',
      Array.from({ length: 20 }, (_, number) => ({
        id: `free${number}`,
        payload: {},
        metadata: { user: `v${number}`, tenant: 't' },
      })),
    );
    const where = { tenant: 't' };
    const [blocking] = await queue.dequeue('both', { where });
    expect(blocking).toMatchObject({ id: 'm0' });
    expect(await queue.dequeue('both', { where })).toMatchObject([{ id: 'free0' }]);
    await monitor.sinceLastLook();
    for (let round = 1; round < 11; round += 1)
      expect(await queue.dequeue('both', { where })).toMatchObject([{ id: `free${round}` }]);
    expect(await monitor.sinceLastLook()).toBeLessThan(10 * 40);
    expect(await queue.depth('both', where)).toMatchObject({ pending: count + 20 - 12, running: 12 });
    await queue.complete('both', [blocking!]);
    expect(await queue.dequeue('both', { where, count: 2 })).toMatchObject([{ id: 'm1' }, { id: 'free11' }]);
  });

  test('an empty dequeue asks the server four things, and looks for what came due only now and then', async () => {
    // By the server's clock: the looks are rationed by it.
    const ask = () =>
      store.dequeue({
        queue: 'empty',
        count: 1,
        where: {},
        leaseMs: undefined,
        requestId: `r${Math.random()}`,
        worker: undefined,
        now: undefined,
      });
    await ask();
    await monitor.sinceLastLook();
    for (let call = 0; call < 200; call += 1) await ask();
    // The time of 200 calls leaves room for some looks.
    expect(await monitor.sinceLastLook()).toBeLessThan(200 * 5);
    // Those that come at once ask together.
    await Promise.all(Array.from({ length: 200 }, ask));
    expect(await monitor.sinceLastLook()).toBeLessThan(10);
  });

  test('in all of this no function went past its bounds', () => {
    expect(monitor.commandsSeen).toBeGreaterThan(5);
    expect(monitor.argumentsSeen).toBeLessThanOrEqual(argumentsMax);
    expect(monitor.commandsSeen).toBeLessThanOrEqual(commandsMax);
    expect(monitor.rangeSeen).toBeLessThanOrEqual(walkMax);
    expect(monitor.elementsSeen).toBeLessThanOrEqual(elementsMax);
  });
});
