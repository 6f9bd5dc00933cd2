/** What is known of a user: language, time zone, quiet hours, and where the user can be reached. */
import type { Channel, JsonObject } from '../../notification.js';
import type { Person, PersonStore, RegisteredDestination } from '../../people-store.js';
import { nowSql } from '../time.js';

interface UserRow extends Record<string, unknown> {
  readonly user_id: string;
  readonly locale: string | null;
  readonly time_zone: string | null;
  readonly quiet_from: number | null;
  readonly quiet_until: number | null;
}

interface DestinationRow extends Record<string, unknown> {
  readonly user_id: string;
  readonly channel: Channel;
  readonly address: string;
  readonly details: string | null;
  readonly registered_at: string;
  readonly retired: string | null;
}

export function personOperations(schema: string): PersonStore {
  const users = `
    select user_id, locale, time_zone, quiet_from, quiet_until from ${schema}.users where user_id = any($1::text[])`;
  const destinations = `
    select x.user_id, x.channel, x.address, x.details, x.registered_at, r.reason as retired
    from ${schema}.destinations x
    left join ${schema}.retired r on r.channel = x.channel and r.address = x.address and r.at >= x.registered_at
    where x.user_id = any($1::text[]) order by x.user_id, x.channel, x.address`;
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

  const erase = [
    // First: one that is being closed becomes a notification, which the statements after it have to see.
    `delete from ${schema}.digests where user_id = $1`,
    `delete from ${schema}.history h using ${schema}.deliveries d where d.user_id = $1 and h.delivery = d.id`,
    `delete from ${schema}.provider_messages m using ${schema}.deliveries d where d.user_id = $1 and m.delivery = d.id`,
    `delete from ${schema}.receipts r using ${schema}.deliveries d where d.user_id = $1 and r.delivery = d.id`,
    `delete from ${schema}.recent_sends where subject = 'user ' || $1 or subject in (
      select channel || ' ' || case channel when 'email' then lower(address) else address end
      from ${schema}.deliveries where user_id = $1)`,
    `delete from ${schema}.notifications where user_id = $1`,
    ...['inbox', 'destinations', 'preferences', 'users'].map(
      (table) => `delete from ${schema}.${table} where user_id = $1`,
    ),
  ];

  return {
    async persons(on, ids) {
      const [known, reached] = [
        (await on.query<UserRow>(users, [ids])).rows,
        (await on.query<DestinationRow>(destinations, [ids])).rows,
      ];
      const persons = new Map<string, Person>();
      for (const row of known) persons.set(row.user_id, { ...personOf(row), destinations: [] });
      for (const row of reached) {
        const person = persons.get(row.user_id) ?? nobody;
        persons.set(row.user_id, { ...person, destinations: [...person.destinations, destinationOf(row)] });
      }
      return persons;
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

    async eraseUser(on, id) {
      for (const text of erase) await on.query(text, [id]);
    },

    async retire(on, { channel, address, reason, now }) {
      await on.query(retire, [channel, address, reason, now ?? null]);
    },
  };
}

const nobody: Person = { locale: undefined, timeZone: undefined, quiet: undefined, destinations: [] };

function personOf({
  locale,
  time_zone: timeZone,
  quiet_from: from,
  quiet_until: until,
}: UserRow): Omit<Person, 'destinations'> {
  return {
    locale: locale ?? undefined,
    timeZone: timeZone ?? undefined,
    quiet: from === null || until === null ? undefined : { from, until },
  };
}

function destinationOf({
  channel,
  address,
  details,
  registered_at,
  retired,
}: DestinationRow): RegisteredDestination {
  return {
    channel,
    address,
    ...(details !== null && { details: JSON.parse(details) as JsonObject }),
    registeredAt: Number(registered_at),
    retired: retired ?? undefined,
  };
}
