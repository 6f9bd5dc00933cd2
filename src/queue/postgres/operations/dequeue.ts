/** Dequeue, alone or after the completions of the same worker in one statement. */
import type { Queryable } from '../../../database/index.js';
import type { LeasedMessage } from '../../message.js';
import type { DequeueRequest } from '../../store.js';
import { type LeasedRow, toLeased } from '../rows.js';
import { newNonce } from '../token.js';

export const dequeueColumns = `seq, id, payload, metadata, priority, attempts, attempts_max, visible_at, lease_until, version, enqueued_at,
  started_at, lease, trace, error`;

export function dequeueValues({
  queue,
  count,
  where,
  leaseMs,
  requestId,
  worker,
  now,
}: DequeueRequest): unknown[] {
  return [
    queue,
    count,
    JSON.stringify(where),
    leaseMs ?? null,
    requestId,
    newNonce(),
    worker ?? null,
    now ?? null,
  ];
}

export function prepareDequeue(schema: string) {
  const text = `select ${dequeueColumns} from ${schema}.dequeue($1::text, $2::integer, $3::jsonb, $4::bigint, $5::text, $6::text, $7::text,
    $8::bigint)`;

  return async (on: Queryable, request: DequeueRequest): Promise<LeasedMessage[]> => {
    const { rows } = await on.query<LeasedRow>(text, dequeueValues(request));
    return rows.map((row) => toLeased(request.queue, row));
  };
}
