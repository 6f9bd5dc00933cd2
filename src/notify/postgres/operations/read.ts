/** What people look at: a notification with its deliveries and why each is what it is, and the sums that must add up. */
import type { Queryable } from '../../../database/index.js';
import type { Channel, Delivery, DeliveryState, HistoryEntry, ReceiptStatus } from '../../notification.js';
import type { ReadStore } from '../../store.js';

interface DeliveryRow extends Record<string, unknown> {
  readonly id: string;
  readonly notification: string;
  readonly user_id: string;
  readonly kind: string;
  readonly channel: Channel;
  readonly address: string;
  readonly state: DeliveryState;
  readonly reason: string | null;
  readonly attempts: number;
  readonly provider: string | null;
  readonly message_id: string | null;
  readonly receipt: ReceiptStatus;
  readonly cost: number | null;
  readonly run_after: string;
  readonly sending_until: string | null;
  readonly expires_at: string;
  readonly created_at: string;
  readonly finished_at: string | null;
}

interface HistoryRow extends Record<string, unknown> {
  readonly delivery: string;
  readonly at: string;
  readonly event: string;
  readonly attempt: number | null;
  readonly provider: string | null;
  readonly detail: string | null;
}

const columns = `id, notification, user_id, kind, channel, address, state, reason, attempts, provider, message_id, receipt,
  cost, run_after, sending_until, expires_at, created_at, finished_at`;

export function readOperations(schema: string): ReadStore {
  const one = `select ${columns} from ${schema}.deliveries where id = $1`;
  const head = `select id, user_id, kind, key, created_at from ${schema}.notifications where id = $1`;
  const ofNotification = `select ${columns} from ${schema}.deliveries where notification = $1 order by id`;
  const historyOf = `
    select delivery, at, event, attempt, provider, detail from ${schema}.history where delivery = any($1::text[])
    order by seq`;
  const ledger = `
    select state, count(*) as count from ${schema}.deliveries where $1::text is null or kind = $1 group by state`;

  // By user through the index of keys, else through the primary key, which is in order of time.
  const list = `
    select ${columns} from ${schema}.deliveries
    where ($1::text is null or notification in (select id from ${schema}.notifications where user_id = $1))
      and ($2::text is null or kind = $2) and ($3::text is null or state = $3) and ($4::text is null or id < $4)
    order by id desc limit $5`;

  const readHistory = async (on: Queryable, deliveries: readonly string[]) =>
    (await on.query<HistoryRow>(historyOf, [deliveries])).rows;

  return {
    async delivery(on, id) {
      const { rows } = await on.query<DeliveryRow>(one, [id]);
      return rows[0] && deliveryOf(rows[0]);
    },

    async deliveries(on, { user, kind, state, before, limit }) {
      const values = [user ?? null, kind ?? null, state ?? null, before ?? null, limit];
      return (await on.query<DeliveryRow>(list, values)).rows.map(deliveryOf);
    },

    async history(on, delivery) {
      return (await readHistory(on, [delivery])).map(entryOf);
    },

    async notification(on, id) {
      type Head = { id: string; user_id: string; kind: string; key: string; created_at: string };
      const row = (await on.query<Head>(head, [id])).rows[0];
      if (!row) return undefined;
      const deliveries = (await on.query<DeliveryRow>(ofNotification, [id])).rows;
      const entries = await readHistory(
        on,
        deliveries.map((delivery) => delivery.id),
      );
      return {
        id: row.id,
        user: row.user_id,
        kind: row.kind,
        key: row.key,
        createdAt: Number(row.created_at),
        deliveries: deliveries.map((delivery) => ({
          ...deliveryOf(delivery),
          history: entries.filter((entry) => entry.delivery === delivery.id).map(entryOf),
        })),
      };
    },

    async ledger(on, { kind }) {
      const { rows } = await on.query<{ state: DeliveryState; count: string }>(ledger, [kind ?? null]);
      const count = (state: DeliveryState): number =>
        Number(rows.find((row) => row.state === state)?.count ?? 0);
      return {
        accepted: rows.reduce((total, row) => total + Number(row.count), 0),
        waiting: count('waiting') + count('sending'),
        sent: count('sent'),
        failed: count('failed'),
        expired: count('expired'),
        suppressed: count('suppressed'),
        ambiguous: count('ambiguous'),
      };
    },
  };
}

function deliveryOf(row: DeliveryRow): Delivery {
  return {
    id: row.id,
    notification: row.notification,
    user: row.user_id,
    kind: row.kind,
    channel: row.channel,
    address: row.address,
    state: row.state,
    reason: row.reason ?? undefined,
    attempts: row.attempts,
    provider: row.provider ?? undefined,
    messageId: row.message_id ?? undefined,
    receipt: row.receipt,
    cost: row.cost ?? undefined,
    runAfter: Number(row.run_after),
    sendingUntil: row.sending_until === null ? undefined : Number(row.sending_until),
    expiresAt: Number(row.expires_at),
    createdAt: Number(row.created_at),
    finishedAt: row.finished_at === null ? undefined : Number(row.finished_at),
  };
}

function entryOf(row: HistoryRow): HistoryEntry {
  return {
    at: Number(row.at),
    event: row.event,
    attempt: row.attempt ?? undefined,
    provider: row.provider ?? undefined,
    detail: row.detail ?? undefined,
  };
}
