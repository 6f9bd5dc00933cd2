/** Extend, complete, fail and release: calls of the functions that fence by token, each lease answered by itself. */
import type { Queryable } from '../../../database/index.js';
import type { Metadata } from '../../message.js';
import type { LeaseOutcome, LeaseRef, QueueStore } from '../../store.js';
import { metadataOf, sparse, stateOf } from '../rows.js';
import { parseLeaseToken } from '../token.js';

type Request<Operation extends 'extend' | 'complete' | 'fail' | 'release'> = Parameters<
  QueueStore[Operation]
>[0];

/** An outcome, and of a change that was made now what its event needs. */
export interface Settled {
  readonly outcome: LeaseOutcome;
  /** Another message may be dequeueable now: this one again, or one of its exclusivity value. */
  readonly frees: boolean;
  readonly change:
    | { readonly seq: string; readonly attempt: number; readonly metadata: Metadata }
    | undefined;
}

export type SettledRow = {
  /** From 1; 0: this is the answer to each of them. */
  readonly ord: number;
  readonly kind: string;
  readonly state: number | null;
  readonly version: string | null;
  readonly attempts: number | null;
  readonly metadata: string | null;
  readonly lease_until?: string | null;
};

interface Named<Lease> {
  readonly lease: Lease;
  readonly place: number;
  readonly seq: string;
  readonly text: string;
}

/** The leases whose tokens may be ours, each once, and an answer for each of the others. */
export class LeaseBatch<Lease extends LeaseRef> {
  readonly named: readonly Named<Lease>[];
  readonly #settled: Settled[];
  /** Where a lease stands that was named before, and where it was. */
  readonly #again: (readonly [number, number])[] = [];

  constructor(leases: readonly Lease[]) {
    this.#settled = leases.map(({ id }) => lost(id));
    const named: Named<Lease>[] = [];
    const places = new Map<string, number>();
    for (const [place, lease] of leases.entries()) {
      const token = parseLeaseToken(lease.leaseToken);
      if (token === undefined) continue;
      const before = places.get(lease.leaseToken);
      if (before !== undefined && leases[before]?.id === lease.id) {
        this.#again.push([place, before]);
        continue;
      }
      places.set(lease.leaseToken, place);
      named.push({ lease, place, seq: token.seq, text: token.lease });
    }
    this.named = named;
  }

  /** Parameters `p_seqs`, `p_leases` (one for all where it is the same), `p_ids`. */
  values(): unknown[] {
    const [first] = this.named;
    const isOne = this.named.every(({ text }) => text === first!.text);
    return [
      this.named.map(({ seq }) => seq),
      isOne ? [first?.text] : this.named.map(({ text }) => text),
      this.named.map(({ lease }) => lease.id),
    ];
  }

  column<T>(of: (lease: Lease) => T | undefined): readonly (T | null)[] {
    return sparse(this.named.map(({ lease }) => of(lease)));
  }

  answer(rows: readonly SettledRow[]): Settled[] {
    const [first] = rows;
    if (first !== undefined && Number(first.ord) === 0) {
      for (const { lease, place, seq } of this.named) this.#settled[place] = settledOf(lease.id, seq, first);
    } else {
      for (const row of rows) {
        const { lease, place, seq } = this.named[Number(row.ord) - 1]!;
        this.#settled[place] = settledOf(lease.id, seq, row);
      }
    }
    for (const [place, before] of this.#again) {
      this.#settled[place] = { ...this.#settled[before]!, frees: false, change: undefined };
    }
    return this.#settled;
  }
}

const lost = (id: string): Settled => ({
  outcome: { kind: 'lease-lost', id },
  frees: false,
  change: undefined,
});

function settledOf(id: string, seq: string, row: SettledRow): Settled {
  if (row.kind === 'canceled' || row.kind === 'busy') return { ...lost(id), outcome: { kind: row.kind, id } };
  if (row.kind !== 'done' && row.kind !== 'freed') return lost(id);
  const state = stateOf(Number(row.state));
  const leaseUntil =
    row.lease_until === null || row.lease_until === undefined ? {} : { leaseUntil: Number(row.lease_until) };
  return {
    outcome: { kind: 'done', id, state, version: Number(row.version), ...leaseUntil },
    frees: row.kind === 'freed' || state === 'pending',
    change:
      row.attempts === null
        ? undefined
        : { seq, attempt: Number(row.attempts), metadata: metadataOf(row.metadata) },
  };
}

export const settledColumns = 'ord, kind, state, version, attempts, metadata';
const leaseEnds = { fail: 2, release: 3 } as const;

export function prepareSettle(schema: string) {
  const extendText = `select ${settledColumns}, lease_until from ${schema}.extend($1::text, $2::bigint[], $3::text[], $4::text[],
    $5::bigint[], $6::bigint)`;
  const completeText = `select ${settledColumns} from ${schema}.complete($1::text, $2::bigint[], $3::text[], $4::text[], $5::text[],
    $6::bigint)`;
  const giveBackText = `select ${settledColumns} from ${schema}.give_back($1::text, $2::bigint[], $3::text[], $4::text[], $5::bigint[],
    $6::text[], $7::boolean[], $8::smallint, $9::bigint)`;

  const run = async <Lease extends LeaseRef>(
    on: Queryable,
    batch: LeaseBatch<Lease>,
    text: string,
    values: unknown[],
  ) => batch.answer(batch.named.length === 0 ? [] : (await on.query<SettledRow>(text, values)).rows);

  return {
    async extend(on: Queryable, { queue, leases, now }: Request<'extend'>): Promise<Settled[]> {
      const batch = new LeaseBatch(leases);
      return run(on, batch, extendText, [
        queue,
        ...batch.values(),
        batch.column(({ leaseMs }) => leaseMs),
        now ?? null,
      ]);
    },

    async complete(on: Queryable, { queue, leases, now }: Request<'complete'>): Promise<Settled[]> {
      const batch = new LeaseBatch(leases);
      return run(on, batch, completeText, [
        queue,
        ...batch.values(),
        batch.column(({ result }) => result),
        now ?? null,
      ]);
    },

    async fail(on: Queryable, { queue, leases, now }: Request<'fail'>): Promise<Settled[]> {
      const batch = new LeaseBatch(leases);
      const delays = batch.column(({ retryDelayMs }) => retryDelayMs);
      const errors = batch.column(({ error }) => error);
      return run(on, batch, giveBackText, [
        queue,
        ...batch.values(),
        delays,
        errors,
        [],
        leaseEnds.fail,
        now ?? null,
      ]);
    },

    async release(on: Queryable, { queue, leases, now }: Request<'release'>): Promise<Settled[]> {
      const batch = new LeaseBatch(leases);
      const delays = batch.column(({ delayMs }) => delayMs);
      const refunds = batch.column(({ refund }) => refund);
      return run(on, batch, giveBackText, [
        queue,
        ...batch.values(),
        delays,
        [],
        refunds,
        leaseEnds.release,
        now ?? null,
      ]);
    },
  };
}
