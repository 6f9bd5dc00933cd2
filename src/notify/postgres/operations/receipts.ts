/**
 * Receipts: what a provider says about a message that it took. It settles the delivery and so cancels a waiting retry;
 * status only moves forward; what belongs to nothing that is known is kept and joined later.
 */
import type { Queryable } from '../../../database/index.js';
import type { DeliveryState, ReceiptStatus } from '../../notification.js';
import type { Receipt } from '../../provider.js';
import type { Now, ReceiptStore } from '../../store.js';
import { receiptRank, receiptRankOf } from '../receipt-rank.js';
import { nowSql } from '../time.js';

interface ReceivedRow extends Record<string, unknown> {
  readonly delivery: string;
  readonly state: DeliveryState;
  readonly receipt: ReceiptStatus;
  readonly moved: boolean;
}

export function receiptOperations(schema: string): ReceiptStore {
  const receive = `
    with clock as materialized (select ${nowSql('$8')} as now),
    found as materialized (
      select d.id, d.state, d.receipt, d.channel, d.address, d.notification, k.secret, clock.now
      from ${schema}.deliveries d join ${schema}.kinds k on k.name = d.kind cross join clock
      where d.id = coalesce(
        (select m.delivery from ${schema}.provider_messages m where m.provider = $1 and m.message_id = $2),
        (select x.id from ${schema}.deliveries x where x.id = $3))
      for update of d),
    kept as (
      insert into ${schema}.receipts (provider, message_id, reference, status, cost, detail, retire, delivery, at)
      select $1, $2, $3, $4, $5::double precision, $6, $7, (select id from found), coalesce($9::bigint, clock.now)
      from clock),
    named as (
      insert into ${schema}.provider_messages (provider, message_id, delivery, at)
      select $1, $2, f.id, f.now from found f where $2::text is not null
      on conflict (provider, message_id) do nothing),
    moved as (
      update ${schema}.deliveries d set
        state = 'sent',
        reason = null,
        receipt = ${receiptRankOf(`greatest(${receiptRank('d.receipt')}, ${receiptRank('$4')})`)},
        message_id = coalesce(d.message_id, $2),
        cost = coalesce($5::double precision, d.cost),
        sending_until = null,
        finished_at = coalesce(d.finished_at, f.now),
        content = case when f.secret then null else d.content end
      from found f where d.id = f.id),
    erased as (
      update ${schema}.notifications n set salt = null from found f where n.id = f.notification and f.secret),
    retired as (
      insert into ${schema}.retired as x (channel, address, reason, at)
      select f.channel, f.address, $7, coalesce($9::bigint, f.now) from found f where $7::text is not null
      on conflict (channel, address) do update set reason = excluded.reason, at = greatest(x.at, excluded.at)),
    noted as (
      insert into ${schema}.history (delivery, at, event, provider, detail)
      select f.id, f.now, 'receipt: ' || $4, $1, $6 from found f)
    select f.id as delivery, 'sent' as state, f.state <> 'sent' as moved,
      ${receiptRankOf(`greatest(${receiptRank('f.receipt')}, ${receiptRank('$4')})`)} as receipt
    from found f`;

  // Both sides of a receipt that came while the answer was being written down saw nothing of each other.
  const unjoined = `
    select r.seq, r.message_id, r.reference, r.status, r.cost, r.detail, r.retire, r.provider, r.at
    from ${schema}.receipts r
    where r.delivery is null and r.at > ${nowSql('$1')} - $2::bigint and (
      exists (select 1 from ${schema}.provider_messages m where m.provider = r.provider and m.message_id = r.message_id)
      or exists (select 1 from ${schema}.deliveries d where d.id = r.reference))
    order by r.seq limit $3`;
  const forget = `delete from ${schema}.receipts where seq = $1 and delivery is null`;

  const take = async (
    on: Queryable,
    { provider, receipt, cameAt, now }: { provider: string; receipt: Receipt; cameAt?: string; now: Now },
  ) => {
    const { rows } = await on.query<ReceivedRow>(receive, [
      provider,
      receipt.messageId ?? null,
      receipt.reference ?? null,
      receipt.status,
      receipt.cost ?? null,
      receipt.detail ?? null,
      receipt.retire ?? null,
      now ?? null,
      cameAt ?? null,
    ]);
    return rows[0];
  };

  return {
    receive: take,

    async joinReceipts(database, { limit, windowMs, now }) {
      const { rows } = await database.query<{
        seq: string;
        provider: string;
        message_id: string | null;
        reference: string | null;
        status: Receipt['status'];
        cost: number | null;
        detail: string | null;
        retire: string | null;
        at: string;
      }>(unjoined, [now ?? null, windowMs, limit]);
      for (const row of rows) {
        await database.transaction(async (transaction) => {
          if ((await transaction.query(forget, [row.seq])).rowCount === 0) return;
          const receipt: Receipt = {
            status: row.status,
            messageId: row.message_id ?? undefined,
            reference: row.reference ?? undefined,
            cost: row.cost ?? undefined,
            detail: row.detail ?? undefined,
            retire: row.retire ?? undefined,
          };
          // An address that was registered again since it came is another one.
          await take(transaction, { provider: row.provider, receipt, cameAt: row.at, now });
        });
      }
      return rows.length;
    },
  };
}
