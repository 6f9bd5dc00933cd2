/** Blocks, mutes, and the lists of accounts around an account. */
import type { AccountList, AccountListRequest } from './account.js';
import type { FeedContext } from './context.js';
import { decodeCursor, encodeCursor } from './cursor.js';
import { feedError } from './errors.js';
import type { BlockPair, Feed, MutePair } from './feed.js';
import { knownAccounts, refuseGone } from './manage-accounts.js';
import type { AccountListKind } from './store.js';
import { accountId, pageLimit } from './validate.js';
import { forgetMessage } from './work.js';

function parseBlock(pair: BlockPair): BlockPair {
  return { blocker: accountId('blocker', pair.blocker), blocked: accountId('blocked', pair.blocked) };
}

function parseMute(pair: MutePair): MutePair {
  return { muter: accountId('muter', pair.muter), muted: accountId('muted', pair.muted) };
}

function refuseSelf(field: string, one: string, other: string): void {
  if (one !== other) return;
  const text = `${field}: an account can neither block nor mute itself`;
  throw feedError('block-self', text, { field, value: other, expected: 'another account' });
}

export function relationMethods(
  context: FeedContext,
): Pick<Feed, 'block' | 'unblock' | 'isBlocking' | 'mute' | 'unmute' | 'isMuting'> {
  const { database, store } = context;
  const blockNumbers = async (pair: BlockPair) => {
    const { blocker, blocked } = await knownAccounts(context, parseBlock(pair));
    return { blocker: blocker.number, blocked: blocked.number };
  };
  const muteNumbers = async (pair: MutePair) => {
    const { muter, muted } = await knownAccounts(context, parseMute(pair));
    return { muter: muter.number, muted: muted.number };
  };
  return {
    async block(pair) {
      refuseSelf('blocked', pair.blocker, pair.blocked);
      const known = await knownAccounts(context, parseBlock(pair));
      const [blocker, blocked] = [known.blocker.number, known.blocked.number];
      const created = await database.transaction(async (transaction) => {
        await store.lockReaders(transaction, [blocker, blocked]);
        const created = await store.insertBlock(transaction, { blocker, blocked, now: context.now() });
        if (created === undefined) return refuseGone(context, transaction, known);
        if (created)
          await context.enqueue(
            [forgetMessage(blocker, blocked), forgetMessage(blocked, blocker)],
            transaction,
          );
        return created;
      });
      return { kind: 'blocked', created };
    },

    async unblock(pair) {
      return { kind: 'unblocked', existed: await store.deleteBlock(database, await blockNumbers(pair)) };
    },

    async isBlocking(pair) {
      return store.isBlocking(database, await blockNumbers(pair));
    },

    async mute(pair) {
      refuseSelf('muted', pair.muter, pair.muted);
      const known = await knownAccounts(context, parseMute(pair));
      const [muter, muted] = [known.muter.number, known.muted.number];
      const created = await store.insertMute(database, { muter, muted, now: context.now() });
      return created === undefined ? refuseGone(context, database, known) : { kind: 'muted', created };
    },

    async unmute(pair) {
      return { kind: 'unmuted', existed: await store.deleteMute(database, await muteNumbers(pair)) };
    },

    async isMuting(pair) {
      return store.isMuting(database, await muteNumbers(pair));
    },
  };
}

export function listMethods(
  context: FeedContext,
): Pick<Feed, 'followers' | 'followees' | 'blocks' | 'mutes' | 'followRequests'> {
  const list =
    (kind: AccountListKind) =>
    async (request: AccountListRequest): Promise<AccountList> => {
      const limit = pageLimit(request.limit, { fallback: 100, max: 1_000 });
      const after =
        request.after === undefined ? undefined : decodeCursor('accounts', 'after', request.after);
      const { account } = await knownAccounts(context, { account: accountId('account', request.account) });
      const found = await context.store.listAccounts(context.database, {
        kind,
        account: account.number,
        after,
        limit: limit + 1,
      });
      const shown = found.slice(0, limit);
      const last = shown.at(-1);
      return {
        accounts: shown.map(({ id, since }) => ({ id, since })),
        next: found.length > limit && last ? encodeCursor('accounts', last.number) : undefined,
      };
    };
  return {
    followers: list('followers'),
    followees: list('followees'),
    blocks: list('blocks'),
    mutes: list('mutes'),
    followRequests: list('requests'),
  };
}
