/** Enqueue: one call of the function `enqueue`, in the caller's transaction where there is one. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Queryable } from '../../../database/index.js';
import { type HeadgateError, invalidInput } from '../../../errors.js';
import { queueError } from '../../errors.js';
import type { MessageState } from '../../message.js';
import type { EnqueueOutcome, MessageToStore } from '../../store.js';
import { pausesMs } from '../busy.js';
import { sparse, stateOf } from '../rows.js';

export interface EnqueueCall {
  readonly queue: string;
  readonly messages: readonly MessageToStore[];
  /** No id was brought by the caller: they are taken for new at first. */
  readonly newIds: boolean;
  /** Notified inside the statement; undefined: not. */
  readonly channel: string | undefined;
  /** Answer the seq of every message. */
  readonly detail: boolean;
  readonly now: number | undefined;
}

export type Enqueued = EnqueueOutcome & { readonly seq?: string };

export interface EnqueueAnswer {
  readonly outcomes: Enqueued[];
  /** Places of messages that were known a moment ago and whose id is free by now. */
  readonly again: number[];
}

type EnqueueRow = { ord: number; outcome: string; state: number | null; seq: string | null };

const keyMissing = 'key-missing:';

export function prepareEnqueue(schema: string) {
  const text = `select ord, outcome, state, seq from ${schema}.enqueue($1::text, $2::text[], $3::text[], $4::text[], $5::bigint[],
    $6::bigint[], $7::integer[], $8::bigint[], $9::boolean[], $10::text[], $11::text, $12::boolean, $13::boolean, $14::bigint)`;

  return async (
    on: Queryable,
    { queue, messages, newIds, channel, detail, now }: EnqueueCall,
  ): Promise<EnqueueAnswer> => {
    const { rows } = await on.query<EnqueueRow>(text, [
      queue,
      messages.map(({ id }) => id),
      messages.map(({ payload }) => payload),
      sparse(messages.map(({ metadata }) => metadataText(metadata))),
      sparse(messages.map(({ priority }) => priority)),
      sparse(messages.map(({ delayMs }) => delayMs)),
      sparse(messages.map(({ attemptsMax }) => attemptsMax)),
      sparse(messages.map(({ leaseMs }) => leaseMs)),
      sparse(messages.map(({ uniqueWhileLive }) => uniqueWhileLive || undefined)),
      sparse(messages.map(({ trace }) => trace)),
      channel ?? null,
      detail,
      newIds,
      now ?? null,
    ]);
    const [first, ...others] = rows;
    if (first?.outcome === 'blocked') {
      const error = queueError('enqueue-blocked', `queue "${queue}" takes no messages now`, {
        ids: { queue },
      });
      const refused = messages.map(({ id }): Enqueued => ({ kind: 'refused', id, error }));
      for (const row of others)
        refused[Number(row.ord) - 1] = outcomeOf(messages[Number(row.ord) - 1]!.id, row);
      return { outcomes: refused, again: [] };
    }
    const defaultState = stateOf(Number(first!.state));
    const outcomes: EnqueueAnswer['outcomes'] = messages.map(({ id, delayMs }) => {
      const state = delayMs === undefined ? defaultState : delayMs > 0 ? 'invisible' : 'pending';
      return { kind: 'enqueued', id, created: true, state };
    });
    const again: number[] = [];
    for (const row of others) {
      const place = Number(row.ord) - 1;
      if (row.outcome === 'again') again.push(place);
      else outcomes[place] = outcomeOf(messages[place]!.id, row);
    }
    return { outcomes, again };
  };
}

/**
 * An answer that is settled: an id that was known when it was looked for and free when it was looked at is tried again, a
 * few times; then its message is refused, and the others pass.
 */
export async function enqueueSettled(
  enqueue: ReturnType<typeof prepareEnqueue>,
  on: Queryable,
  call: EnqueueCall,
): Promise<Enqueued[]> {
  const { outcomes, again } = await enqueue(on, call);
  let open = again;
  for (const pauseMs of pausesMs) {
    if (open.length === 0) return outcomes;
    await delay(pauseMs);
    const messages = open.map((place) => call.messages[place]!);
    const next = await enqueue(on, { ...call, messages });
    for (const [index, place] of open.entries()) outcomes[place] = next.outcomes[index]!;
    open = next.again.map((index) => open[index]!);
  }
  for (const place of open) {
    const { id } = call.messages[place]!;
    const error = queueError('message-busy', `the id "${id}" is neither known nor free; ask again`, {
      ids: { queue: call.queue, message: id },
    });
    outcomes[place] = { kind: 'refused', id, error };
  }
  return outcomes;
}

function metadataText(metadata: MessageToStore['metadata']): string | undefined {
  for (const _ in metadata) return JSON.stringify(metadata);
  return undefined;
}

function outcomeOf(id: string, row: EnqueueRow): EnqueueAnswer['outcomes'][number] {
  if (row.outcome.startsWith(keyMissing))
    return { kind: 'refused', id, error: missingKey(row.outcome.slice(keyMissing.length)) };
  const state: MessageState = stateOf(Number(row.state));
  if (row.outcome === 'conflict') return { kind: 'conflict', id, state };
  const created = row.outcome === 'created';
  return { kind: 'enqueued', id, created, state, ...(created ? { seq: String(row.seq) } : {}) };
}

function missingKey(key: string): HeadgateError {
  return invalidInput(`metadata.${key}`, undefined, 'a value: the queue is exclusive by this key');
}
