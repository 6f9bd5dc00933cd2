/**
 * Timelines as lists in Redis, by themselves: against a model, and what each call touches. The feed on top of them runs the whole
 * suite of test/conformance/feed.
 */
import type { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { seededRandom } from '../../src/feed/index.js';
import { createRedisTimelines, type RedisTimelinesOptions } from '../../src/feed/redis/index.js';
import type { TimelineLists } from '../../src/feed/store.js';
import { findRedisServer, type RedisServer, startRedisServer } from '../../src/testing/redis-server.js';

const bounds = { entriesMax: 800, slack: 64 };
const keptMs = 3_600_000;
const largest = '9223372036854775807';
const idOf = (number: number) => String(1_835_008_000_000_000_000n + BigInt(number));
const newestFirst = (ids: readonly string[]) => ids.toSorted().toReversed();

describe.skipIf(!findRedisServer())('timelines in Redis (needs redis-server on the PATH)', () => {
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

  async function timelines(options: Partial<RedisTimelinesOptions> & { buckets?: number } = {}) {
    const prefix = `lists:${(prefixes += 1)}`;
    const lists = createRedisTimelines({ url: server.url, prefix, ...options } as RedisTimelinesOptions);
    open.push(lists);
    await lists.start();
    const buckets = options.buckets ?? 1;
    lists.useBuckets(buckets);
    const keyOf = (reader: string) => `${prefix}:{${Number(reader) % buckets}}:${reader}`;
    return { lists, keyOf };
  }

  async function live(lists: TimelineLists, readers: readonly string[], ids: readonly string[] = []) {
    for (const reader of readers) {
      await lists.begin({ reader, token: '1', keptMs });
      if (ids.length > 0) await lists.merge({ reader, token: '1', ids, floor: '0', entriesMax: 800, keptMs });
    }
  }

  const all = async (lists: TimelineLists, reader: string) =>
    (await lists.read({ reader, position: largest, older: true, count: 10_000 }))?.ids;

  /** Commands that the server has run since, by name. */
  async function commandsOf(work: () => Promise<unknown>): Promise<Record<string, number>> {
    await client.config('RESETSTAT');
    await work();
    const info = await client.info('commandstats');
    const counts = [...info.matchAll(/^cmdstat_(\w+):calls=(\d+)/gm)];
    return Object.fromEntries(counts.map(([, name, calls]) => [name, Number(calls)]));
  }

  test.each([1, 2, 3, 4])(
    'seed %i: pushes, merges, removals and reads in any order equal the model',
    async (seed) => {
      const random = seededRandom(seed);
      const below = (count: number) => Math.floor(random() * count);
      const { lists } = await timelines();
      const reader = '7';
      let model: { ids: Set<string>; floor: string; token: string } | undefined;
      let token = 0;
      const small = { entriesMax: 20, slack: 5 };
      const trim = () => {
        if (!model) return;
        const ids = newestFirst([...model.ids]);
        model.floor = ids[small.entriesMax] ?? model.floor;
        model.ids = new Set(ids.slice(0, small.entriesMax));
      };
      for (let step = 0; step < 400; step += 1) {
        const dice = random();
        const note = `seed ${seed}, step ${step}`;
        if (dice < 0.03) {
          token += 1;
          await lists.begin({ reader, token: String(token), keptMs });
          model = { ids: new Set(), floor: '0', token: String(token) };
        } else if (dice < 0.05) {
          await lists.drop([reader]);
          model = undefined;
        } else if (dice < 0.15) {
          const ids = newestFirst([
            ...new Set(Array.from({ length: below(30) }, () => idOf(below(200) + step))),
          ]);
          const floor = random() < 0.3 ? idOf(below(100) + step) : '0';
          const merged = await lists.merge({
            reader,
            token: String(token),
            ids,
            floor,
            entriesMax: 20,
            keptMs,
          });
          expect(merged === undefined, note).toBe(model === undefined);
          if (!model) continue;
          if (floor > model.floor) model.floor = floor;
          const { ids: held, floor: bottom } = model;
          model.ids = new Set([...held, ...ids].filter((id) => id > bottom));
          trim();
        } else if (dice < 0.25) {
          const list = await lists.read({ reader, position: largest, older: true, count: 100 });
          if (!list || !model) continue;
          const ids = list.ids.filter(() => random() < 0.2);
          expect(await lists.remove({ reader, ...list, ids }), note).toBe(ids.length);
          for (const id of ids) model.ids.delete(id);
        } else {
          const post = idOf(below(200) + step);
          const { written } = await lists.push({ post, readers: [reader], ...small });
          const isNew = model !== undefined && !model.ids.has(post) && post > model.floor;
          expect(written, note).toBe(isNew ? 1 : 0);
          if (isNew) model?.ids.add(post);
          if (model && model.ids.size > small.entriesMax + small.slack) trim();
        }
        const position = random() < 0.2 ? (random() < 0.5 ? largest : '5') : idOf(below(250) + step);
        const older = random() < 0.5;
        const count = 1 + below(30);
        const list = await lists.read({ reader, position, older, count });
        if (!model) {
          expect(list, note).toBeUndefined();
          continue;
        }
        const isBeyond = (id: string) =>
          older ? BigInt(id) < BigInt(position) : BigInt(id) > BigInt(position);
        const beyond = newestFirst([...model.ids]).filter(isBeyond);
        const nearest = older ? beyond : beyond.toReversed();
        expect(list?.ids, note).toEqual(nearest.slice(0, count));
        expect([list?.more, list?.floor, list?.token], note).toEqual([
          nearest.length > count,
          model.floor,
          model.token,
        ]);
      }
    },
  );

  test('what all lists take is estimated from some of them, whatever else is on the server', async () => {
    const own = await startRedisServer();
    const ownClient = own.connect();
    const lists = createRedisTimelines({ url: own.url });
    open.push(lists);
    lists.useBuckets(1);
    expect(await lists.bytes()).toBe(0);
    const readers = Array.from({ length: 1_500 }, (_, number) => String(number + 1));
    await live(lists, readers, [idOf(3), idOf(2), idOf(1)]);
    for (let number = 0; number < 500; number += 1)
      await ownClient.set(`other:${number}`, 'x'.repeat(10_000));
    const each = Number(await ownClient.memory('USAGE', 'headgate-feed:{0}:7', 'SAMPLES', 0));
    const share = (await lists.bytes()) / (1_500 * each);
    expect(share).toBeGreaterThan(0.8);
    expect(share).toBeLessThan(1.2);
    ownClient.disconnect();
    await own.stop();
  });

  test('a batch of 1,000 readers is one call, and a newest post one command each', async () => {
    const { lists } = await timelines();
    const readers = Array.from({ length: 1_000 }, (_, number) => String(number + 1));
    await live(lists, readers, [idOf(1)]);
    let pushed: Awaited<ReturnType<TimelineLists['push']>> | undefined;
    const commands = await commandsOf(async () => {
      pushed = await lists.push({ post: idOf(2), readers, ...bounds });
    });
    expect(pushed).toMatchObject({ written: 1_000, late: 0, calls: 1 });
    expect((commands['evalsha'] ?? 0) + (commands['eval'] ?? 0)).toBeLessThanOrEqual(2);
    expect(commands).toMatchObject({ lindex: 1_000, lpushx: 1_000 });
    const again = await commandsOf(async () => {
      pushed = await lists.push({ post: idOf(2), readers, ...bounds });
    });
    expect(pushed).toMatchObject({ written: 0, calls: 1 });
    expect(again).toMatchObject({ evalsha: 1, lindex: 1_000 });
    expect([again['lpushx'], again['linsert'], again['ltrim']]).toEqual([undefined, undefined, undefined]);
  });

  test('more than 1,000 readers are several calls, of 1,000 entries at most', async () => {
    const { lists } = await timelines();
    const readers = Array.from({ length: 2_500 }, (_, number) => String(number + 1));
    await live(lists, readers.slice(0, 3));
    expect(await lists.push({ post: idOf(2), readers, ...bounds })).toMatchObject({ written: 3, calls: 3 });
  });

  test('a call stops before its 33rd insertion behind newer entries, and the next one goes on there', async () => {
    const { lists } = await timelines();
    const readers = Array.from({ length: 120 }, (_, number) => String(number + 1));
    await live(lists, readers, [idOf(30), idOf(10)]);
    expect(await lists.push({ post: idOf(20), readers, ...bounds })).toMatchObject({
      written: 120,
      late: 120,
      calls: 4,
    });
    for (const reader of readers) expect(await all(lists, reader)).toEqual([idOf(30), idOf(20), idOf(10)]);
  });

  test('a late entry is found its place by halves, and one that is late by a few in one look', async () => {
    const { lists } = await timelines();
    const ids = Array.from({ length: 800 }, (_, number) => idOf(10_000 - 10 * number));
    await live(lists, ['1'], ids);
    const deep = await commandsOf(() => lists.push({ post: idOf(4_005), readers: ['1'], ...bounds }));
    expect(deep['lindex']).toBeLessThanOrEqual(13);
    const near = await commandsOf(() => lists.push({ post: idOf(9_955), readers: ['1'], ...bounds }));
    expect(near).toMatchObject({ lindex: 1, lrange: 1, linsert: 1 });
    expect((await all(lists, '1'))?.length).toBe(802);
  });

  test('a list is trimmed when the slack is used up, once for many entries, and its floor says so', async () => {
    const { lists } = await timelines();
    await live(lists, ['1']);
    const ids = Array.from({ length: 31 }, (_, number) => idOf(number));
    const commands = await commandsOf(async () => {
      for (const post of ids) await lists.push({ post, readers: ['1'], entriesMax: 10, slack: 5 });
    });
    // At 16, 22 and 28.
    expect(commands['ltrim']).toBe(3);
    const list = await lists.read({ reader: '1', position: largest, older: true, count: 100 });
    expect([list?.ids, list?.floor]).toEqual([newestFirst(ids.slice(18)), idOf(17)]);
    expect(await lists.push({ post: idOf(17), readers: ['1'], ...bounds })).toMatchObject({ written: 0 });
  });

  test.each(['string', 'hash', 'zset', 'list', 'set'])(
    'F48 a %s under the key is no timeline, harms nobody, and is replaced by a build',
    async (type) => {
      const { lists, keyOf } = await timelines();
      await live(lists, ['1', '3']);
      const key = keyOf('2');
      if (type === 'string') await client.set(key, 'x');
      if (type === 'hash') await client.hset(key, 'a', 'b');
      if (type === 'zset') await client.zadd(key, 1, idOf(1));
      if (type === 'set') await client.sadd(key, idOf(1));
      if (type === 'list') await client.rpush(key, idOf(3), 'x');
      expect(await lists.read({ reader: '2', position: largest, older: true, count: 5 })).toBeUndefined();
      const { written } = await lists.push({ post: idOf(2), readers: ['1', '2', '3'], ...bounds });
      // Whether a list has a marker is seen when it is read and when it is trimmed.
      expect(written).toBe(type === 'list' ? 3 : 2);
      expect(
        await lists.merge({ reader: '2', token: '1', ids: [], floor: '0', entriesMax: 800, keptMs }),
      ).toBeUndefined();
      await live(lists, ['2'], [idOf(2)]);
      expect(await all(lists, '2')).toEqual([idOf(2)]);
    },
  );

  test('F48 a list of somebody else’s under the key does not grow for ever', async () => {
    const { lists, keyOf } = await timelines();
    await client.rpush(keyOf('1'), idOf(0));
    for (let number = 1; number <= 16; number += 1)
      await lists.push({ post: idOf(number), readers: ['1'], entriesMax: 10, slack: 5 });
    expect(await client.exists(keyOf('1'))).toBe(0);
  });

  test('a build of before neither replaces a later one nor fills it', async () => {
    const { lists } = await timelines();
    await lists.begin({ reader: '1', token: '10', keptMs });
    await lists.begin({ reader: '1', token: '9', keptMs });
    const input = { reader: '1', ids: [idOf(1)], floor: '0', entriesMax: 800, keptMs };
    expect(await lists.merge({ ...input, token: '9' })).toBeUndefined();
    expect(await lists.merge({ ...input, token: '10' })).toMatchObject({ added: 1 });
  });

  test('ids read before a change are not taken out after it', async () => {
    const { lists } = await timelines();
    await live(lists, ['1'], [idOf(1)]);
    const list = await lists.read({ reader: '1', position: largest, older: true, count: 5 });
    await lists.merge({ reader: '1', token: '1', ids: [idOf(1)], floor: '0', entriesMax: 800, keptMs });
    expect(await lists.remove({ reader: '1', ...list!, ids: [idOf(1)] })).toBe(0);
    expect(await all(lists, '1')).toEqual([idOf(1)]);
  });

  test('every list expires by itself, whatever has been done to it', async () => {
    const { lists, keyOf } = await timelines();
    await live(lists, ['1'], [idOf(1), idOf(0)]);
    const expires = async () => {
      const left = await client.pttl(keyOf('1'));
      expect(left).toBeGreaterThan(0);
      expect(left).toBeLessThanOrEqual(keptMs);
    };
    await expires();
    await lists.push({ post: idOf(2), readers: ['1'], entriesMax: 1, slack: 0 });
    await expires();
    const list = await lists.read({ reader: '1', position: largest, older: true, count: 5 });
    await lists.remove({ reader: '1', ...list!, ids: [idOf(2)] });
    await expires();
    await lists.renew({ reader: '1', keptMs: 10 * keptMs });
    expect(await client.pttl(keyOf('1'))).toBeGreaterThan(keptMs);
  });

  test('800 entries with their marker take at most a ninth of a sorted set of the same', async () => {
    const { lists, keyOf } = await timelines();
    const ids = Array.from({ length: 800 }, (_, number) =>
      String(BigInt(idOf(0)) + BigInt(number * 1_234_567)),
    );
    await live(lists, ['1'], newestFirst(ids));
    await client.zadd('sorted', ...ids.flatMap((id) => [Number(BigInt(id) >> 20n), id]));
    const size = async (key: string) => Number(await client.call('MEMORY', 'USAGE', key, 'SAMPLES', '0'));
    expect((await size('sorted')) / (await size(keyOf('1')))).toBeGreaterThanOrEqual(9);
  });

  test('buckets spread the readers, a batch is a call for each, and a scan finds all and no leftovers', async () => {
    const { lists, keyOf } = await timelines({ buckets: 8 });
    const readers = Array.from({ length: 40 }, (_, number) => String(number + 1));
    await live(lists, readers);
    expect(await lists.push({ post: idOf(1), readers, ...bounds })).toMatchObject({ written: 40, calls: 8 });
    const leftover = keyOf('3').replace('{3}', '{5}');
    await client.rpush(leftover, '#1.0.0');
    const found: string[] = [];
    let position: string | undefined = '0';
    while (position !== undefined) {
      const step = await lists.scan(position);
      found.push(...step.readers);
      position = step.position;
    }
    expect(found.toSorted()).toEqual(readers.toSorted());
    expect(await client.exists(leftover)).toBe(0);
    expect(await lists.count(readers)).toBe(40);
    await lists.drop(readers);
    expect(await lists.count(readers)).toBe(0);
  });

  test('a server that has lost the scripts gets them again with the call', async () => {
    const { lists } = await timelines();
    await live(lists, ['1']);
    await client.script('FLUSH');
    expect(await lists.push({ post: idOf(1), readers: ['1'], ...bounds })).toMatchObject({ written: 1 });
  });

  test.each([
    ['buckets', { buckets: 0 }],
    ['prefix', { prefix: 'a b' }],
    ['timeoutMs', { timeoutMs: 1.5 }],
    ['url', { cluster: [{ port: 1 }] }],
  ])('a bad %s is refused by name', (field, options) => {
    const given = { url: 'redis://localhost', ...options } as RedisTimelinesOptions;
    expect(() => createRedisTimelines(given)).toThrow(
      expect.objectContaining({ code: 'invalid-input', field }),
    );
  });
});
