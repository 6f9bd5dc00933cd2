/** The kinds in force: written by the code at its start, changed by operators, read by every worker. */
import type { Queryable } from '../../../database/index.js';
import type { Guarantee, KindPolicy, Priority } from '../../kinds.js';
import type { LimitPolicy } from '../../limits.js';
import type { KindStore, Now } from '../../store.js';
import { nowSql } from '../time.js';

interface KindRow extends Record<string, unknown> {
  readonly name: string;
  readonly delivery: Guarantee;
  readonly deadline_ms: string;
  readonly attempts_max: number;
  readonly retry_after_ms: string;
  readonly retry_after_max_ms: string;
  readonly priority: Priority;
  readonly floor: number;
  readonly required: boolean;
  readonly secret: boolean;
  readonly change_provider: boolean;
  readonly key_kept_ms: string;
  readonly limits: string;
}

const columns = `name, delivery, deadline_ms, attempts_max, retry_after_ms, retry_after_max_ms, priority, floor, required,
  secret, change_provider, key_kept_ms, limits`;

export function kindOperations(schema: string): KindStore {
  const values = `values ($1, $2, $3::bigint, $4::integer, $5::bigint, $6::bigint, $7, $8::integer, $9::boolean,
    $10::boolean, $11::boolean, $12::bigint, $13, ${nowSql('$14')}`;
  const update = `(${columns}, changed_at, changed_by) = (excluded.name, excluded.delivery, excluded.deadline_ms,
    excluded.attempts_max, excluded.retry_after_ms, excluded.retry_after_max_ms, excluded.priority, excluded.floor,
    excluded.required, excluded.secret, excluded.change_provider, excluded.key_kept_ms, excluded.limits,
    excluded.changed_at, excluded.changed_by)`;
  const put = `
    insert into ${schema}.kinds as k (${columns}, changed_at, changed_by) ${values}, 'code')
    on conflict (name) do update set ${update} where k.changed_by = 'code'`;
  const change = `
    insert into ${schema}.kinds as k (${columns}, changed_at, changed_by)
    select v.* from (${values}, 'operator')) v where exists (select 1 from ${schema}.kinds where name = $1)
    on conflict (name) do update set ${update}`;
  const all = `select ${columns} from ${schema}.kinds order by name`;

  return {
    async putKinds(on: Queryable, { policies, now }: { policies: readonly KindPolicy[]; now: Now }) {
      for (const policy of policies) await on.query(put, [...valuesOf(policy), now ?? null]);
    },

    async changeKind(on: Queryable, { policy, now }: { policy: KindPolicy; now: Now }) {
      return (await on.query(change, [...valuesOf(policy), now ?? null])).rowCount > 0;
    },

    async kinds(on: Queryable) {
      const { rows } = await on.query<KindRow>(all);
      return rows.map(policyOfRow);
    },
  };
}

function valuesOf(policy: KindPolicy): unknown[] {
  return [
    policy.name,
    policy.delivery,
    policy.deadlineMs,
    policy.attemptsMax,
    policy.retryAfterMs,
    policy.retryAfterMaxMs,
    policy.priority,
    policy.floor,
    policy.required,
    policy.secret,
    policy.changeProvider,
    policy.keyKeptMs,
    JSON.stringify(policy.limits),
  ];
}

function policyOfRow(row: KindRow): KindPolicy {
  return {
    name: row.name,
    delivery: row.delivery,
    deadlineMs: Number(row.deadline_ms),
    attemptsMax: row.attempts_max,
    retryAfterMs: Number(row.retry_after_ms),
    retryAfterMaxMs: Number(row.retry_after_max_ms),
    priority: row.priority,
    floor: row.floor,
    required: row.required,
    secret: row.secret,
    changeProvider: row.change_provider,
    keyKeptMs: Number(row.key_kept_ms),
    limits: JSON.parse(row.limits) as LimitPolicy[],
  };
}
