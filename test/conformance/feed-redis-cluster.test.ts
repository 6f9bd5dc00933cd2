/**
 * The feed with its timelines in a Redis Cluster of three primaries and three replicas: parts of the suite, random worlds, calls a
 * bucket, slots on their way, and a primary that dies.
 */
import { describe, expect, test } from 'vitest';
import type { RedisServer } from '../../src/testing/redis-server.js';
import { findRedisServer } from '../../src/testing/redis-server.js';
import { idsOf, walkOlder } from '../../src/testing/feed-world.js';
import { RandomFeedWorld, runRandomWorld } from '../simulation/feed-random-world.js';

process.env['HEADGATE_FEED_SUITE_ON_CLUSTER'] = '1';
const { databases, sharedCluster, useWorlds } = await import('./feed/worlds.js');
await import('./feed/basics.test.js');
await import('./feed/holes.test.js');

describe.skipIf(!findRedisServer())('needs redis-server on the PATH', () => {
  describe.each(databases)('a feed on $name', (on) => {
    const open = useWorlds(on);
    const readers = Array.from({ length: 60 }, (_, number) => `r${number}`);

    const follow = async () => {
      const world = await open({ threshold: { pullFrom: 1_000, pushBelow: 900 } });
      await world.accounts(...readers, 'a');
      await world.feed.importFollows(readers.map((reader) => [reader, 'a'] as const));
      for (const reader of readers) await world.open(reader);
      world.clock.advance(120_000);
      await world.worker.keepHouse();
      return world;
    };

    test.each([2])('seed %i equals the oracle', async (seed) => {
      await runRandomWorld(await open(RandomFeedWorld.options(seed)), seed);
    });

    test('64 buckets a primary: a batch is one call for each bucket it meets, on all primaries', async () => {
      const world = await follow();
      const { lists } = world.timelines;
      expect(await lists!.bucketsWanted(undefined)).toBe(192);
      const numbers = await world.context.store.resolve(world.database, readers);
      const buckets = new Set([...numbers.values()].map(({ number }) => Number(number) % 192));
      const pushed = await lists!.push({
        post: String((BigInt(world.clock.now()) << 20n) + 1n),
        readers: [...numbers.values()].map(({ number }) => number),
        entriesMax: 800,
        slack: 64,
      });
      expect([pushed.written, pushed.calls, pushed.servers.length]).toEqual([60, buckets.size, 3]);
    });

    test('while slots move to another primary, everything arrives and homes are right', async () => {
      const world = await follow();
      const cluster = await sharedCluster()!;
      const [target] = cluster.servers as [RedisServer];
      const ids: string[] = [];
      const numbers = [...(await world.context.store.resolve(world.database, readers)).values()];
      const slotsOf = await import('../../src/feed/redis/slots.js');
      const slots = numbers.map(({ number }) => slotsOf.slotOfTag(String(Number(number) % 192)));
      const elsewhere: number[] = [];
      for (const slot of slots) if ((await cluster.primaryOf(slot)) !== target) elsewhere.push(slot);
      const moving = (async () => {
        for (const slot of elsewhere.slice(0, 4)) await cluster.moveSlot(slot, target);
      })();
      for (let number = 0; number < 5; number += 1) {
        world.clock.advance(1);
        ids.unshift((await world.feed.publish({ author: 'a', text: 'x' })).post.id);
        await world.drain();
      }
      await moving;
      await world.drain();
      for (const reader of readers) expect(idsOf(await walkOlder(world.feed, reader, 20))).toEqual(ids);
      const live = async () => {
        const homes = await Promise.all(readers.map((reader) => world.feed.home({ reader })));
        await world.drain();
        return homes.every(({ sources }) => sources.timeline === 'live');
      };
      await expect.poll(live).toBe(true);
    });

    test('vacuum leaves no key of inactive and erased readers behind, on any primary', async () => {
      const world = await follow();
      await world.feed.eraseAccount('r0');
      await world.drain();
      world.clock.advance(31 * 86_400_000);
      await world.open('r1');
      await world.feed.vacuum();
      expect(await world.timelines.readers()).toBe(1);
    });

    // The last one: afterwards the Cluster has two primaries fewer replicas.
    test('a primary dies, its replica takes over, and homes are right at every moment', async () => {
      const world = await follow();
      const cluster = await sharedCluster()!;
      const ids: string[] = [];
      const publish = async () => {
        world.clock.advance(1);
        ids.unshift((await world.feed.publish({ author: 'a', text: 'x' })).post.id);
      };
      for (let number = 0; number < 5; number += 1) await publish();
      await world.drain();
      await cluster.servers[1]!.kill();
      await publish();
      // Nothing is pushed now; late posts are merged.
      world.clock.advance(5_001);
      for (const reader of readers.slice(0, 12))
        expect(idsOf(await walkOlder(world.feed, reader, 20)), reader).toEqual(ids);
      await expect
        .poll(
          () =>
            world.timelines.lists!.servers().then(
              (servers) => servers.length,
              () => 0,
            ),
          {
            timeout: 40_000,
          },
        )
        .toBe(3);
      // The servers are others: nobody is believed until they are adopted.
      await world.worker.keepHouse();
      const homes = async () => {
        await world.drain().catch(() => 0);
        const pages = await Promise.all(readers.map((reader) => world.feed.home({ reader })));
        for (const page of pages) expect(idsOf([page])).toEqual(ids);
        return pages.filter(({ sources }) => sources.timeline === 'live').length;
      };
      await expect.poll(homes, { timeout: 40_000, interval: 200 }).toBe(readers.length);
    });
  });
});
