/** The in-app inbox. */
import type { InboxStore } from '../../people-store.js';
import { nowSql } from '../time.js';

interface InboxRow extends Record<string, unknown> {
  readonly id: string;
  readonly kind: string;
  readonly title: string;
  readonly body: string;
  readonly url: string | null;
  readonly created_at: string;
  readonly seen_at: string | null;
  readonly read_at: string | null;
}

export function inboxOperations(schema: string): InboxStore {
  // The entry has the id of its delivery. Whoever erases its user meanwhile waits for the entry, and then deletes it; who
  // was first leaves no delivery to write it for.
  const put = `
    with delivery as materialized (select 1 from ${schema}.deliveries where id = $1 for key share)
    insert into ${schema}.inbox (id, user_id, kind, title, body, url, created_at)
    select $1, $2, $3, $4, $5, $6, ${nowSql('$7')} from delivery on conflict (id) do nothing`;
  const list = `
    select id, kind, title, body, url, created_at, seen_at, read_at from ${schema}.inbox i
    where user_id = $1 and ($2::text is null or (created_at, id) < (
      select b.created_at, b.id from ${schema}.inbox b where b.id = $2 and b.user_id = $1))
    order by created_at desc, id desc limit $3`;
  const unread = `select count(*) as count from ${schema}.inbox where user_id = $1 and read_at is null`;
  const seen = `
    update ${schema}.inbox set seen_at = ${nowSql('$3')}
    where user_id = $1 and seen_at is null and ($2::text[] is null or id = any($2::text[]))`;
  // What has been read has been seen.
  const read = `
    update ${schema}.inbox set read_at = ${nowSql('$3')}, seen_at = coalesce(seen_at, ${nowSql('$3')})
    where user_id = $1 and read_at is null and ($2::text[] is null or id = any($2::text[]))`;

  return {
    async putInbox(on, { id, user, kind, title, body, url, now }) {
      await on.query(put, [id, user, kind, title, body, url ?? null, now ?? null]);
    },

    async inbox(on, { user, before, limit }) {
      const { rows } = await on.query<InboxRow>(list, [user, before ?? null, limit]);
      return rows.map((row) => ({
        id: row.id,
        kind: row.kind,
        title: row.title,
        body: row.body,
        url: row.url ?? undefined,
        createdAt: Number(row.created_at),
        seenAt: row.seen_at === null ? undefined : Number(row.seen_at),
        readAt: row.read_at === null ? undefined : Number(row.read_at),
      }));
    },

    async unread(on, user) {
      return Number((await on.query<{ count: string }>(unread, [user])).rows[0]?.count ?? 0);
    },

    async markInbox(on, { user, ids, as, now }) {
      return (await on.query(as === 'seen' ? seen : read, [user, ids ?? null, now ?? null])).rowCount;
    },
  };
}
