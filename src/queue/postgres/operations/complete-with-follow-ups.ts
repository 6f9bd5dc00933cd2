/**
 * A completion and the messages that follow from it, in one transaction: all of it, or nothing. A follow-up that the
 * queue would refuse refuses the completion.
 */
import type { Database, Queryable } from '../../../database/index.js';
import type { HeadgateError } from '../../../errors.js';
import type { LeaseOutcome, QueueStore } from '../../store.js';
import { prepareEnqueue } from './enqueue.js';
import { prepareSettle, type Settled } from './settle.js';

type Lease = Parameters<QueueStore['complete']>[0]['leases'][number];

export interface CompleteCall {
  readonly queue: string;
  readonly lease: Lease;
  readonly channel: string;
  readonly now: number | undefined;
}

export interface CompleteAnswer {
  readonly settled: Settled;
  /** Queues that got messages. */
  readonly wakes: readonly string[];
}

/** Thrown to roll back, caught where the transaction ends. */
class FollowUpRefused extends Error {
  readonly error: HeadgateError;

  constructor(error: HeadgateError) {
    super(error.message, { cause: error });
    this.error = error;
  }
}

export function prepareCompleteWithFollowUps(schema: string) {
  const enqueue = prepareEnqueue(schema);
  const { complete } = prepareSettle(schema);

  const run = async (
    on: Queryable,
    { queue, lease, channel, now }: CompleteCall,
  ): Promise<CompleteAnswer> => {
    const [settled] = await complete(on, { queue, leases: [lease], now });
    const wakes: string[] = [];
    // A repeat of an accepted completion has no change: its follow-ups are there since the first time.
    if (!settled!.change) return { settled: settled!, wakes };
    for (const { queue: target, messages } of lease.followUps ?? []) {
      const { outcomes } = await enqueue(on, {
        queue: target,
        messages,
        channel,
        newIds: false,
        detail: false,
        now,
      });
      for (const outcome of outcomes)
        if (outcome.kind === 'refused') throw new FollowUpRefused(outcome.error);
      wakes.push(target);
    }
    return { settled: settled!, wakes };
  };

  const inTransactionOf = async (database: Database, call: CompleteCall): Promise<CompleteAnswer> => {
    try {
      return await database.transaction((transaction) => run(transaction, call));
    } catch (error) {
      if (!(error instanceof FollowUpRefused)) throw error;
      const outcome: LeaseOutcome = { kind: 'refused', id: call.lease.id, error: error.error };
      return { settled: { outcome, frees: false, change: undefined }, wakes: [] };
    }
  };

  return Object.assign(run, { inTransactionOf });
}
