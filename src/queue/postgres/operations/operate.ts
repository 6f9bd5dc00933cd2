/** Operations on messages by id: cancel, change, requeue, purge. */
import type { Queryable } from '../../../database/index.js';
import type { MessageState, Metadata } from '../../message.js';
import type { CancelOutcome, ChangeOutcome, QueueStore, RequeueOutcome } from '../../store.js';
import { codeOf, metadataOf, sparse, stateOf } from '../rows.js';

type Request<Operation extends 'cancel' | 'change' | 'requeue' | 'purge'> = Parameters<
  QueueStore[Operation]
>[0];

export interface Canceled {
  readonly outcome: CancelOutcome;
  readonly change:
    | {
        readonly seq: string;
        readonly from: MessageState;
        readonly version: number;
        readonly attempt: number;
        readonly metadata: Metadata;
      }
    | undefined;
}

type CancelRow = {
  ord: number;
  kind: 'canceled' | 'unknown' | 'busy' | 'terminal';
  state: number | null;
  from_state: number | null;
  version: string | null;
  attempts: number | null;
  metadata: string | null;
  seq: string | null;
};
type ChangeRow = {
  ord: number;
  kind: ChangeOutcome['kind'] | RequeueOutcome['kind'];
  state: number | null;
  version: string | null;
};

const inOrder = <R extends { ord: number }>(rows: readonly R[]): readonly R[] =>
  [...rows].sort((a, b) => a.ord - b.ord);

export function prepareOperate(schema: string) {
  const cancelText = `select * from ${schema}.cancel($1::text, $2::text[], $3::bigint)`;
  const changeText = `select * from ${schema}.change($1::text, $2::text[], $3::bigint[], $4::bigint[], $5::text[], $6::bigint)`;
  const requeueText = `select * from ${schema}.requeue($1::text, $2::text[], $3::bigint)`;
  const purgeText = `select ${schema}.purge($1::text, $2::smallint, $3::integer, $4::bigint) as removed`;

  return {
    async cancel(on: Queryable, { queue, ids, now }: Request<'cancel'>): Promise<Canceled[]> {
      const { rows } = await on.query<CancelRow>(cancelText, [queue, ids, now ?? null]);
      return inOrder(rows).map((row) => canceledOf(ids[row.ord - 1]!, row));
    },

    async change(on: Queryable, { queue, changes, now }: Request<'change'>): Promise<ChangeOutcome[]> {
      const { rows } = await on.query<ChangeRow>(changeText, [
        queue,
        changes.map(({ id }) => id),
        sparse(changes.map(({ priority }) => priority)),
        sparse(changes.map(({ visibleAt }) => visibleAt)),
        sparse(changes.map(({ payload }) => payload)),
        now ?? null,
      ]);
      return inOrder(rows).map((row) => outcomeOf(changes[row.ord - 1]!.id, row) as ChangeOutcome);
    },

    async requeue(on: Queryable, { queue, ids, now }: Request<'requeue'>): Promise<RequeueOutcome[]> {
      const { rows } = await on.query<ChangeRow>(requeueText, [queue, ids, now ?? null]);
      return inOrder(rows).map((row) => outcomeOf(ids[row.ord - 1]!, row) as RequeueOutcome);
    },

    async purge(on: Queryable, { queue, state, limit, now }: Request<'purge'>): Promise<{ removed: number }> {
      const { rows } = await on.query<{ removed: number }>(purgeText, [
        queue,
        codeOf(state),
        limit,
        now ?? null,
      ]);
      return { removed: Number(rows[0]!.removed) };
    },
  };
}

function canceledOf(id: string, row: CancelRow): Canceled {
  const outcome: CancelOutcome =
    row.kind === 'terminal' ? { kind: 'terminal', id, state: stateOf(row.state!) } : { kind: row.kind, id };
  if (row.seq === null) return { outcome, change: undefined };
  const metadata = metadataOf(row.metadata);
  return {
    outcome,
    change: {
      seq: row.seq,
      from: stateOf(row.from_state!),
      version: Number(row.version),
      attempt: row.attempts!,
      metadata,
    },
  };
}

function outcomeOf(id: string, { kind, state, version }: ChangeRow): ChangeOutcome | RequeueOutcome {
  switch (kind) {
    case 'changed':
    case 'requeued':
      return { kind, id, state: kind === 'requeued' ? 'pending' : stateOf(state!), version: Number(version) };
    case 'not-waiting':
    case 'not-errored':
      return { kind, id, state: stateOf(state!) };
    default:
      return { kind: kind === 'busy' ? 'busy' : 'unknown', id };
  }
}
