/**
 * A completion and the messages that follow from it, in one transaction: all of it, or nothing. A follow-up that the
 * queue would refuse refuses the completion; a caller's transaction then goes on as if it had not been asked for.
 */
import type { Database, Queryable } from '../../../database/index.js';
import type { HeadgateError } from '../../../errors.js';
import type { FollowUp, LeaseOutcome, QueueStore } from '../../store.js';
import { type Enqueued, enqueueSettled, prepareEnqueue } from './enqueue.js';
import { prepareSettle, type Settled } from './settle.js';

type Lease = Parameters<QueueStore['complete']>[0]['leases'][number];

export interface CompleteCall {
  readonly queue: string;
  readonly lease: Lease;
  readonly channel: string;
  /** Answer the seq of every message. */
  readonly detail: boolean;
  readonly now: number | undefined;
}

export interface CompleteAnswer {
  readonly settled: Settled;
  /** What was enqueued, queue by queue. */
  readonly followed: readonly (FollowUp & { readonly outcomes: readonly Enqueued[] })[];
}

/** Thrown to roll back, caught where the transaction ends. */
class FollowUpRefused extends Error {
  readonly error: HeadgateError;

  constructor(error: HeadgateError) {
    super(error.message, { cause: error });
    this.error = error;
  }
}

function refusedBy(error: unknown, id: string): CompleteAnswer {
  if (!(error instanceof FollowUpRefused)) throw error;
  const outcome: LeaseOutcome = { kind: 'refused', id, error: error.error };
  return { settled: { outcome, frees: false, change: undefined }, followed: [] };
}

export function prepareCompleteWithFollowUps(schema: string) {
  const enqueue = prepareEnqueue(schema);
  const { complete } = prepareSettle(schema);

  async function run(on: Queryable, call: CompleteCall): Promise<CompleteAnswer> {
    const { queue, lease, channel, detail, now } = call;
    const [settled] = await complete(on, { queue, leases: [lease], now });
    const followed: CompleteAnswer['followed'][number][] = [];
    // A repeat of an accepted completion has no change: its follow-ups are there since the first time.
    if (!settled!.change) return { settled: settled!, followed };
    for (const { queue: target, messages } of lease.followUps ?? []) {
      const messagesTo = { queue: target, messages, channel, newIds: false, detail, now };
      const outcomes = await enqueueSettled(enqueue, on, messagesTo);
      for (const outcome of outcomes)
        if (outcome.kind === 'refused') throw new FollowUpRefused(outcome.error);
      followed.push({ queue: target, messages, outcomes });
    }
    return { settled: settled!, followed };
  }

  return {
    async inTransactionOf(database: Database, call: CompleteCall): Promise<CompleteAnswer> {
      try {
        return await database.transaction((transaction) => run(transaction, call));
      } catch (error) {
        return refusedBy(error, call.lease.id);
      }
    },

    /** Rolls back to a savepoint: the caller may commit whatever is answered. */
    async inside(transaction: Queryable, call: CompleteCall): Promise<CompleteAnswer> {
      await transaction.query('savepoint headgate_complete');
      try {
        const answer = await run(transaction, call);
        await transaction.query('release savepoint headgate_complete');
        return answer;
      } catch (error) {
        const answer = refusedBy(error, call.lease.id);
        await transaction.query('rollback to savepoint headgate_complete');
        await transaction.query('release savepoint headgate_complete');
        return answer;
      }
    },
  };
}
