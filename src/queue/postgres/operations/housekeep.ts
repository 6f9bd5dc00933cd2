/** What runs in the background, and what a waiting process asks: each one statement for all queues. */
import type { Queryable } from '../../../database/index.js';

type HousekeepRow = {
  moved: number;
  next_due_ms: string | null;
  woken: string[];
  repaired: number;
  damaged: string[];
};

export interface HousekeepAnswer {
  readonly moved: number;
  readonly nextDueMs: number | undefined;
  /** Queues in which something has become pending. */
  readonly woken: readonly string[];
  /** Exclusivity values that disagreed with their messages: 0 unless something is wrong. */
  readonly repaired: number;
  /** Messages that cannot be moved, with the reason. */
  readonly damaged: readonly string[];
}

export function prepareHousekeep(schema: string) {
  const housekeepText = `select moved, next_due_ms, woken, repaired, damaged from ${schema}.housekeep($1::bigint)`;
  const maintainText = `select ${schema}.maintain($1::bigint)`;
  const readyText = `select name from ${schema}.ready($1::text[], $2::bigint) as name`;
  const timeText = `select ${schema}.now_ms($1::bigint) as now`;

  return {
    async housekeep(on: Queryable, now: number | undefined): Promise<HousekeepAnswer> {
      const { rows } = await on.query<HousekeepRow>(housekeepText, [now ?? null]);
      const { moved, next_due_ms: nextDueMs, woken, repaired, damaged } = rows[0]!;
      return {
        moved,
        nextDueMs: nextDueMs === null ? undefined : Number(nextDueMs),
        woken,
        repaired,
        damaged,
      };
    },

    /** Partitions, once a minute: they are made ahead and dropped whole. */
    async maintain(on: Queryable, now: number | undefined): Promise<void> {
      await on.query(maintainText, [now ?? null]);
    },

    async ready(on: Queryable, queues: readonly string[], now: number | undefined): Promise<string[]> {
      const { rows } = await on.query<{ name: string }>(readyText, [queues, now ?? null]);
      return rows.map(({ name }) => name);
    },

    async time(on: Queryable, now: number | undefined): Promise<number> {
      const { rows } = await on.query<{ now: string }>(timeText, [now ?? null]);
      return Number(rows[0]!.now);
    },
  };
}
