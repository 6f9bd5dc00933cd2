/**
 * Completions and the next dequeue in one statement: an append runs its parts in order, and each function sees what the
 * one before has done.
 */
import type { Queryable } from '../../../database/index.js';
import type { LeasedMessage } from '../../message.js';
import type { QueueStore } from '../../store.js';
import { DequeueBatch, dequeueColumns, type DequeuedRow } from './dequeue.js';
import { LeaseBatch, type Settled, type SettledRow } from './settle.js';

type Request = Parameters<NonNullable<QueueStore['settleAndDequeue']>>[0];
type Row = (SettledRow & { readonly seq: null }) | (DequeuedRow & { readonly ord: null });

export function prepareSettleAndDequeue(schema: string) {
  const text = `
    select ord, kind, state, null::integer as place, null::bigint as seq, null::text as id, null::text as payload, metadata, null::bigint as priority, attempts,
      null::integer as attempts_max, null::bigint as visible_at, null::bigint as lease_until, version, null::bigint as enqueued_at,
      null::bigint as started_at, null::text as lease, null::text as trace, null::text as error
    from ${schema}.complete($1::text, $2::bigint[], $3::text[], $4::text[], $5::text[], $6::bigint)
    union all
    select null, null, null, ${dequeueColumns}
    from ${schema}.dequeue($7::text, $8::integer[], $9::jsonb, $10::bigint[], $11::text[], $12::text[], $13::text[], $14::bigint)`;

  return async (
    on: Queryable,
    { queue, complete, dequeue, now }: Request,
  ): Promise<{ settled: Settled[]; messages: LeasedMessage[] }> => {
    const batch = new LeaseBatch(complete);
    const request = new DequeueBatch([dequeue]);
    const values = [
      queue,
      ...batch.values(),
      batch.column(({ result }) => result),
      now ?? null,
      ...request.values(),
    ];
    const { rows } = await on.query<Row>(text, values);
    const settled = rows.filter((row): row is SettledRow & { seq: null } => row.seq === null);
    const found = rows.filter((row): row is DequeuedRow & { ord: null } => row.seq !== null);
    return { settled: batch.answer(settled), messages: request.answer(found)[0] ?? [] };
  };
}
