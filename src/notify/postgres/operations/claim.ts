/**
 * Takes deliveries for sending: of many that ask for the same one, one gets it. In the same statement everything is asked
 * again that may have changed since the door: deadline, preferences, retired destinations, paused campaigns.
 */
import type { Database, Queryable } from '../../../database/index.js';
import { Coalescer } from '../../coalesce.js';
import type { JsonObject, Channel, Content, DeliveryState } from '../../notification.js';
import type { Priority } from '../../kinds.js';
import type { Claim, DeliverStore } from '../../store.js';

interface ClaimRow extends Record<string, unknown> {
  readonly id: string;
  readonly verdict: 'claimed' | 'later' | 'expired' | 'suppressed' | 'ended';
  readonly state: DeliveryState;
  readonly notification: string;
  readonly user_id: string;
  readonly kind: string;
  readonly channel: Channel;
  readonly address: string;
  readonly details: string | null;
  readonly content: string | null;
  readonly priority: Priority;
  readonly attempt: number;
  readonly attempts: number;
  readonly created_at: string;
  readonly time_left_ms: string;
  readonly waited_ms: string;
  readonly later_ms: string;
  readonly chosen: string;
  readonly time_zone: string | null;
  readonly quiet_from: number | null;
  readonly quiet_until: number | null;
  readonly pinned: string | null;
}

type ClaimInput = Parameters<DeliverStore['claim']>[1];

/** Deliveries of one statement; what is asked for meanwhile makes up the next one. */
const sizeMax = 100;
const sideBySide = 1;

/** Those that are asked for at the same time are taken in one statement. */
export function claim(schema: string, database: Database): DeliverStore['claim'] {
  const text = `select * from ${schema}.claim($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint, $6::boolean, $7::bigint)`;

  const run = async (on: Queryable, inputs: readonly ClaimInput[], wait: boolean) => {
    const [first] = inputs as readonly [ClaimInput];
    const { rows } = await on.query<ClaimRow>(text, [
      inputs.map(({ id }) => id),
      inputs.map(({ provider }) => provider),
      inputs.map(({ alternative }) => alternative ?? null),
      inputs.map(({ timeoutMs }) => timeoutMs),
      first.marginMs,
      wait,
      first.now ?? null,
    ]);
    return new Map(rows.map((row) => [row.id, row]));
  };
  const alone = async (on: Queryable, input: ClaimInput): Promise<Claim> =>
    claimOf(input.id, (await run(on, [input], true)).get(input.id));

  const together = new Coalescer<ClaimInput, Claim>({
    sizeMax,
    sideBySide,
    keyOf: ({ id }) => id,
    groupOf: ({ marginMs, now }) => `${marginMs} ${now}`,
    async together(inputs) {
      const rows = await run(database, inputs, false);
      // Without a row it is unknown, or somebody holds it: asking alone tells.
      return inputs.map(({ id }) => (rows.has(id) ? claimOf(id, rows.get(id)) : undefined));
    },
    alone: (input) => alone(database, input),
  });
  return (on, input) => (on === database ? together.call(input) : alone(on, input));
}

function claimOf(id: string, row: ClaimRow | undefined): Claim {
  if (!row) return { kind: 'unknown' };
  if (row.verdict === 'later') return { kind: 'later', afterMs: Math.max(1, Number(row.later_ms)) };
  if (row.verdict !== 'claimed') {
    const moved = row.verdict !== 'ended';
    const state = row.verdict === 'ended' ? row.state : row.verdict;
    return { kind: 'ended', state, kindName: row.kind, moved };
  }
  return {
    kind: 'claimed',
    attempt: row.attempt + 1,
    timeLeftMs: Number(row.time_left_ms),
    waitedMs: Number(row.waited_ms),
    provider: row.chosen,
    knowingDuplicate: row.pinned !== null && row.pinned !== row.chosen,
    delivery: {
      id,
      notification: row.notification,
      user: row.user_id,
      kind: row.kind,
      destination: {
        channel: row.channel,
        address: row.address,
        ...(row.details !== null && { details: JSON.parse(row.details) as JsonObject }),
      },
      content: JSON.parse(row.content as string) as Content,
      createdAt: Number(row.created_at),
      attempts: row.attempts + 1,
      priority: row.priority,
      timeZone: row.time_zone ?? undefined,
      quiet: quietOf(row),
    },
  };
}

function quietOf({
  quiet_from: from,
  quiet_until: until,
}: ClaimRow): { from: number; until: number } | undefined {
  return from === null || until === null ? undefined : { from, until };
}
