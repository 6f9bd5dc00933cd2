/** Operating the feed: statistics with the threshold they suggest, verify, rebuild, vacuum, fan-out progress. */
import { activeReadMs, type FeedContext } from './context.js';
import type { Feed } from './feed.js';
import { knownAccounts } from './manage-accounts.js';
import { invalidInput } from '../errors.js';
import type { FeedStats } from './operate.js';
import { rebuild } from './timeline-work.js';
import { vacuum } from './vacuum.js';
import { accountId, characterFault, postId } from './validate.js';

export function operateMethods(
  context: FeedContext,
): Pick<
  Feed,
  'timelinesApart' | 'stats' | 'mostFollowed' | 'verify' | 'rebuild' | 'vacuum' | 'fanOutProgress'
> {
  const { database, store, options } = context;
  return {
    timelinesApart: () => store.apart && { store: store.apart.name, away: !store.apart.isConnected() },

    async stats() {
      const stats = await store.stats(database, { now: context.now() });
      return {
        ...stats,
        threshold: { ...options.threshold, suggestedPullFrom: suggestThreshold(stats.followers) },
      };
    },

    async mostFollowed({ limit = 20, after } = {}) {
      if (!Number.isSafeInteger(limit) || limit < 1 || limit > mostFollowedMax)
        throw invalidInput('limit', limit, `a whole number from 1 to ${mostFollowedMax}`);
      const from = after === undefined ? undefined : parsePlace(after);
      const accounts = await store.mostFollowed(database, { limit, after: from });
      const last = accounts.length === limit ? accounts.at(-1) : undefined;
      return { accounts, next: last && formatPlace(last) };
    },

    async verify(readerGiven) {
      const reader = accountId('reader', readerGiven);
      await knownAccounts(context, { reader });
      const input = { reader, activeMs: activeReadMs(options), now: context.now() };
      const report = await store.verify(database, input);
      return report ?? { reader, timeline: 'none', missing: [], superfluous: [], checked: 0 };
    },

    async rebuild(reader) {
      const known = await knownAccounts(context, { reader: accountId('reader', reader) });
      return rebuild(context, known.reader.number);
    },

    vacuum: () => vacuum(context),

    async fanOutProgress(id) {
      return store.fanOutProgress(database, { post: postId('id', id), now: context.now() });
    },
  };
}

const mostFollowedMax = 100;

interface Place {
  readonly followers: number;
  readonly id: string;
}

const formatPlace = ({ followers, id }: Place): string =>
  Buffer.from(JSON.stringify([followers, id])).toString('base64url');

function parsePlace(text: string): Place {
  try {
    const [followers, id] = JSON.parse(Buffer.from(text, 'base64url').toString()) as [unknown, unknown];
    if (Number.isSafeInteger(followers) && typeof id === 'string' && characterFault(id) === undefined)
      return { followers: Number(followers), id };
  } catch {
    // said below
  }
  throw invalidInput('after', text, 'the `next` of a page');
}

/**
 * Most accounts pushed, the few at the top pulled: ten times the 99th percentile, at least a thousand, rounded up to two
 * digits. Below a thousand followers a push is one batch and costs less than merging the author at every read.
 */
function suggestThreshold({ p99 }: FeedStats['followers']): number {
  const wanted = Math.max(1_000, p99 * 10);
  const unit = 10 ** (Math.floor(Math.log10(wanted)) - 1);
  return Math.ceil(wanted / unit) * unit;
}
