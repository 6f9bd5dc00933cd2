/**
 * The door: notifications by their business key, and their deliveries. The unique index decides whether a key is new: a
 * second one waits for the transaction that holds the first, and then finds it.
 */
import type { Queryable } from '../../../database/index.js';
import type { Channel, DeliveryState } from '../../notification.js';
import type { DoorStore, KnownNotification, NewDelivery, NewNotification, Now } from '../../store.js';
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
    insertNotifications: insertNotifications(schema),
    known: known(schema),
    insertDeliveries: insertDeliveries(schema),
  };
}

function insertNotifications(schema: string): DoorStore['insertNotifications'] {
  // In the order of keys, so that two batches that share some cannot wait for each other in a circle.
  const text = `
    insert into ${schema}.notifications (id, user_id, kind, key, purpose, origin, salt, content_hash, created_at, kept_until)
    select id, user_id, kind, key, purpose, origin, salt, hash, ${nowSql('$10')}, ${nowSql('$10')} + kept_ms
    from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::bigint[])
      as n (id, user_id, kind, key, purpose, origin, salt, hash, kept_ms)
    order by user_id, kind, key
    on conflict (user_id, kind, key) do nothing
    returning id, created_at`;

  return async (
    on: Queryable,
    { notifications, now }: { notifications: readonly NewNotification[]; now: Now },
  ) => {
    const column = <T>(value: (notification: NewNotification) => T): T[] => notifications.map(value);
    const { rows } = await on.query<{ id: string; created_at: string }>(text, [
      column(({ id }) => id),
      column(({ user }) => user),
      column(({ kind }) => kind),
      column(({ key }) => key),
      column(({ purpose }) => purpose ?? null),
      column(({ origin }) => origin),
      column(({ salt }) => salt),
      column(({ contentHash }) => contentHash),
      column(({ keyKeptMs }) => keyKeptMs),
      now ?? null,
    ]);
    const created = new Map(rows.map(({ id, created_at }) => [id, Number(created_at)]));
    return notifications.map(({ id }) => created.get(id));
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

function insertDeliveries(schema: string): DoorStore['insertDeliveries'] {
  const runAfter = 'greatest(coalesce(v.run_after, 0), clock.now)';
  const text = `
    with clock as materialized (select ${nowSql('$13')} as now),
    written as (
      insert into ${schema}.deliveries
        (id, notification, user_id, kind, channel, route, address, details, content, campaign, state, reason, run_after,
         expires_at, created_at, finished_at, sweep_at)
      select v.id, v.notification, v.user_id, v.kind, v.channel, v.route, v.address, v.details, v.content, v.campaign,
        case when v.suppressed is null then 'waiting' else 'suppressed' end, v.suppressed, ${runAfter},
        ${runAfter} + v.deadline_ms, clock.now, case when v.suppressed is not null then clock.now end,
        ${sweepAt(schema, { runAfter, expiresAt: `(${runAfter} + v.deadline_ms)`, sweepMs: '$12' })}
      from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
          $9::text[], $10::bigint[], $11::bigint[], $14::text[], $15::text[])
        as v (id, notification, user_id, kind, channel, address, details, content, campaign, run_after, deadline_ms, suppressed, route)
      cross join clock
      returning id, created_at, reason)
    insert into ${schema}.history (delivery, at, event, detail)
    select id, created_at, case when reason is null then 'accepted' else 'suppressed' end, reason from written`;

  return async (
    on: Queryable,
    { deliveries, sweepMs, now }: { deliveries: readonly NewDelivery[]; sweepMs: number; now: Now },
  ) => {
    const column = <T>(value: (delivery: NewDelivery) => T): T[] => deliveries.map(value);
    await on.query(text, [
      column(({ id }) => id),
      column(({ notification }) => notification),
      column(({ user }) => user),
      column(({ kind }) => kind),
      column(({ destination }) => destination.channel),
      column(({ destination }) => destination.address),
      column(({ destination }) =>
        destination.details === undefined ? null : JSON.stringify(destination.details),
      ),
      column(({ content, suppressed }) => (suppressed === undefined ? JSON.stringify(content) : null)),
      column(({ campaign }) => campaign ?? null),
      column(({ runAfter: at }) => at ?? null),
      column(({ deadlineMs }) => deadlineMs),
      sweepMs,
      now ?? null,
      column(({ suppressed }) => suppressed ?? null),
      column(({ route }) => route),
    ]);
  };
}
