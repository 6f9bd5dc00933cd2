/** A world in which random things happen, recorded by the oracle as they happen. */
import { expect } from 'vitest';
import type { Feed, FeedOptionsInput } from '../../src/feed/index.js';
import { feedQueues, seededRandom } from '../../src/feed/index.js';
import { FeedOracle } from '../../src/testing/feed-oracle.js';
import { type FeedWorld, idsOf, walkNewer, walkOlder } from '../../src/testing/feed-world.js';
import type { LeasedMessage } from '../../src/queue/index.js';

/** See test/conformance/feed/worlds.ts. */
const onClusterVariable = 'HEADGATE_FEED_SUITE_ON_CLUSTER';
const dayMs = 86_400_000;

export class RandomFeedWorld {
  readonly oracle = new FeedOracle();
  readonly #world: FeedWorld;
  readonly #random: () => number;
  readonly #accounts: string[] = [];
  readonly #held: LeasedMessage[] = [];
  #rewind: (() => Promise<void>) | undefined;
  readonly #blocks = new Set<string>();

  constructor(world: FeedWorld, seed: number) {
    this.#world = world;
    this.#random = seededRandom(seed);
  }

  /** Small bounds, so that a small world meets all of them. */
  static options(seed: number): FeedOptionsInput {
    return {
      threshold: { pullFrom: 8, pushBelow: 6 },
      followeesMax: 12,
      timeline: { entriesMax: 15, slack: 4 },
      batchSize: 3,
      backfillAtOnce: 4,
      activeMs: 30 * dayMs,
      ...(seed % 7 === 0 && { fanOut: 'pull' }),
      ...(seed % 7 === 1 && { fanOut: 'push' }),
    };
  }

  get feed(): Feed {
    return this.#world.feed;
  }

