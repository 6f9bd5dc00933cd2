/** What holders of leases call: each lease is parsed by itself, and one bad lease hurts no other. */
import { eachByItself, idOf } from './batches.js';
import type { NewMessage } from './message.js';
import type { QueueLimits } from './options.js';
import * as parse from './parse.js';
import type { CompleteLease, Queue } from './queue.js';
import type { FollowUp, LeaseOutcome, LeaseRef, MessageToStore, QueueStore } from './store.js';

export type LeaseOperation = 'extend' | 'complete' | 'fail' | 'release';

export interface LeaseCallOptions {
  readonly store: QueueStore;
  readonly limits: QueueLimits;
  readonly storeNow: () => number | undefined;
  readonly parseMessage: (message: NewMessage) => MessageToStore;
  readonly count: (queue: string, operation: LeaseOperation, outcomes: readonly LeaseOutcome[]) => void;
}

type Send<Parsed> = (request: {
  readonly queue: string;
  readonly leases: readonly Parsed[];
  readonly now: number | undefined;
}) => Promise<LeaseOutcome[]>;

export function leaseCalls({ store, limits, storeNow, parseMessage, count }: LeaseCallOptions) {
  async function settle<Input extends LeaseRef, Parsed extends LeaseRef>(
    operation: LeaseOperation,
    queueName: string,
    leases: readonly Input[],
    parseLease: (lease: Input) => Parsed,
    send: Send<Parsed>,
  ): Promise<LeaseOutcome[]> {
    const queue = parse.parseQueueName(queueName);
    const outcomes = await eachByItself<Input, Parsed, LeaseOutcome>({
      field: 'leases',
      inputs: leases,
      parse: parseLease,
      refuse: (lease, error) => ({ kind: 'refused', id: idOf(lease), error }),
      send: (parsed) => send({ queue, leases: parsed, now: storeNow() }),
      stepMax: limits.batchMax,
      keyOf: ({ id, leaseToken }) => `${id}\0${leaseToken}`,
    });
    count(queue, operation, outcomes);
    return outcomes;
  }

  const parseLease = (lease: LeaseRef): LeaseRef => {
    const { id, leaseToken } = parse.parseObject('lease', lease, 'an object with id and leaseToken');
    return { id: parse.parseId(id), leaseToken: parse.parseLeaseToken(leaseToken) };
  };
  const parseFollowUp = (followUp: NonNullable<CompleteLease['followUps']>[number]): FollowUp => {
    const { queue, messages } = parse.parseObject('followUps', followUp, 'objects with queue and messages');
    return {
      queue: parse.parseQueueName(queue),
      messages: parse.parseList('followUps.messages', messages).map(parseMessage),
    };
  };

  const parseExtend = (lease: Parameters<Queue['extend']>[1][number]) => ({
    ...parseLease(lease),
    leaseMs: lease.leaseMs === undefined ? undefined : parse.parseLeaseMs(lease.leaseMs),
  });
  const parseComplete = (lease: CompleteLease) => ({
    ...parseLease(lease),
    result:
      lease.result === undefined ? undefined : parse.parseJson('result', lease.result, limits.resultBytesMax),
    ...(lease.followUps
      ? { followUps: parse.parseList('followUps', lease.followUps).map(parseFollowUp) }
      : {}),
  });
  const parseFail = (lease: Parameters<Queue['fail']>[1][number]) => ({
    ...parseLease(lease),
    error: parse.parseErrorText(lease.error),
    retryDelayMs:
      lease.retryDelayMs === undefined ? undefined : parse.parseDelayMs('retryDelayMs', lease.retryDelayMs),
  });
  const parseRelease = (lease: Parameters<Queue['release']>[1][number]) => ({
    ...parseLease(lease),
    delayMs: lease.delayMs === undefined ? 0 : parse.parseDelayMs('delayMs', lease.delayMs),
    refund: lease.refund === undefined || parse.parseBoolean('refund', lease.refund),
  });

  return {
    extend: (queue: string, leases: Parameters<Queue['extend']>[1]) =>
      settle('extend', queue, leases, parseExtend, (request) => store.extend(request)),
    complete: (
      queue: string,
      leases: readonly CompleteLease[],
      options: { readonly transaction?: unknown } = {},
    ) =>
      settle('complete', queue, leases, parseComplete, (request) =>
        store.complete({ ...request, ...options }),
      ),
    fail: (queue: string, leases: Parameters<Queue['fail']>[1]) =>
      settle('fail', queue, leases, parseFail, (request) => store.fail(request)),
    release: (queue: string, leases: Parameters<Queue['release']>[1]) =>
      settle('release', queue, leases, parseRelease, (request) => store.release(request)),
  };
}
