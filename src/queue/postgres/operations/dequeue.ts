/** Dequeue for one request or for several that have come at the same time, alone or after the completions of a worker. */
import type { Queryable } from '../../../database/index.js';
import type { LeasedMessage } from '../../message.js';
import type { DequeueRequest } from '../../store.js';
import { type LeasedRow, sparse, toLeased } from '../rows.js';
import { newNonce } from '../token.js';

export const dequeueColumns = `place, seq, id, payload, metadata, priority, attempts, attempts_max, visible_at, lease_until, version,
  enqueued_at, started_at, lease, trace, error`;

export type DequeuedRow = LeasedRow & { readonly place: number | null };
type AnyRow = DequeuedRow | { readonly place: number; readonly seq: null };

/** Requests on their way; all of them name the same queue and the same filter. */
export class DequeueBatch {
  readonly #requests: readonly DequeueRequest[];
  readonly #nonces: readonly string[];

  constructor(requests: readonly DequeueRequest[]) {
    this.#requests = requests;
    this.#nonces = requests.map(newNonce);
  }

  /** The parameters of the function `dequeue`. */
  values(): unknown[] {
    const requests = this.#requests;
    const [{ queue, where, now }] = requests as readonly [DequeueRequest, ...DequeueRequest[]];
    return [
      queue,
      requests.map(({ count }) => count),
      JSON.stringify(where),
      sparse(requests.map(({ leaseMs }) => leaseMs)),
      requests.map(({ requestId }) => requestId),
      this.#nonces,
      sparse(requests.map(({ worker }) => worker)),
      now ?? null,
    ];
  }

  /** The answer to each request, in the order of dequeue; undefined for one that has to come alone. */
  answer(rows: readonly AnyRow[]): (LeasedMessage[] | undefined)[] {
    const found: (DequeuedRow[] | undefined)[] = this.#requests.map(() => []);
    for (const row of rows) {
      const place = (row.place ?? 1) - 1;
      if (row.seq === null) found[place] = undefined;
      else found[place]?.push(row);
    }
    return found.map((rowsOf, place) => {
      const { queue, requestId } = this.#requests[place]!;
      const lease = `${requestId}.${this.#nonces[place]}`;
      return rowsOf?.sort(inOrder).map((row) => toLeased(queue, lease, row));
    });
  }
}

/** By priority, and equal ones by seq, which may be more than a number holds. */
function inOrder(a: DequeuedRow, b: DequeuedRow): number {
  const first = Number(a.priority ?? a.enqueued_at) - Number(b.priority ?? b.enqueued_at);
  if (first !== 0) return first;
  return a.seq.length - b.seq.length || (a.seq < b.seq ? -1 : 1);
}

export function prepareDequeue(schema: string) {
  const text = `select ${dequeueColumns} from ${schema}.dequeue($1::text, $2::integer[], $3::jsonb, $4::bigint[], $5::text[], $6::text[],
    $7::text[], $8::bigint)`;

  return async (
    on: Queryable,
    requests: readonly DequeueRequest[],
  ): Promise<(LeasedMessage[] | undefined)[]> => {
    const batch = new DequeueBatch(requests);
    return batch.answer((await on.query<AnyRow>(text, batch.values())).rows);
  };
}