  async begin(): Promise<void> {
    for (let number = 0; number < 16; number += 1) this.#accounts.push(`account ${number}/😀`);
    await this.#world.accounts(...this.#accounts);
    for (let number = 0; number < 60; number += 1) await this.#follow();
    for (const reader of this.#accounts.slice(0, 8)) await this.#world.open(reader);
  }

  readers(): readonly string[] {
    return this.#accounts.filter((_, index) => index % 3 === 0);
  }

  async step(): Promise<void> {
    this.#world.clock.advance(Math.floor(this.#random() * 2_000));
    const actions: readonly (readonly [number, () => Promise<void>])[] = [
      [30, () => this.#publish()],
      [8, () => this.#repost()],
      [10, () => this.#follow()],
      [6, () => this.#unfollow()],
      [2, () => this.#block()],
      [3, () => this.#unblock()],
      [2, () => this.#mute()],
      [2, () => this.#unmute()],
      [5, () => this.#delete()],
      [2, () => this.#edit()],
      [6, () => this.#home()],
      [6, () => this.#work()],
      [3, () => this.#takeAndHold()],
      [2, () => this.#workHeld()],
      [2, () => this.#world.worker.keepHouse()],
      [1, () => this.#cancelFanOut()],
      [1, () => this.#loseTimelines()],
      [1, () => this.#rebuild()],
      [1, async () => void (await this.feed.vacuum())],
      [0.3, async () => this.#world.clock.advance(31 * dayMs)],
      [0.5, async () => this.#world.clock.advance(-5_000)],
      [1, () => this.#import()],
      ...(this.#canRewind
        ? ([
            [1, () => this.#remember()],
            [1, () => this.#comeBackYounger()],
          ] as const)
        : []),
    ];
    const total = actions.reduce((sum, [weight]) => sum + weight, 0);
    let at = this.#random() * total;
    for (const [weight, action] of actions) {
      at -= weight;
      if (at < 0) return action();
    }
  }

  /** Everything has run, and what could not run is overdue. */
  async settle(): Promise<void> {
    await this.#world.worker.keepHouse();
    for (const message of this.#held.splice(0)) await this.#world.work(message);
    await this.#world.drain();
    this.#world.clock.advance(10_000);
    await this.#world.worker.keepHouse();
    await this.#world.drain();
  }

  /** Drained: every page of every walk is what the oracle says, in both directions. */
  async checkWalks(note: string): Promise<void> {
    for (const reader of this.readers()) {
      const expected = this.oracle.home(reader);
      for (const limit of [3, 20]) {
        const pages = await walkOlder(this.feed, reader, limit);
        expect(idsOf(pages), `${note}, ${reader}, limit ${limit}`).toEqual(expected);
        for (const page of pages.slice(0, -1)) expect(page.items.length, note).toBe(limit);
        const last = pages.at(-1);
        if (last?.previous === undefined) continue;
        const back = await walkNewer(this.feed, reader, limit, last.previous);
        const rest = expected.slice(0, expected.length - last.items.length);
        expect(idsOf(back.toReversed()), `${note}, ${reader} back, limit ${limit}`).toEqual(rest);
      }
    }
  }

  /** At any moment: nothing hidden is shown, and own posts are all there. */
  async checkHides(note: string): Promise<void> {
    for (const reader of this.readers()) {
      const allowed = new Set(this.oracle.home(reader));
      const shown: string[] = [];
      let after: string | undefined;
      do {
        const page = await this.feed.home({ reader, limit: 100, after });
        shown.push(...page.items.map((item) => item.id));
        after = page.next;
      } while (after !== undefined);
      expect(
        shown.filter((id) => !allowed.has(id)),
        `${note}: shown to ${reader} and hidden by the oracle`,
      ).toEqual([]);
      expect(new Set(shown).size, note).toBe(shown.length);
      const own = [...allowed].filter((id) => this.oracle.posts.get(id)?.author === reader);
      expect(
        own.filter((id) => !shown.includes(id)),
        `${note}: own posts of ${reader} missing`,
      ).toEqual([]);
    }
  }

  #pick<T>(from: readonly T[]): T | undefined {
    return from[Math.floor(this.#random() * from.length)];
  }

  #two(): readonly [string, string] {
    // Some are popular, so that modes switch.
    const skewed = this.#random() < 0.6 ? this.#accounts.slice(0, 4) : this.#accounts;
    return [this.#pick(this.#accounts) ?? '', this.#pick(skewed) ?? ''];
  }

  async #publish(): Promise<void> {
    const [, author] = this.#two();
    const visibility = this.#random() < 0.2 ? 'followers' : 'public';
    const createdAt =
      this.#random() < 0.1 ? this.#world.clock.now() - Math.floor(this.#random() * 10 * dayMs) : undefined;
    const { post } = await this.feed.publish({ author, text: 'text', visibility, createdAt });
    this.oracle.publish({ id: post.id, author, visibility, repostOf: undefined });
  }

  async #repost(): Promise<void> {
    const author = this.#pick(this.#accounts) ?? '';
    const candidates = [...this.oracle.posts.values()].filter((post) => !post.deleted).slice(-30);
    const original = this.#pick(candidates);
    if (!original) return;
    const outcome = await this.feed
      .publish({ author, repostOf: original.id })
      .catch((error: unknown) => error);
    if (outcome instanceof Error) return expectCode(outcome, ['repost-refused', 'post-unknown']);
    const { post } = outcome as Awaited<ReturnType<Feed['publish']>>;
    this.oracle.publish({ id: post.id, author, visibility: 'public', repostOf: post.repostOf });
  }

  async #follow(): Promise<void> {
    const [follower, followee] = this.#two();
    if (follower === followee) return;
    const { kind } = await this.feed.follow({ follower, followee });
    this.oracle.follow(follower, followee);
    expect(kind === 'following').toBe(this.oracle.follows(follower, followee));
  }

  async #unfollow(): Promise<void> {
    const [follower, followee] = this.#two();
    const keepHistory = this.#random() < 0.3;
    if (follower === followee) return;
    await this.feed.unfollow({ follower, followee, keepHistory });
    const keptUntil = ((BigInt(this.#world.clock.now()) + 1n) << 20n) - 1n;
    this.oracle.unfollow(follower, followee, keepHistory ? keptUntil : undefined);
  }

  async #block(): Promise<void> {
    const [blocker, blocked] = this.#two();
    if (blocker === blocked) return;
    await this.feed.block({ blocker, blocked });
    this.oracle.block(blocker, blocked);
    this.#blocks.add(`${blocker}\0${blocked}`);
  }

  async #unblock(): Promise<void> {
    const pair = this.#pick([...this.#blocks]);
    if (!pair) return;
    this.#blocks.delete(pair);
    const [blocker = '', blocked = ''] = pair.split('\0');
    await this.feed.unblock({ blocker, blocked });
    this.oracle.unblock(blocker, blocked);
  }

  async #mute(): Promise<void> {
    const [muter, muted] = this.#two();
    if (muter === muted) return;
    await this.feed.mute({ muter, muted });
    this.oracle.mute(muter, muted);
  }

  async #unmute(): Promise<void> {
    const [muter, muted] = this.#two();
    await this.feed.unmute({ muter, muted });
    this.oracle.unmute(muter, muted);
  }

  async #delete(): Promise<void> {
    const post = this.#pick([...this.oracle.posts.values()].slice(-40));
    if (!post) return;
    await this.feed.deletePost({ id: post.id });
    this.oracle.delete(post.id);
  }

  async #edit(): Promise<void> {
    const post = this.#pick(
      [...this.oracle.posts.values()].filter((post) => !post.deleted && !post.repostOf),
    );
    if (post) await this.feed.editPost({ id: post.id, text: 'edited' });
  }

  async #home(): Promise<void> {
    await this.feed.home({ reader: this.#pick(this.#accounts) ?? '' });
  }

  /** Some of what waits, in any order, some of it twice. */
  async #work(): Promise<void> {
    const messages = await this.#world.take();
    messages.sort(() => this.#random() - 0.5);
    for (const message of messages) {
      if (this.#random() < 0.2) this.#held.push(message);
      else {
        await this.#workOn(message);
        if (this.#random() < 0.2) await this.#workOn(message);
      }
    }
  }

  /** What was refused is tried again later. */
  async #workOn(message: LeasedMessage): Promise<void> {
    await this.#world.work(message).catch((error: Error) => {
      expectDoubt(error);
      this.#held.push(message);
    });
  }

  async #takeAndHold(): Promise<void> {
    this.#held.push(...(await this.#world.take()));
  }

  async #workHeld(): Promise<void> {
    for (const message of this.#held.splice(0, 5)) await this.#workOn(message);
  }

  async #cancelFanOut(): Promise<void> {
    for (const queue of [feedQueues.small, feedQueues.big]) {
      const waiting = await this.#world.queue.list(queue, { state: 'pending', limit: 3 });
      await this.#world.queue.cancel(
        queue,
        waiting.messages.map(({ id }) => id),
      );
    }
  }

  async #loseTimelines(): Promise<void> {
    await this.#world.timelines.loseAll();
  }

  /** Only one server is rewound; what a Cluster loses is tested by itself. */
  get #canRewind(): boolean {
    return this.#world.timelines.lists !== undefined && process.env[onClusterVariable] === undefined;
  }

  async #remember(): Promise<void> {
    this.#rewind = await this.#world.timelines.remember();
  }

  /** With the first look at the new server sooner or later. */
  async #comeBackYounger(): Promise<void> {
    await this.#rewind?.();
    this.#rewind = undefined;
    if (this.#random() < 0.5) await this.#world.worker.keepHouse();
  }

  async #rebuild(): Promise<void> {
    await this.feed.rebuild(this.#pick(this.#accounts) ?? '').catch(expectDoubt);
  }

  async #import(): Promise<void> {
    const pairs = Array.from({ length: 4 }, () => this.#two());
    await this.feed.importFollows(pairs);
    for (const [follower, followee] of pairs) this.oracle.follow(follower, followee);
  }
}

/** Nothing is written to a server that nobody has looked at. */
function expectDoubt(error: Error): void {
  expectCode(error, ['timelines-in-doubt']);
}

function expectCode(error: Error, codes: readonly string[]): void {
  expect(codes).toContain((error as Error & { code?: string }).code ?? String(error));
}

/** Four phases of random steps, each settled and compared. Throws where the feed differs from the oracle. */
export async function runRandomWorld(world: FeedWorld, seed: number): Promise<void> {
  const random = new RandomFeedWorld(world, seed);
  const note = `replay: HEADGATE_SEED=${seed} npx vitest run test/simulation/feed-world.test.ts`;
  await random.begin();
  for (let phase = 0; phase < 4; phase += 1) {
    for (let step = 0; step < 60; step += 1) {
      await random.step();
      if (step % 15 === 0) await random.checkHides(note);
    }
    await random.settle();
    await random.checkWalks(note);
  }
}
