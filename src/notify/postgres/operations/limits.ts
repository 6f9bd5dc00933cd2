/** Counts what is sent against the limits of its kind; the function that does it stands in migration 0006. */
import type { Queryable } from '../../../database/index.js';
import type { LimitStore } from '../../store.js';

export function limitOperations(schema: string): LimitStore {
  const text = `
    select place, retry_after_ms from ${schema}.take_sends(
      $1::text[], $2::text[], $3::text[], $4::integer[], $5::text[], $6::text[], $7::integer[], $8::bigint[], $9::boolean,
      $10::bigint, $11::bigint)`;

  return {
    async takeSends(
      on: Queryable,
      { sends, all, keyWaitMs, now }: Parameters<LimitStore['takeSends']>[1],
    ): Promise<Map<number, number>> {
      const counted = sends.flatMap(({ kind, subjects }) => subjects.map((one) => ({ ...one, kind })));
      let end = 0;
      const ends = sends.map(({ subjects }) => (end += subjects.length));
      const { rows } = await on.query<{ place: number; retry_after_ms: string }>(text, [
        sends.map(({ user }) => user),
        sends.map(({ kind }) => kind),
        sends.map(({ key }) => key),
        ends,
        counted.map(({ kind }) => kind),
        counted.map(({ subject }) => subject),
        counted.map(({ count }) => count),
        counted.map(({ windowMs }) => windowMs),
        all,
        keyWaitMs ?? null,
        now ?? null,
      ]);
      return new Map(rows.map((row) => [row.place - 1, Number(row.retry_after_ms)]));
    },
  };
}
