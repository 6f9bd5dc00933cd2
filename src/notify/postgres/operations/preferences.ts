/** What users want to get, by kind and channel. */
import type { Channel } from '../../notification.js';
import type { PreferenceStore } from '../../people-store.js';
import { isEnabled } from '../preference-sql.js';
import { nowSql } from '../time.js';

export function preferenceOperations(schema: string): PreferenceStore {
  const put = `
    insert into ${schema}.preferences (user_id, kind, channel, enabled, changed_at)
    values ($1, $2, $3, $4, ${nowSql('$5')})
    on conflict (user_id, kind, channel) do update set enabled = excluded.enabled, changed_at = excluded.changed_at`;
  const all = `
    select kind, channel, enabled from ${schema}.preferences where user_id = $1 order by kind, channel`;
  const suppress = `
    with clock as materialized (select ${nowSql('$2')} as now),
    r as materialized (
      select d.id, d.notification, k.secret, clock.now
      from ${schema}.deliveries d join ${schema}.kinds k on k.name = d.kind cross join clock
      where d.user_id = $1 and d.state = 'waiting' and not k.required and not ${isEnabled(schema, 'd')}
      order by d.id for update of d),
    moved as (
      update ${schema}.deliveries d set state = 'suppressed', reason = 'switched off by the user', finished_at = r.now,
        content = case when r.secret then null else d.content end
      from r where d.id = r.id),
    noted as (
      insert into ${schema}.history (delivery, at, event, detail)
      select r.id, r.now, 'suppressed', 'switched off by the user' from r)
    select id from r`;

  return {
    async putPreference(on, { user, kind, channel, enabled, now }) {
      await on.query(put, [user, kind, channel, enabled, now ?? null]);
    },

    async preferences(on, user) {
      const { rows } = await on.query<{ kind: string; channel: Channel | '*'; enabled: boolean }>(all, [
        user,
      ]);
      return rows.map(({ kind, channel, enabled }) => ({ kind, channel, enabled }));
    },

    async suppressSwitchedOff(on, { user, now }) {
      return (await on.query<{ id: string }>(suppress, [user, now ?? null])).rows.map(({ id }) => id);
    },
  };
}
