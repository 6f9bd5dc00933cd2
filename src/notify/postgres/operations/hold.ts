/** Gives back a delivery that was claimed and not called: no attempt is spent, and the deadline moves with a later start. */
import type { Queryable } from '../../../database/index.js';
import type { Now } from '../../store.js';
import { sweepAt } from '../retry-rule.js';
import { nowSql } from '../time.js';

export interface HoldInput {
  readonly id: string;
  readonly attempt: number;
  readonly reason: string;
  readonly runAfter: number | undefined;
  readonly sweepMs: number;
  readonly now: Now;
}

export function hold(schema: string) {
  const text = `
    with clock as materialized (select ${nowSql('$6')} as now),
    moved as (
      update ${schema}.deliveries d set
        state = 'waiting',
        attempts = d.attempts - 1,
        run_after = coalesce($4::bigint, clock.now),
        expires_at = d.expires_at + greatest(0, coalesce($4::bigint, 0) - clock.now),
        sending_until = null,
        sweep_at = ${sweepAt(schema, {
          runAfter: 'coalesce($4::bigint, clock.now)',
          expiresAt: '(d.expires_at + greatest(0, coalesce($4::bigint, 0) - clock.now))',
          sweepMs: '$5',
        })}
      from clock where d.id = $1 and d.state = 'sending' and d.attempt = $2
      returning d.id, clock.now)
    insert into ${schema}.history (delivery, at, event, attempt, detail) select id, now, 'held', $2, $3 from moved`;

  return async (on: Queryable, input: HoldInput): Promise<boolean> => {
    const { rowCount } = await on.query(text, [
      input.id,
      input.attempt,
      input.reason,
      input.runAfter ?? null,
      input.sweepMs,
      input.now ?? null,
    ]);
    return rowCount > 0;
  };
}
