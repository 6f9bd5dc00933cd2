/**
 * Random worlds against the oracle: whatever was done and in whatever order the work ran, a drained home equals brute
 * force, walked page by page in both directions; hides and own posts equal it at every moment.
 *
 * Replay one: HEADGATE_SEED=123 npx vitest run test/simulation/feed-world.test.ts
 */
import { describe, test } from 'vitest';
import { databases, useWorlds } from '../conformance/feed/worlds.js';
import { RandomFeedWorld, runRandomWorld } from './feed-random-world.js';

const long = process.env['HEADGATE_LONG'] === '1';
const given = process.env['HEADGATE_SEED'];
const seeds = given ? [Number(given)] : Array.from({ length: long ? 1_000 : 8 }, (_, index) => index + 1);

describe.each(databases)('a random world on $name', (on) => {
  const world = useWorlds(on);

  // With timelines in Redis half as many: the store of everything else is the same.
  const few = on.timelines === 'table' || long || given ? seeds : seeds.slice(0, 4);
  test.each(few)('seed %i equals the oracle', async (seed) => {
    await runRandomWorld(await world(RandomFeedWorld.options(seed)), seed);
  });
});
