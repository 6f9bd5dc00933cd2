/**
 * An erasure races with what is written for the account or about it: whatever is held at whichever moment, no row is left
 * that names an account which is gone.
 */
import { describe, expect, test } from 'vitest';
import type { FeedWorld } from '../../src/testing/feed-world.js';
import { until } from '../../src/testing/until.js';
import { databases, useWorlds } from './feed/worlds.js';

/** The columns that name an account. */
const names = [
  'follows.follower',
  'follows.followee',
  'follow_requests.follower',
  'follow_requests.followee',
  'blocks.blocker',
  'blocks.blocked',
  'mutes.muter',
  'mutes.muted',
  'posts.author',
  'fan_outs.author',
  'authors.account',
  'readers.account',
  'follower_deltas.account',
  'timeline.reader',
  'merged_followees.reader',
  'rankings.reader',
];

async function left({ database, schema }: FeedWorld): Promise<string[]> {
  const found: string[] = [];
  for (const [table, column] of names.map((name) => name.split('.'))) {
    const { rowCount } = await database.query(
      `select 1 from "${schema}".${table} t
       where not exists (select 1 from "${schema}".accounts a where a.number = t.${column})`,
    );
    if (rowCount > 0) found.push(`${table}.${column}`);
  }
  return found;
}

type Method = 'insertFollow' | 'insertRequest' | 'insertBlock' | 'insertMute' | 'insertPost' | 'holdAuthor';
type Step = Method | 'importFollows';

function signal() {
  let give = (): void => {};
  const given = new Promise<void>((resolve) => (give = resolve));
  return { given, give };
}

/** Holds the session that comes to this step of the store, before or after it. */
function hold(world: FeedWorld, step: Step, when: 'before' | 'after') {
  const store = world.configuration.store as unknown as Record<
    Step,
    (...args: unknown[]) => Promise<unknown>
  >;
  const work = store[step].bind(store);
  const [gate, reached] = [signal(), signal()];
  const wait = (): Promise<void> => {
    store[step] = work;
    reached.give();
    return gate.given;
  };
  store[step] = async (...args) => {
    if (when === 'before') await wait();
    const answer = await work(...args);
    if (when === 'after') await wait();
    return answer;
  };
  return { reached: reached.given, release: gate.give };
}

const waits = async ({ database }: FeedWorld): Promise<boolean> => {
  const { rowCount } = await database.query(
    `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
  );
  return rowCount > 0;
};

/** Erases `a` and does all its work, while `write` is held; lets that go on when the work has ended or waits for it. */
async function eraseBeside(world: FeedWorld, write: Promise<unknown>, held: ReturnType<typeof hold>) {
  await Promise.race([held.reached, write]);
  await world.feed.eraseAccount('a');
  let ended = false;
  const drained = world.drain().finally(() => (ended = true));
  await until(async () => ended || (await waits(world)), { what: 'the end of the erasure, or a lock' });
  held.release();
  const [outcome] = await Promise.allSettled([write]);
  await drained;
  await world.drain();
  await world.worker.keepHouse();
  return outcome;
}

interface Case {
  readonly what: string;
  readonly step: Step;
  readonly write: (world: FeedWorld) => Promise<unknown>;
}

const cases: readonly Case[] = [
  {
    what: 'a follow of it',
    step: 'insertFollow',
    write: ({ feed }) => feed.follow({ follower: 'r', followee: 'a' }),
  },
  {
    what: 'its own follow',
    step: 'insertFollow',
    write: ({ feed }) => feed.follow({ follower: 'a', followee: 'r' }),
  },
  {
    what: 'a request to follow it',
    step: 'insertRequest',
    write: async ({ feed }) => {
      await feed.putAccount({ id: 'a', approvesFollowers: true });
      return feed.follow({ follower: 'r', followee: 'a' });
    },
  },
  { what: 'a block', step: 'insertBlock', write: ({ feed }) => feed.block({ blocker: 'r', blocked: 'a' }) },
  { what: 'a post', step: 'insertPost', write: ({ feed }) => feed.publish({ author: 'a', text: 'x' }) },
  {
    what: 'an import',
    step: 'importFollows',
    write: ({ feed }) =>
      feed.importFollows([
        ['r', 'a'],
        ['a', 'r'],
      ]),
  },
];

/** Refused when it comes too late: what is held before its first step. */
const late: readonly Case[] = [
  ...cases.map((given) => (given.step === 'insertPost' ? { ...given, step: 'holdAuthor' as const } : given)),
  { what: 'a mute', step: 'insertMute', write: ({ feed }) => feed.mute({ muter: 'r', muted: 'a' }) },
];

const byName = (list: readonly Case[]) => list.map((given) => [given.what, given] as const);

/** One will do: the statements are the same on each, and the other suites run them there. */
const server = databases.find(({ hasSessions, timelines }) => hasSessions && timelines === 'table');

describe.each(server ? [server] : [])('an erasure in another session on $name', (on) => {
  const open = useWorlds(on);

  async function prepared(): Promise<FeedWorld> {
    const world = await open();
    await world.accounts('r', 'a');
    for (const reader of ['r', 'a']) await world.open(reader);
    return world;
  }

  test.each(byName(cases))(
    'takes %s that was written before and is committed after',
    async (_, { step, write }) => {
      const world = await prepared();
      const held = hold(world, step, 'after');
      await eraseBeside(world, write(world), held);
      expect(await left(world)).toEqual([]);
    },
  );

  test.each(byName(late))('refuses %s that is written after its end', async (_, { step, write }) => {
    const world = await prepared();
    const held = hold(world, step, 'before');
    const outcome = await eraseBeside(world, write(world), held);
    expect(outcome).toMatchObject(
      step === 'importFollows' ? { value: { created: 0 } } : { reason: { code: 'account-unknown' } },
    );
    expect(await left(world)).toEqual([]);
  });
});
