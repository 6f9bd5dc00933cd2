/** Recurring messages: stored by name, moved on by compare-and-set, so that each tick is enqueued by one process. */
import type { Queryable } from '../../../database/index.js';
import type { MessageToStore, Recurring } from '../../store.js';

type RecurringRow = {
  name: string;
  queue: string;
  cron: string;
  time_zone: string;
  message: string;
  next_at: string;
};

export function prepareRecurring(schema: string) {
  const putText = `
    insert into ${schema}.recurring as r (name, queue, cron, time_zone, message, next_at) values ($1, $2, $3, $4, $5, $6::bigint)
    on conflict (name) do update set queue = excluded.queue, cron = excluded.cron, time_zone = excluded.time_zone, message = excluded.message,
      next_at = case when r.cron = excluded.cron and r.time_zone = excluded.time_zone then r.next_at else excluded.next_at end`;
  const removeText = `delete from ${schema}.recurring where name = $1::text returning name`;
  const allText = `select name, queue, cron, time_zone, message, next_at from ${schema}.recurring
    where not $1::boolean or next_at <= ${schema}.now_ms($2::bigint) order by name`;
  const advanceText = `update ${schema}.recurring set next_at = $3::bigint where name = $1::text and next_at = $2::bigint returning name`;

  return {
    async put(on: Queryable, { name, queue, cron, timeZone, message, next }: Recurring): Promise<void> {
      await on.query(putText, [name, queue, cron, timeZone, JSON.stringify(message), next]);
    },

    async remove(on: Queryable, name: string): Promise<boolean> {
      return (await on.query(removeText, [name])).rows.length > 0;
    },

    async list(on: Queryable, due: boolean, now: number | undefined): Promise<Recurring[]> {
      const { rows } = await on.query<RecurringRow>(allText, [due, now ?? null]);
      return rows.map((row) => ({
        name: row.name,
        queue: row.queue,
        cron: row.cron,
        timeZone: row.time_zone,
        message: JSON.parse(row.message) as MessageToStore,
        next: Number(row.next_at),
      }));
    },

    async advance(on: Queryable, name: string, from: number, next: number): Promise<boolean> {
      return (await on.query(advanceText, [name, from, next])).rows.length > 0;
    },
  };
}
