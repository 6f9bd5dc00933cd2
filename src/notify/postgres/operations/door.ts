/**
 * The door: notifications by their business key, and their deliveries. The unique index decides whether a key is new: a
 * second one waits for the transaction that holds the first, and then finds it.
 */
import type { Queryable } from '../../../database/index.js';
import type { Channel, DeliveryState } from '../../notification.js';
import type { DoorStore, KnownNotification, NewDelivery, NewNotification } from '../../store.js';
import { sweepAt } from '../retry-rule.js';
import { nowSql } from '../time.js';

interface KnownRow extends Record<string, unknown> {
  readonly id: string;
  readonly salt: string | null;
  readonly content_hash: string;
  readonly delivery: string | null;
  readonly channel: Channel;
  readonly address: string;
  readonly state: DeliveryState;
}

export function doorOperations(schema: string): DoorStore {
  return {
    accept: accept(schema),
    known: known(schema),
  };
}

function accept(schema: string): DoorStore['accept'] {
  const runAfter = 'greatest(coalesce(v.run_after, 0), clock.now)';
  // Notifications in the order of keys, so that two batches that share some cannot wait for each other in a circle.
  const text = `
    with clock as materialized (
      select ${nowSql('$10')} as now,
        case when $11::bigint is not null then set_config('lock_timeout', $11::text || 'ms', true) end as key_wait),
    accepted as (
      insert into ${schema}.notifications
        (id, user_id, kind, key, purpose, origin, salt, content_hash, created_at, kept_until)
      select id, user_id, kind, key, purpose, origin, salt, hash, clock.now, clock.now + kept_ms
      from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::bigint[])
        as n (id, user_id, kind, key, purpose, origin, salt, hash, kept_ms)
      cross join clock order by user_id, kind, key
      on conflict (user_id, kind, key) do nothing
      returning id),
    written as (
      insert into ${schema}.deliveries
        (id, notification, user_id, kind, channel, route, address, details, content, campaign, state, reason, run_after,
         expires_at, created_at, finished_at, sweep_at)
      select v.id, v.notification, v.user_id, v.kind, v.channel, v.route, v.address, v.details, v.content, v.campaign,
        case when v.suppressed is null then 'waiting' else 'suppressed' end, v.suppressed, ${runAfter},
        ${runAfter} + v.deadline_ms, clock.now, case when v.suppressed is not null then clock.now end,
        ${sweepAt(schema, { runAfter, expiresAt: `(${runAfter} + v.deadline_ms)`, sweepMs: '$12' })}
      from unnest($13::text[], $14::text[], $15::text[], $16::text[], $17::text[], $18::text[], $19::text[], $20::text[],
          $21::text[], $22::text[], $23::bigint[], $24::bigint[], $25::text[])
        as v (id, notification, user_id, kind, channel, route, address, details, content, campaign, run_after, deadline_ms,
          suppressed)
      join accepted a on a.id = v.notification cross join clock
      returning id, created_at, reason),
    noted as (
      insert into ${schema}.history (delivery, at, event, detail)
      select id, created_at, case when reason is null then 'accepted' else 'suppressed' end, reason from written)
    select id from accepted`;

  return async (
    on: Queryable,
    { notifications, deliveries, sweepMs, keyWaitMs, now }: Parameters<DoorStore['accept']>[1],
  ) => {
    const ofNotifications = <T>(value: (notification: NewNotification) => T): T[] => notifications.map(value);
    const ofDeliveries = <T>(value: (delivery: NewDelivery) => T): T[] => deliveries.map(value);
    const { rows } = await on.query<{ id: string }>(text, [
      ofNotifications(({ id }) => id),
      ofNotifications(({ user }) => user),
      ofNotifications(({ kind }) => kind),
      ofNotifications(({ key }) => key),
      ofNotifications(({ purpose }) => purpose ?? null),
      ofNotifications(({ origin }) => origin),
      ofNotifications(({ salt }) => salt),
      ofNotifications(({ contentHash }) => contentHash),
      ofNotifications(({ keyKeptMs }) => keyKeptMs),
      now ?? null,
      keyWaitMs ?? null,
      sweepMs,
      ofDeliveries(({ id }) => id),
      ofDeliveries(({ notification }) => notification),
      ofDeliveries(({ user }) => user),
      ofDeliveries(({ kind }) => kind),
      ofDeliveries(({ destination }) => destination.channel),
      ofDeliveries(({ route }) => route),
      ofDeliveries(({ destination }) => destination.address),
      ofDeliveries(({ destination: { details } }) =>
        details === undefined ? null : JSON.stringify(details),
      ),
      ofDeliveries(({ content, suppressed }) => (suppressed === undefined ? JSON.stringify(content) : null)),
      ofDeliveries(({ campaign }) => campaign ?? null),
      ofDeliveries(({ runAfter: at }) => at ?? null),
      ofDeliveries(({ deadlineMs }) => deadlineMs),
      ofDeliveries(({ suppressed }) => suppressed ?? null),
    ]);
    return new Set(rows.map(({ id }) => id));
  };
}

function known(schema: string): DoorStore['known'] {
  const text = `
    select n.id, n.salt, n.content_hash, d.id as delivery, d.channel, d.address, d.state
    from ${schema}.notifications n left join ${schema}.deliveries d on d.notification = n.id
    where n.user_id = $1 and n.kind = $2 and n.key = $3 order by d.id`;

  return async (on: Queryable, { user, kind, key }): Promise<KnownNotification | undefined> => {
    const { rows } = await on.query<KnownRow>(text, [user, kind, key]);
    const first = rows[0];
    return (
      first && {
        id: first.id,
        salt: first.salt ?? undefined,
        contentHash: first.content_hash,
        deliveries: rows.flatMap(({ delivery, channel, address, state }) =>
          delivery === null ? [] : [{ id: delivery, channel, address, state }],
        ),
      }
    );
  };
}
