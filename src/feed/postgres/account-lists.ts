/**
 * Lists of accounts in the order of their numbers, which the indexes have anyway; a cursor is a position
 * in that order, so it survives whatever comes and goes.
 */
import type { AccountListKind, GraphStore } from '../store.js';

export function accountLists(schema: string): Pick<GraphStore, 'listAccounts'> {
  const list = (table: string, own: string, other: string, condition = 'true') => `
    select a.id, r.${other} as number, r.created_at as since
    from ${schema}.${table} r join ${schema}.accounts a on a.number = r.${other} and a.erased_at is null
    where r.${own} = $1 and r.${other} > $2 and ${condition}
    order by r.${other} limit $3`;
  const texts: Readonly<Record<AccountListKind, string>> = {
    followers: list('follows', 'followee', 'follower', 'r.kept_until is null'),
    followees: list('follows', 'follower', 'followee', 'r.kept_until is null'),
    blocks: list('blocks', 'blocker', 'blocked'),
    mutes: list('mutes', 'muter', 'muted'),
    requests: list('follow_requests', 'followee', 'follower'),
  };
  return {
    async listAccounts(on, { kind, account, after, limit }) {
      const { rows } = await on.query<{ id: string; number: string; since: string }>(texts[kind], [
        account,
        after ?? '0',
        limit,
      ]);
      return rows.map(({ id, number, since }) => ({ id, number, since: Number(since) }));
    },
  };
}
