/** What is known of a user: language, time zone, quiet hours, and where the user can be reached. */
import type { Channel, JsonObject } from '../../notification.js';
import type { PersonStore } from '../../store.js';
import { nowSql } from '../time.js';

interface UserRow extends Record<string, unknown> {
  readonly locale: string | null;
  readonly time_zone: string | null;
  readonly quiet_from: number | null;
  readonly quiet_until: number | null;
}

interface DestinationRow extends Record<string, unknown> {
  readonly channel: Channel;
  readonly address: string;
  readonly details: string | null;
  readonly registered_at: string;
  readonly retired: string | null;
}

export function personOperations(schema: string): PersonStore {
  const user = `select locale, time_zone, quiet_from, quiet_until from ${schema}.users where user_id = $1`;
  const destinations = `
    select x.channel, x.address, x.details, x.registered_at, r.reason as retired
    from ${schema}.destinations x
    left join ${schema}.retired r on r.channel = x.channel and r.address = x.address and r.at >= x.registered_at
    where x.user_id = $1 order by x.channel, x.address`;
  const putUser = `
    insert into ${schema}.users (user_id, locale, time_zone, quiet_from, quiet_until, changed_at)
    values ($1, $2, $3, $4, $5, ${nowSql('$6')})
    on conflict (user_id) do update set locale = excluded.locale, time_zone = excluded.time_zone,
      quiet_from = excluded.quiet_from, quiet_until = excluded.quiet_until, changed_at = excluded.changed_at`;
  const putDestination = `
    insert into ${schema}.destinations (user_id, channel, address, details, registered_at)
    values ($1, $2, $3, $4, ${nowSql('$5')})
    on conflict (user_id, channel, address) do update
      set details = excluded.details, registered_at = excluded.registered_at`;
  const deleteDestination = `delete from ${schema}.destinations where user_id = $1 and channel = $2 and address = $3`;
  const retire = `
    insert into ${schema}.retired as x (channel, address, reason, at) values ($1, $2, $3, ${nowSql('$4')})
    on conflict (channel, address) do update set reason = excluded.reason, at = greatest(x.at, excluded.at)`;

  return {
    async person(on, id) {
      const row = (await on.query<UserRow>(user, [id])).rows[0];
      const { rows } = await on.query<DestinationRow>(destinations, [id]);
      return {
        locale: row?.locale ?? undefined,
        timeZone: row?.time_zone ?? undefined,
        quiet:
          typeof row?.quiet_from !== 'number' || typeof row.quiet_until !== 'number'
            ? undefined
            : { from: row.quiet_from, until: row.quiet_until },
        destinations: rows.map(({ channel, address, details, registered_at, retired }) => ({
          channel,
          address,
          ...(details !== null && { details: JSON.parse(details) as JsonObject }),
          registeredAt: Number(registered_at),
          retired: retired ?? undefined,
        })),
      };
    },

    async putUser(on, { user: id, locale, timeZone, quiet, now }) {
      await on.query(putUser, [
        id,
        locale ?? null,
        timeZone ?? null,
        quiet?.from ?? null,
        quiet?.until ?? null,
        now ?? null,
      ]);
    },

    async putDestination(on, { user: id, destination, now }) {
      const { channel, address, details } = destination;
      const text = details === undefined ? null : JSON.stringify(details);
      await on.query(putDestination, [id, channel, address, text, now ?? null]);
    },

    async deleteDestination(on, { user: id, channel, address }) {
      return (await on.query(deleteDestination, [id, channel, address])).rowCount > 0;
    },

    async retire(on, { channel, address, reason, now }) {
      await on.query(retire, [channel, address, reason, now ?? null]);
    },
  };
}
