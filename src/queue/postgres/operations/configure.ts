/** Queues and their configuration. */
import type { Database, Queryable } from '../../../database/index.js';
import { queueError } from '../../errors.js';
import { configurationDefault, type QueueConfiguration } from '../../store.js';

type ConfigurationRow = {
  exclusive_key: string | null;
  lease_ms: string;
  delay_ms: string;
  attempts_max: number;
  completed_ms: string;
  canceled_ms: string;
  errored_ms: string;
  enqueue_blocked: boolean;
  dequeue_blocked: boolean;
  rate_count: number | null;
  rate_ms: string | null;
  history: QueueConfiguration['history'];
};

export function prepareConfigure(schema: string) {
  const columns = `exclusive_key, lease_ms, delay_ms, attempts_max, completed_ms, canceled_ms, errored_ms, enqueue_blocked,
    dequeue_blocked, rate_count, rate_ms, history`;
  const queuesText = `select name from ${schema}.queues order by name`;
  const readText = `select ${columns} from ${schema}.queues where name = $1::text`;
  const lockText = `select ${columns} from ${schema}.queues where name = $1::text for update`;
  const createText = `insert into ${schema}.queues (name) values ($1::text) on conflict do nothing`;
  // A type must not change under an enqueue that is still to commit; that waits for those that have begun.
  const lockMessagesText = `lock table ${schema}.messages in share row exclusive mode`;
  const emptyText = `select not exists (
      select from ${schema}.messages m join ${schema}.queues q on q.no = m.queue_no where q.name = $1::text) as empty`;
  const writeText = `update ${schema}.queues set exclusive_key = $2, lease_ms = $3::bigint, delay_ms = $4::bigint, attempts_max = $5::integer,
    completed_ms = $6::bigint, canceled_ms = $7::bigint, errored_ms = $8::bigint, enqueue_blocked = $9::boolean,
    dequeue_blocked = $10::boolean, rate_count = $11::integer, rate_ms = $12::bigint, history = $13::text where name = $1::text`;

  const clearValuesText = `with values as (
      delete from ${schema}.exclusive_values v using ${schema}.queues q where v.queue_no = q.no and q.name = $1::text
    ) delete from ${schema}.value_changes c using ${schema}.queues q where c.queue_no = q.no and q.name = $1::text`;
  const turnText = `insert into ${schema}.value_turns (queue_no) select no from ${schema}.queues where name = $1::text on conflict do nothing`;

  return {
    async queues(on: Queryable): Promise<string[]> {
      const { rows } = await on.query<{ name: string }>(queuesText);
      return rows.map(({ name }) => name);
    },

    async configuration(on: Queryable, queue: string): Promise<QueueConfiguration> {
      const { rows } = await on.query<ConfigurationRow>(readText, [queue]);
      return rows[0] ? configurationOf(rows[0]) : configurationDefault;
    },

    async configure(
      database: Database,
      queue: string,
      change: Partial<QueueConfiguration>,
    ): Promise<QueueConfiguration> {
      return database.transaction(async (transaction) => {
        if (change.type) await transaction.query(lockMessagesText);
        await transaction.query(createText, [queue]);
        const { rows } = await transaction.query<ConfigurationRow>(lockText, [queue]);
        const before = configurationOf(rows[0]!);
        const next = { ...before, ...change };
        if (JSON.stringify(next.type) !== JSON.stringify(before.type)) {
          const { rows } = await transaction.query<{ empty: boolean }>(emptyText, [queue]);
          if (!rows[0]!.empty) throw typeFixed(queue);
          await transaction.query(clearValuesText, [queue]);
          await transaction.query(turnText, [queue]);
        }
        await transaction.query(writeText, [queue, ...valuesOf(next)]);
        return next;
      });
    },
  };
}

const typeFixed = (queue: string) =>
  queueError(
    'configuration-fixed',
    `queue "${queue}" holds messages: its type and exclusivity key cannot change now`,
    {
      field: 'type',
      ids: { queue },
    },
  );

const valuesOf = ({ type, retentionMs, rateLimit, ...plain }: QueueConfiguration): unknown[] => [
  type.kind === 'exclusive' ? type.key : null,
  plain.leaseMs,
  plain.delayMs,
  plain.attemptsMax,
  retentionMs.completed,
  retentionMs.canceled,
  retentionMs.errored,
  plain.enqueueBlocked,
  plain.dequeueBlocked,
  rateLimit?.count ?? null,
  rateLimit?.perMs ?? null,
  plain.history,
];

const configurationOf = (row: ConfigurationRow): QueueConfiguration => ({
  type: row.exclusive_key === null ? { kind: 'simple' } : { kind: 'exclusive', key: row.exclusive_key },
  leaseMs: Number(row.lease_ms),
  delayMs: Number(row.delay_ms),
  attemptsMax: row.attempts_max,
  retentionMs: {
    completed: Number(row.completed_ms),
    canceled: Number(row.canceled_ms),
    errored: Number(row.errored_ms),
  },
  enqueueBlocked: row.enqueue_blocked,
  dequeueBlocked: row.dequeue_blocked,
  rateLimit: row.rate_count === null ? undefined : { count: row.rate_count, perMs: Number(row.rate_ms) },
  history: row.history,
});
