/**
 * Writes down the answers of attempts and decides what becomes of the deliveries. An answer whose attempt is no longer the
 * present one moves nothing, unless it says that the message was sent: that is true whoever asks by now. Receipts that
 * came before the answer are joined to it.
 */
import type { Database, Queryable } from '../../../database/index.js';
import { Coalescer } from '../../coalesce.js';
import type { DeliveryState } from '../../notification.js';
import type { DeliverStore, Settled } from '../../store.js';

interface SettledRow extends Record<string, unknown> {
  readonly id: string;
  readonly moved: boolean;
  readonly state: DeliveryState;
  readonly reason: string | null;
  readonly retry_in_ms: string | null;
}

type SettleInput = Parameters<DeliverStore['settle']>[1];

/** Answers of one statement; what comes meanwhile makes up the next one. */
const sizeMax = 100;
const sideBySide = 1;

/** Answers that come at the same time are written down in one statement. */
export function settle(schema: string, database: Database): DeliverStore['settle'] {
  const text = `
    select * from ${schema}.settle($1::text[], $2::integer[], $3::text[], $4::text[], $5::text[], $6::bigint[],
      $7::double precision[], $8::text[], $9::double precision[], $10::boolean[], $11::text[], $12::bigint[], $13::bigint,
      $14::boolean, $15::bigint)`;

  const run = async (on: Queryable, inputs: readonly SettleInput[], wait: boolean) => {
    const [first] = inputs as readonly [SettleInput];
    const column = <T>(value: (input: SettleInput) => T | undefined): (T | null)[] =>
      inputs.map((input) => value(input) ?? null);
    const { rows } = await on.query<SettledRow>(text, [
      column(({ id }) => id),
      column(({ attempt }) => attempt),
      column(({ provider }) => provider),
      column(({ outcome }) => outcome.kind),
      column(({ outcome }) => outcome.detail),
      column(({ outcome }) => ('retryAfterMs' in outcome ? outcome.retryAfterMs : undefined)),
      column(({ jitter }) => jitter),
      column(({ outcome }) => (outcome.kind === 'sent' ? outcome.messageId : undefined)),
      column(({ outcome }) => (outcome.kind === 'sent' ? outcome.cost : undefined)),
      column(({ atOnce }) => atOnce),
      column((input) => retireOf(input)?.reason),
      column((input) => retireOf(input)?.before),
      first.sweepMs,
      wait,
      first.now ?? null,
    ]);
    return new Map(rows.map((row) => [row.id, row]));
  };
  const alone = async (on: Queryable, input: SettleInput): Promise<Settled> => {
    const row = (await run(on, [input], true)).get(input.id);
    return row ? settledOf(row) : { moved: false, state: 'failed', reason: 'purged', retryInMs: undefined };
  };

  const together = new Coalescer<SettleInput, Settled>({
    sizeMax,
    sideBySide,
    keyOf: ({ id }) => id,
    groupOf: ({ sweepMs, now }) => `${sweepMs} ${now}`,
    async together(inputs) {
      const rows = await run(database, inputs, false);
      return inputs.map(({ id }) => {
        const row = rows.get(id);
        return row && settledOf(row);
      });
    },
    alone: (input) => alone(database, input),
  });
  return (on, input) => (on === database ? together.call(input) : alone(on, input));
}

function retireOf({ outcome }: SettleInput) {
  return outcome.kind === 'refused' ? outcome.retire : undefined;
}

function settledOf(row: SettledRow): Settled {
  return {
    moved: row.moved,
    state: row.state,
    reason: row.reason ?? undefined,
    retryInMs: row.retry_in_ms === null ? undefined : Math.max(0, Number(row.retry_in_ms)),
  };
}
