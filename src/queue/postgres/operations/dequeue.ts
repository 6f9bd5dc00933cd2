/** Dequeue for one request or for several that have come at the same time, alone or after the completions of a worker. */
import type { Queryable } from '../../../database/index.js';
import type { LeasedMessage } from '../../message.js';
import type { DequeueRequest } from '../../store.js';
import { type LeasedRow, sparse, toLeased } from '../rows.js';
import { newNonce } from '../token.js';

export const dequeueColumns = `place, seq, id, payload, metadata, priority, attempts, attempts_max, visible_at, lease_until, version,
  enqueued_at, started_at, lease, trace, error`;

export type DequeuedRow = LeasedRow & { readonly place: number };
type AnyRow = DequeuedRow | { readonly place: number; readonly seq: null };

/** The parameters of the function `dequeue`; all requests name the same queue and the same filter. */
export function dequeueValues(requests: readonly DequeueRequest[]): unknown[] {
  const [{ queue, where, now }] = requests as readonly [DequeueRequest, ...DequeueRequest[]];
  return [
    queue,
    requests.map(({ count }) => count),
    JSON.stringify(where),
    sparse(requests.map(({ leaseMs }) => leaseMs)),
    requests.map(({ requestId }) => requestId),
    requests.map(newNonce),
    sparse(requests.map(({ worker }) => worker)),
    now ?? null,
  ];
}

export function prepareDequeue(schema: string) {
  const text = `select ${dequeueColumns} from ${schema}.dequeue($1::text, $2::integer[], $3::jsonb, $4::bigint[], $5::text[], $6::text[],
    $7::text[], $8::bigint)`;

  /** The answer to each request; undefined for one that has to come alone. */
  return async (
    on: Queryable,
    requests: readonly DequeueRequest[],
  ): Promise<(LeasedMessage[] | undefined)[]> => {
    const answers: (LeasedMessage[] | undefined)[] = requests.map(() => []);
    const { rows } = await on.query<AnyRow>(text, dequeueValues(requests));
    for (const row of rows) {
      const place = Number(row.place) - 1;
      if (row.seq === null) answers[place] = undefined;
      else answers[place]?.push(toLeased(requests[place]!.queue, row));
    }
    return answers;
  };
}
