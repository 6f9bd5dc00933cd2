/** Pushes into timelines in Redis that are in hand at once: they go out together, and the lists hold what each alone would make. */
import type { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { seededRandom } from '../../src/feed/index.js';
import { createRedisTimelines } from '../../src/feed/redis/index.js';
import type { TimelineLists } from '../../src/feed/store.js';
import { findRedisServer, type RedisServer, startRedisServer } from '../../src/testing/redis-server.js';

const bounds = { entriesMax: 800, slack: 64 };
const keptMs = 3_600_000;
const largest = '9223372036854775807';
const idOf = (number: number) => String(1_835_008_000_000_000_000n + BigInt(number));
const newestFirst = (ids: Iterable<string>) => [...ids].toSorted().toReversed();
const numbered = (count: number) => Array.from({ length: count }, (_, number) => String(number + 1));

describe.skipIf(!findRedisServer())('pushes in hand at once (needs redis-server on the PATH)', () => {
  let server: RedisServer;
  let client: Redis;
  const open: TimelineLists[] = [];
  let prefixes = 0;
  beforeAll(async () => {
    server = await startRedisServer();
    client = server.connect();
  });
  afterEach(async () => {
    for (const lists of open.splice(0)) await lists.stop();
  });
  afterAll(async () => {
    client.disconnect();
    await server.stop();
  });

  async function timelines(readers: readonly string[], { ids = [idOf(0)], buckets = 1 } = {}) {
    const lists = createRedisTimelines({ url: server.url, prefix: `joined:${(prefixes += 1)}` });
    open.push(lists);
    lists.useBuckets(buckets);
    for (const reader of readers) {
      await lists.begin({ reader, token: '1', keptMs });
      if (ids.length > 0) await lists.merge({ reader, token: '1', ids, floor: '0', entriesMax: 800, keptMs });
    }
    return lists;
  }

  const all = async (lists: TimelineLists, reader: string) =>
    (await lists.read({ reader, position: largest, older: true, count: 10_000 }))?.ids;

  async function commandsOf(work: () => Promise<unknown>): Promise<Record<string, number>> {
    await client.config('RESETSTAT');
    await work();
    const counts = (await client.info('commandstats')).matchAll(/^cmdstat_(\w+):calls=(\d+)/gm);
    return Object.fromEntries([...counts].map(([, name, calls]) => [name, Number(calls)]));
  }

  test('whatever their order, a timeline takes them as one command and none of them late', async () => {
    const readers = numbered(100);
    const lists = await timelines(readers);
    const posts = [5, 2, 8, 1, 7, 3, 6, 4].map(idOf);
    let pushed: Awaited<ReturnType<TimelineLists['push']>>[] = [];
    await lists.push({ post: idOf(0), readers, ...bounds });
    const commands = await commandsOf(async () => {
      pushed = await Promise.all(posts.map((post) => lists.push({ post, readers, ...bounds })));
    });
    expect(commands).toMatchObject({ evalsha: 1, lpushx: 100 });
    expect(commands).not.toHaveProperty('linsert');
    expect(pushed.map(({ written, late, calls }) => [written, late, calls])).toEqual(
      posts.map(() => [100, 0, 1]),
    );
    expect(await all(lists, '7')).toEqual([8, 7, 6, 5, 4, 3, 2, 1, 0].map(idOf));
  });

  test('no call carries more than 1,000 entries', async () => {
    const readers = numbered(150);
    const lists = await timelines(readers);
    const posts = Array.from({ length: 20 }, (_, number) => idOf(number + 1));
    const commands = await commandsOf(() =>
      Promise.all(posts.map((post) => lists.push({ post, readers, ...bounds }))),
    );
    expect((commands['evalsha'] ?? 0) + (commands['eval'] ?? 0)).toBeGreaterThanOrEqual(3);
    // 3,000 entries, 50 timelines a call.
    expect(commands).toMatchObject({ lpushx: 150 });
    for (const reader of ['1', '75', '150']) expect(await all(lists, reader)).toHaveLength(21);
  });

  test('some of them late: each at its place, below the floor none', async () => {
    const lists = await timelines(['1', '2', '3'], { ids: [30, 20, 10].map(idOf) });
    await lists.merge({ reader: '2', token: '1', ids: [], floor: idOf(15), entriesMax: 800, keptMs });
    const posts = [5, 10, 12, 25, 30, 35, 40].map(idOf);
    const push = (post: string) => lists.push({ post, readers: ['1', '2', '4'], ...bounds });
    const pushed = await Promise.all(posts.map(push));
    expect(pushed.map(({ written, late }) => [written, late])).toEqual([
      [1, 1],
      [0, 0],
      [1, 1],
      [2, 2],
      [0, 0],
      [2, 0],
      [2, 0],
    ]);
    expect(await all(lists, '1')).toEqual([40, 35, 30, 25, 20, 12, 10, 5].map(idOf));
    expect(await all(lists, '2')).toEqual([40, 35, 30, 25, 20].map(idOf));
    expect(await all(lists, '3')).toEqual([30, 20, 10].map(idOf));
  });

  test('a call stops for others after 32 late entries, and the rest goes on', async () => {
    const readers = numbered(60);
    const ids = newestFirst(Array.from({ length: 100 }, (_, number) => idOf(number * 10)));
    const lists = await timelines(readers, { ids });
    const posts = [955, 945, 15, 985].map(idOf);
    const pushed = await Promise.all(posts.map((post) => lists.push({ post, readers, ...bounds })));
    for (const { written, late, calls } of pushed) {
      expect([written, late]).toEqual([60, 60]);
      expect(calls).toBeGreaterThanOrEqual(7);
    }
    for (const reader of readers) expect(await all(lists, reader)).toEqual(newestFirst([...ids, ...posts]));
  });

  test.each([1, 2, 3, 4])(
    'seed %i: many at once, for readers of all kinds, equal the model',
    async (seed) => {
      const random = seededRandom(seed);
      const readers = numbered(40);
      const buckets = seed % 2 === 0 ? 1 : 3;
      const lists = await timelines(readers, { ids: [], buckets });
      const model = new Map(readers.map((reader) => [reader, new Set<string>()]));
      for (let round = 0; round < 12; round += 1) {
        const pushes = Array.from({ length: 1 + Math.floor(random() * 12) }, () => {
          const share = random();
          return {
            post: idOf(round * 20 + Math.floor(random() * 60)),
            readers: [...readers, '41', '42'].filter(() => random() < share),
          };
        });
        const expected = new Map<string, number>();
        for (const { post, readers: takers } of pushes) {
          for (const reader of takers) {
            const held = model.get(reader);
            if (!held || held.has(post)) continue;
            held.add(post);
            expected.set(post, (expected.get(post) ?? 0) + 1);
          }
        }
        const written = new Map<string, number>();
        await Promise.all(
          pushes.map(async (push) => {
            const pushed = await lists.push({ ...push, ...bounds });
            if (pushed.written > 0) written.set(push.post, (written.get(push.post) ?? 0) + pushed.written);
          }),
        );
        expect([...written].toSorted(), `seed ${seed}, round ${round}`).toEqual([...expected].toSorted());
      }
      for (const reader of readers)
        expect(await all(lists, reader), `seed ${seed}, reader ${reader}`).toEqual(
          newestFirst(model.get(reader) ?? []),
        );
    },
  );
});
