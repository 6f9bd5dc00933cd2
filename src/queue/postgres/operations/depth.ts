/** Depth and oldest: they count by the clock, so what is due is moved before it is counted. */
import type { Queryable } from '../../../database/index.js';
import type { Depth, QueueStore } from '../../store.js';

type Request = Parameters<QueueStore['depth']>[0];
type DepthRow = {
  /** Null: to be counted in steps. */
  invisible: string | null;
  pending: string;
  running: string;
  exact: boolean;
  as_of: string;
};
type StepRow = {
  invisible: string;
  pending: string;
  running: string;
  walked: string;
  last_key: string;
  last_seq: string;
  walk: string;
};

/** Index entries in one step of a count: some tens of milliseconds. */
const stepMax = 10_000;
const smallest = '-9223372036854775808';

export function prepareDepth(schema: string) {
  const depthText = `select invisible, pending, running, exact, as_of from ${schema}.depth_of($1::text, $2::jsonb, $3::bigint)`;
  const stepColumns = 'invisible, pending, running, walked, last_key, last_seq, walk';
  const stepText = `select ${stepColumns} from ${schema}.depth_step($1::text, $2::jsonb, $3::text, $4::bigint, $5::bigint, ${stepMax})`;
  // One statement, one moment: what moves from the one index to the other is counted once.
  const firstText = `select ${stepColumns} from ${schema}.depth_step($1::text, $2::jsonb, null, ${smallest}, ${smallest}, ${stepMax})
    union all select ${stepColumns} from ${schema}.depth_step($1::text, $2::jsonb, 'due', ${smallest}, ${smallest}, ${stepMax})`;
  const oldestText = `select id, age_ms from ${schema}.oldest($1::text, $2::jsonb, $3::bigint)`;

  /** Exact when the first steps reached both ends: nothing could change in between. */
  async function count(on: Queryable, queue: string, where: string): Promise<Omit<Depth, 'asOf'>> {
    const { rows } = await on.query<StepRow>(firstText, [queue, where]);
    const steps = [...rows];
    for (let step of rows) {
      while (Number(step.walked) === stepMax) {
        const values = [queue, where, step.walk, step.last_key, step.last_seq];
        step = (await on.query<StepRow>(stepText, values)).rows[0]!;
        steps.push(step);
      }
    }
    const sum = (of: (step: StepRow) => string) => steps.reduce((total, step) => total + Number(of(step)), 0);
    return {
      invisible: sum(({ invisible }) => invisible),
      pending: sum(({ pending }) => pending),
      running: sum(({ running }) => running),
      exact: steps.length === rows.length,
    };
  }

  return {
    async depth(on: Queryable, { queue, where, now }: Request): Promise<Depth> {
      const pairs = JSON.stringify(where);
      const { rows } = await on.query<DepthRow>(depthText, [queue, pairs, now ?? null]);
      const row = rows[0]!;
      if (row.invisible === null) return { ...(await count(on, queue, pairs)), asOf: Number(row.as_of) };
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
