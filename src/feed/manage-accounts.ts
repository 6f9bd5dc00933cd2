/** Accounts: made, read, erased. */
import type { Queryable } from '../database/index.js';
import { invalidInput } from '../errors.js';
import type { FeedContext } from './context.js';
import { feedError } from './errors.js';
import type { Feed } from './feed.js';
import type { KnownAccount } from './store.js';
import { accountId } from './validate.js';
import { eraseMessage } from './work.js';

export function accountUnknown(field: string, id: string) {
  return feedError('account-unknown', `${field}: there is no account ${JSON.stringify(id)}; make it first`, {
    field,
    value: id,
    ids: { account: id },
  });
}

/**
 * For a write that found an account of `known` gone, since it was erased after it had been looked up: throws what the next
 * call would be told.
 */
export async function refuseGone(
  { store }: FeedContext,
  on: Queryable,
  known: Readonly<Record<string, KnownAccount>>,
): Promise<never> {
  const found = await store.resolve(
    on,
    Object.values(known).map(({ id }) => id),
  );
  const gone = Object.entries(known).filter(([, { id, number }]) => found.get(id)?.number !== number);
  const [field, { id }] = gone[0] ?? (Object.entries(known)[0] as [string, KnownAccount]);
  throw accountUnknown(field, id);
}

/** The accounts of `fields` by field name; throws `account-unknown` for the first that is missing. */
export async function knownAccounts<Field extends string>(
  { store, database }: FeedContext,
  fields: Readonly<Record<Field, string>>,
): Promise<Record<Field, KnownAccount>> {
  const names = Object.keys(fields) as Field[];
  const found = await store.resolve(database, [...new Set(Object.values<string>(fields))]);
  const accounts = {} as Record<Field, KnownAccount>;
  for (const name of names) {
    const account = found.get(fields[name]);
    if (!account) throw accountUnknown(name, fields[name]);
    accounts[name] = account;
  }
  return accounts;
}

export function accountMethods(
  context: FeedContext,
): Pick<Feed, 'putAccount' | 'getAccount' | 'eraseAccount'> {
  const { database, store } = context;
  return {
    async putAccount({ id: idGiven, approvesFollowers }) {
      const id = accountId('id', idGiven);
      if (approvesFollowers !== undefined && typeof approvesFollowers !== 'boolean') {
        throw invalidInput('approvesFollowers', approvesFollowers, 'true or false');
      }
      const created = await store.createAccounts(database, { ids: [id], now: context.now() });
      if (approvesFollowers !== undefined) await store.setApproval(database, { id, approvesFollowers });
      const account = await store.account(database, id);
      if (!account) {
        const text = `id: the account ${JSON.stringify(id)} has been erased and its rows are not all gone yet`;
        throw feedError('account-erased', text, { field: 'id', value: id, ids: { account: id } });
      }
      return { account, created: created > 0 };
    },

    async getAccount(id) {
      return store.account(database, accountId('id', id));
    },

    async eraseAccount(idGiven) {
      const id = accountId('id', idGiven);
      return database.transaction(async (transaction) => {
        const number = await store.markErased(transaction, { id, now: context.now() });
        if (number === undefined) return { kind: 'unknown' as const };
        await context.enqueue([eraseMessage(number)], transaction);
        return { kind: 'erased' as const };
      });
    },
  };
}
