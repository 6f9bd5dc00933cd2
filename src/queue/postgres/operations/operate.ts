/** Operations on messages by id: cancel, change, requeue, purge. */
import type { Queryable } from '../../../database/index.js';
import type { MessageState, Metadata } from '../../message.js';
import type { CancelOutcome, ChangeOutcome, QueueStore, RequeueOutcome } from '../../store.js';
import { codeOf, metadataOf, sparse, stateOf } from '../rows.js';

type Request<Operation extends 'cancel' | 'change' | 'requeue' | 'purge'> = Parameters<
  QueueStore[Operation]
>[0];

/** An outcome, and the move behind it where this call has made one: a repeat is answered alike and moves nothing. */
export interface Operated<Outcome> {
  readonly outcome: Outcome;
  readonly change:
    | {
        readonly seq: string;
        readonly from: MessageState;
        readonly to: MessageState;
        readonly version: number;
        readonly attempt: number;
        readonly metadata: Metadata;
      }
    | undefined;
}

type OperatedRow = {
  readonly ord: number;
  readonly kind: CancelOutcome['kind'] | ChangeOutcome['kind'] | RequeueOutcome['kind'];
  readonly state: number | null;
  readonly from_state: number | null;
  readonly version: string | null;
  readonly attempts: number | null;
  readonly metadata: string | null;
  /** Null: nothing has moved. */
  readonly seq: string | null;
};

const inOrder = <R extends { ord: number }>(rows: readonly R[]): readonly R[] =>
  [...rows].sort((a, b) => a.ord - b.ord);

export function prepareOperate(schema: string) {
  const cancelText = `select * from ${schema}.cancel($1::text, $2::text[], $3::bigint)`;
  const changeText = `select * from ${schema}.change($1::text, $2::text[], $3::bigint[], $4::bigint[], $5::text[], $6::bigint)`;
  const requeueText = `select * from ${schema}.requeue($1::text, $2::text[], $3::bigint)`;
  const purgeText = `select ${schema}.purge($1::text, $2::smallint, $3::integer, $4::bigint) as removed`;

  return {
    async cancel(on: Queryable, { queue, ids, now }: Request<'cancel'>): Promise<Operated<CancelOutcome>[]> {
      const { rows } = await on.query<OperatedRow>(cancelText, [queue, ids, now ?? null]);
      return inOrder(rows).map((row) => {
        const id = ids[row.ord - 1]!;
        const outcome: CancelOutcome =
          row.kind === 'terminal'
            ? { kind: 'terminal', id, state: stateOf(row.state!) }
            : { kind: row.kind as 'canceled', id };
        return { outcome, change: changeOf(row, 'canceled') };
      });
    },

    async change(
      on: Queryable,
      { queue, changes, now }: Request<'change'>,
    ): Promise<Operated<ChangeOutcome>[]> {
      const { rows } = await on.query<OperatedRow>(changeText, [
        queue,
        changes.map(({ id }) => id),
        sparse(changes.map(({ priority }) => priority)),
        sparse(changes.map(({ visibleAt }) => visibleAt)),
        sparse(changes.map(({ payload }) => payload)),
        now ?? null,
      ]);
      return inOrder(rows).map((row) => ({
        outcome: outcomeOf(changes[row.ord - 1]!.id, row) as ChangeOutcome,
        change: changeOf(row, row.state === null ? 'pending' : stateOf(row.state)),
      }));
    },

    async requeue(
      on: Queryable,
      { queue, ids, now }: Request<'requeue'>,
    ): Promise<Operated<RequeueOutcome>[]> {
      const { rows } = await on.query<OperatedRow>(requeueText, [queue, ids, now ?? null]);
      return inOrder(rows).map((row) => ({
        outcome: outcomeOf(ids[row.ord - 1]!, row) as RequeueOutcome,
        change: changeOf(row, 'pending'),
      }));
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

function changeOf(row: OperatedRow, to: MessageState): Operated<never>['change'] {
  if (row.seq === null) return undefined;
  return {
    seq: row.seq,
    from: stateOf(row.from_state!),
    to,
    version: Number(row.version),
    attempt: row.attempts!,
    metadata: metadataOf(row.metadata),
  };
}

function outcomeOf(id: string, { kind, state, version }: OperatedRow): ChangeOutcome | RequeueOutcome {
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
