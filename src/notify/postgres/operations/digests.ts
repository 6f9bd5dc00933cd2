/** Digests: events of a key within a window. The row of the open digest is the lock between joining and closing. */
import type { DigestStore } from '../../people-store.js';
import { nowSql } from '../time.js';

export function digestOperations(schema: string): DigestStore {
  // A digest that is being closed makes the insert wait, and then open the next one.
  const join = `
    insert into ${schema}.digests as g (id, user_id, kind, key, opened_at, closes_at)
    values ($1, $2, $3, $4, ${nowSql('$6')}, ${nowSql('$6')} + $5::bigint)
    on conflict (user_id, kind, key) where state = 'open' do update set closes_at = g.closes_at
    returning id`;
  const member = `
    insert into ${schema}.digest_members (digest, event, data, at) values ($1, $2, $3, ${nowSql('$4')})
    on conflict (digest, event) do nothing`;
  const due = `
    select id from ${schema}.digests where state = 'open' and closes_at <= ${nowSql('$2')} order by closes_at limit $1`;
  const close = `
    update ${schema}.digests set state = 'closed'
    where id = $1 and state = 'open' and closes_at <= ${nowSql('$2')}
    returning user_id, kind, key`;
  const members = `select data from ${schema}.digest_members where digest = $1 order by seq`;

  return {
    async joinDigest(on, { id, user, kind, key, event, data, windowMs, now }) {
      const { rows } = await on.query<{ id: string }>(join, [id, user, kind, key, windowMs, now ?? null]);
      const digest = (rows[0] as { id: string }).id;
      await on.query(member, [digest, event, data, now ?? null]);
      return digest;
    },

    async dueDigests(on, { limit, now }) {
      return (await on.query<{ id: string }>(due, [limit, now ?? null])).rows.map(({ id }) => id);
    },

    async closeDigest(on, { id, now }) {
      const { rows } = await on.query<{ user_id: string; kind: string; key: string }>(close, [
        id,
        now ?? null,
      ]);
      const row = rows[0];
      if (!row) return undefined;
      const events = (await on.query<{ data: string }>(members, [id])).rows.map(({ data }) => data);
      return { user: row.user_id, kind: row.kind, key: row.key, events };
    },
  };
}
