/**
 * The comparison with the oracle is tested itself: with a fault planted into the feed, some random world must differ.
 */
import { readFile } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import type { FeedWorld } from '../../src/testing/feed-world.js';
import { databases, useWorlds } from '../conformance/feed/worlds.js';
import { RandomFeedWorld, runRandomWorld } from './feed-random-world.js';

/** Those of the hybrid, which most faults need: multiples of 7 pull everything, the ones after them push everything. */
const seeds = Array.from({ length: 26 }, (_, index) => index + 2).filter((seed) => seed % 7 > 1);
/** Every second world has timelines of a few entries, so that much lies past their end. */
const optionsOf = (seed: number) => ({
  ...RandomFeedWorld.options(seed),
  ...(seed % 2 === 0 && { timeline: { entriesMax: 4, slack: 2 } }),
});

/** Texts of the functions that read a home, and what stands in their place. */
const faults: Readonly<Record<string, readonly [string, string]>> = {
  'authors whose mode switched or fan-out failed are not merged': [
    'and exists (select 1 from {{schema}}.follows f where f.follower = p_reader and f.followee = a.account)',
    'and false',
  ],
  'a timeline whose entries were lost counts as live': [
    'exists (select 1 from {{schema}}.timeline t where t.reader = r.account and t.post = -r.token)',
    'true',
  ],
  'nothing is read past the end of the timeline': [
    'if p_floor > 0 and cardinality(recent)',
    'if p_floor = 9223372036854775807 and cardinality(recent)',
  ],
  'merged authors are asked for too little': [
    'greatest(p_floor, coalesce(recent[p_count], 0))',
    'greatest(p_floor, coalesce(recent[1], 0))',
  ],
  'an entry of an unfollowed author is shown': [
    'where (p.author = p_reader or exists (',
    'where (true or exists (',
  ],
  'an original is shown at every repost': ['elsif first = p_id then', 'else'],
  'deleted originals are shown': ['o.id = p_original and o.deleted_at is null', 'o.id = p_original'],
};

const files = ['0002-visible.sql', '0003-candidates.sql', '0006-home.sql'];

/** Each function by name. */
async function functionsNow(): Promise<ReadonlyMap<string, string>> {
  const functions = new Map<string, string>();
  for (const name of files) {
    const file = new URL(`../../src/feed/postgres/migrations/${name}`, import.meta.url);
    const text = await readFile(file, 'utf8');
    for (const found of text.matchAll(/create (?:or replace )?(function (\S+)\([\s\S]*?\$\$;)/g))
      functions.set(found[2] ?? '', `create or replace ${found[1]}`);
  }
  return functions;
}

async function plant(world: FeedWorld, [from, to]: readonly [string, string]): Promise<void> {
  const faulty = [...(await functionsNow()).values()].filter((text) => text.includes(from));
  expect(faulty.length, 'functions with the text of the fault').toBeGreaterThan(0);
  const script = faulty.map((text) => text.replaceAll(from, to)).join('\n');
  await world.database.script(script.replaceAll('{{schema}}', `"${world.schema}"`));
}

const pglite = databases.filter(({ name }) => name === 'pglite');

describe.each(pglite)('a planted fault on $name', (on) => {
  const world = useWorlds(on);

  test.each([2, 4, 6])(
    'is not found where there is none: seed %i',
    async (seed) => {
      await runRandomWorld(await world(optionsOf(seed)), seed);
    },
    180_000,
  );

  test.each(Object.entries(faults))(
    'is found: %s',
    async (_, fault) => {
      let found: unknown;
      for (const seed of seeds) {
        const planted = await world(optionsOf(seed));
        await plant(planted, fault);
        found = await runRandomWorld(planted, seed).catch((error: unknown) => error);
        if (found !== undefined) break;
      }
      expect(found, 'no seed found the fault').toBeDefined();
      expect(String(found)).toContain('replay:');
    },
    180_000,
  );
});
