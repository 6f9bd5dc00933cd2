/**
 * Follow, unfollow, requests. Each change locks the follower's reader row first, so that a build, a backfill or a clean-up
 * of that reader comes before it or after it as a whole.
 */
import type { Transaction } from '../database/index.js';
import { invalidInput, isHeadgateError } from '../errors.js';
import type { FollowManyOutcome, FollowOutcome, FollowPair } from './account.js';
import type { FeedContext } from './context.js';
import { feedError } from './errors.js';
import type { Feed } from './feed.js';
import { knownAccounts, refuseGone } from './manage-accounts.js';
import type { KnownAccount } from './store.js';
import { accountId } from './validate.js';
import { backfillMessage, forgetMessage, rebuildMessage } from './work.js';

const manyMax = 1_000;

/** A kept history is settled when every post that began before the unfollow has been committed. */
const keptSettleMs = 10_000;

type KnownPair = { readonly follower: KnownAccount; readonly followee: KnownAccount };

function parsePair(pair: FollowPair): FollowPair {
  return { follower: accountId('follower', pair.follower), followee: accountId('followee', pair.followee) };
}

function refuseSelf({ follower, followee }: FollowPair): void {
  if (follower !== followee) return;
  throw feedError('follow-self', 'followee: an account cannot follow itself', {
    field: 'followee',
    value: followee,
    expected: 'another account',
  });
}

export function followMethods(
  context: FeedContext,
): Pick<
  Feed,
  'follow' | 'unfollow' | 'followMany' | 'isFollowing' | 'followState' | 'approveFollow' | 'rejectFollow'
> {
  const { database, store } = context;

  const follow = async (pairGiven: FollowPair): Promise<FollowOutcome> => {
    const pair = parsePair(pairGiven);
    refuseSelf(pair);
    const known = await knownAccounts(context, pair);
    return database.transaction((transaction) =>
      followLocked(context, transaction, { ...known, approved: false }),
    );
  };

  return {
    follow,

    async followMany(pairs) {
      if (!Array.isArray(pairs) || pairs.length > manyMax) {
        throw invalidInput('follows', pairs?.length, `a list of at most ${manyMax} pairs`);
      }
      return followMany(context, pairs, follow);
    },

    async unfollow({ keepHistory = false, ...pairGiven }) {
      const { follower, followee } = await knownAccounts(context, parsePair(pairGiven));
      const pair = { follower: follower.number, followee: followee.number };
      const existed = await database.transaction(async (transaction) => {
        const state = (await store.lockReaders(transaction, [pair.follower])).get(pair.follower);
        const { existed, kept } = await store.deleteFollow(transaction, {
          ...pair,
          keepHistory,
          now: context.now(),
        });
        if (!existed) return false;
        const entry = { reader: pair.follower, author: pair.followee };
        if (kept !== undefined) {
          await context.enqueue(
            [backfillMessage({ ...entry, generation: kept, delayMs: keptSettleMs })],
            transaction,
          );
        } else if (state === 'live' || state === 'building') {
          await context.enqueue([forgetMessage(entry.reader, entry.author)], transaction);
        }
        await leavePullState(context, transaction, { reader: pair.follower, state });
        return true;
      });
      return { kind: 'unfollowed', existed };
    },

    async isFollowing(pair) {
      const { follower, followee } = await knownAccounts(context, parsePair(pair));
      const state = await store.followState(database, {
        follower: follower.number,
        followee: followee.number,
      });
      return state?.kind === 'following';
    },

    async followState(pair) {
      const { follower, followee } = await knownAccounts(context, parsePair(pair));
      const state = await store.followState(database, {
        follower: follower.number,
        followee: followee.number,
      });
      return state ?? { kind: 'none' };
    },

    async approveFollow(pair) {
      const known = await knownAccounts(context, parsePair(pair));
      const numbers = { follower: known.follower.number, followee: known.followee.number };
      return database.transaction(async (transaction) => {
        await store.lockReaders(transaction, [numbers.follower]);
        const requested = await store.deleteRequest(transaction, numbers);
        if (requested) await followLocked(context, transaction, { ...known, approved: true });
        const state = await store.followState(transaction, numbers);
        return { kind: state?.kind === 'following' ? 'following' : 'unknown' };
      });
    },

    async rejectFollow(pair) {
      const { follower, followee } = await knownAccounts(context, parsePair(pair));
      const numbers = { follower: follower.number, followee: followee.number };
      return { kind: (await store.deleteRequest(database, numbers)) ? 'rejected' : 'unknown' };
    },
  };
}

