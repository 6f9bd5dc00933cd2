/** Depth and oldest: they count by the clock, so what is due is moved before it is counted. */
import type { Queryable } from '../../../database/index.js';
import type { Depth, QueueStore } from '../../store.js';

type Request = Parameters<QueueStore['depth']>[0];
type DepthRow = {
  invisible: string | null;
  pending: string | null;
  running: string | null;
  exact: boolean;
  as_of: string;
};

export function prepareDepth(schema: string) {
  const depthText = `select invisible, pending, running, exact, as_of from ${schema}.depth_of($1::text, $2::jsonb, $3::bigint)`;
  const oldestText = `select id, age_ms from ${schema}.oldest($1::text, $2::jsonb, $3::bigint)`;

  return {
    async depth(on: Queryable, { queue, where, now }: Request): Promise<Depth> {
      const { rows } = await on.query<DepthRow>(depthText, [queue, JSON.stringify(where), now ?? null]);
      const row = rows[0]!;
      return {
        invisible: Number(row.invisible),
        pending: Number(row.pending),
        running: Number(row.running),
        exact: row.exact,
        asOf: Number(row.as_of),
      };
    },

    async oldest(
      on: Queryable,
      { queue, where, now }: Request,
    ): Promise<{ id: string; ageMs: number } | undefined> {
      const { rows } = await on.query<{ id: string; age_ms: string }>(oldestText, [
        queue,
        JSON.stringify(where),
        now ?? null,
      ]);
      return rows[0] && { id: rows[0].id, ageMs: Number(rows[0].age_ms) };
    },
  };
}
