/**
 * Random worlds against the oracle: whatever was done and in whatever order the work ran, a drained home equals brute
 * force, walked page by page in both directions; hides and own posts equal it at every moment.
 *
 * Twenty worlds, each on one of the stores in turn; a thousand with HEADGATE_LONG=1, and HEADGATE_SEEDS=101-200 for a part of them.
 * Replay one, on every store: HEADGATE_SEED=123 npx vitest run test/simulation/feed-world.test.ts
 */
import { describe, test } from 'vitest';
import { databases, useWorlds } from '../conformance/feed/worlds.js';
import { RandomFeedWorld, runRandomWorld } from './feed-random-world.js';

const given = process.env['HEADGATE_SEED'];
const range = process.env['HEADGATE_SEEDS'] ?? (process.env['HEADGATE_LONG'] === '1' ? '1-1000' : '1-20');
const [first, last] = range.split('-').map(Number) as [number, number];
const seeds = given ? [Number(given)] : Array.from({ length: last - first + 1 }, (_, index) => first + index);

describe.each(databases)('a random world on $name', (on) => {
  const world = useWorlds(on);
  const own = seeds.filter((seed) => given || seed % databases.length === databases.indexOf(on));

  test.skipIf(own.length === 0).each(own.length === 0 ? [0] : own)(
    'seed %i equals the oracle',
    async (seed) => {
      await runRandomWorld(await world(RandomFeedWorld.options(seed)), seed);
    },
  );
});