async function followLocked(
  context: FeedContext,
  transaction: Transaction,
  { follower, followee, approved }: KnownPair & { readonly approved: boolean },
): Promise<FollowOutcome> {
  const { store, options } = context;
  const pair = { follower: follower.number, followee: followee.number };
  const now = context.now();
  const state = (await store.lockReaders(transaction, [pair.follower])).get(pair.follower);
  const gone = (): Promise<never> => refuseGone(context, transaction, { follower, followee });
  if (followee.approvesFollowers && !approved) {
    const { kind, created } = await store.insertRequest(transaction, { ...pair, now });
    return kind === 'gone' ? gone() : { kind, created };
  }

  const pending = state === 'live' || state === 'building';
  const { kind, created, generation } = await store.insertFollow(transaction, { ...pair, pending, now });
  if (kind === 'gone') return gone();
  if (kind === 'blocked') return { kind };
  if (!created || !pending || generation === undefined) return { kind: 'following', created };

  if (await store.followsMoreThan(transaction, { account: pair.follower, max: options.followeesMax })) {
    await store.dropTimeline(transaction, { reader: pair.follower, state: 'pull' });
    return { kind: 'following', created };
  }
  const entry = { reader: pair.follower, author: pair.followee };
  await store.insertNewest(transaction, { ...entry, limit: options.backfillAtOnce });
  await context.enqueue([backfillMessage({ ...entry, generation })], transaction);
  return { kind: 'following', created };
}

/** A reader who followed too many for a timeline gets one again well below the bound, so that nobody swings at it. */
async function leavePullState(
  { store, options }: FeedContext,
  transaction: Transaction,
  { reader, state }: { reader: string; state: string | undefined },
): Promise<void> {
  if (state !== 'pull') return;
  const max = Math.floor(options.followeesMax * 0.8);
  if (await store.followsMoreThan(transaction, { account: reader, max })) return;
  await store.dropTimeline(transaction, { reader, state: 'none' });
}

/** Readers who follow several accounts at once are rebuilt once in place of as many backfills. */
async function followMany(
  context: FeedContext,
  pairs: readonly FollowPair[],
  follow: (pair: FollowPair) => Promise<FollowOutcome>,
): Promise<FollowManyOutcome[]> {
  const { database, store } = context;
  const byFollower = new Map<string, number>();
  for (const { follower } of pairs) byFollower.set(follower, (byFollower.get(follower) ?? 0) + 1);
  const dropped = new Set<string>();
  for (const [id, count] of byFollower) {
    if (count <= followsBeforeRebuild || typeof id !== 'string') continue;
    const account = (await store.resolve(database, [id])).get(id);
    if (!account) continue;
    const live = await database.transaction(async (transaction) => {
      const state = (await store.lockReaders(transaction, [account.number])).get(account.number);
      if (state !== 'live' && state !== 'building') return false;
      await store.dropTimeline(transaction, { reader: account.number, state: 'none' });
      return true;
    });
    if (live) dropped.add(account.number);
  }
  const outcomes: FollowManyOutcome[] = [];
  for (const pair of pairs) {
    try {
      outcomes.push(await follow(pair));
    } catch (error) {
      if (!isHeadgateError(error) || error.status >= 500) throw error;
      outcomes.push({ kind: 'refused', code: error.code, message: error.message });
    }
  }
  if (dropped.size > 0) await context.enqueue([...dropped].map(rebuildMessage));
  return outcomes;
}

const followsBeforeRebuild = 20;
