/** Small enqueues, dequeues and completions that come at the same time share a call of the server, each answered by itself. */
import { Gather, split } from '../../gather.js';
import type { LeasedMessage } from '../message.js';
import type { DequeueRequest, EnqueueOutcome, LeaseOutcome } from '../store.js';
import type { Request } from './call.js';

export type EnqueueCall = Pick<Request<'enqueue'>, 'queue' | 'messages' | 'now'>;
export type CompleteCall = Pick<Request<'complete'>, 'queue' | 'leases' | 'now'>;

/** A call's way when it goes alone, where it has one of its own. */
export interface Straight {
  readonly enqueue: (call: EnqueueCall) => Promise<EnqueueOutcome[]> | undefined;
  readonly dequeue: (request: DequeueRequest) => Promise<LeasedMessage[]> | undefined;
  readonly complete: (call: CompleteCall) => Promise<LeaseOutcome[]> | undefined;
}

const sameMoment = (
  [first]: readonly { readonly now: number | undefined }[],
  next: { readonly now: number | undefined },
) => first!.now === next.now;

function gatherEnqueues(
  enqueue: (call: EnqueueCall) => Promise<EnqueueOutcome[]>,
  sendOne: Straight['enqueue'],
): Gather<EnqueueCall, EnqueueOutcome[]> {
  return new Gather<EnqueueCall, EnqueueOutcome[]>({
    send: async (calls) => {
      if (calls.length === 1) return [await enqueue(calls[0]!)];
      const messages = calls.flatMap((call) => call.messages);
      const sizes = calls.map((call) => call.messages.length);
      return split(await enqueue({ ...calls[0]!, messages }), sizes);
    },
    sendOne,
    sizeOf: ({ messages }) => messages.length,
    together: true,
    fits: sameMoment,
  });
}

function gatherCompletions(
  complete: (call: CompleteCall) => Promise<LeaseOutcome[]>,
  sendOne: Straight['complete'],
): Gather<CompleteCall, LeaseOutcome[]> {
  return new Gather<CompleteCall, LeaseOutcome[]>({
    send: async (calls) => {
      if (calls.length === 1) return [await complete(calls[0]!)];
      const leases = calls.flatMap((call) => call.leases);
      const sizes = calls.map((call) => call.leases.length);
      return split(await complete({ ...calls[0]!, leases }), sizes);
    },
    sendOne,
    sizeOf: ({ leases }) => leases.length,
    together: true,
    fits: sameMoment,
  });
}

/** With a filter a dequeue may need several steps, so it goes alone. */
export const isGathered = ({ where }: DequeueRequest): boolean => Object.keys(where).length === 0;

/** A function is to end within a few milliseconds: a request costs it as much as two messages of a bulk do. */
const dequeueSizeMin = 2;

function gatherDequeues(
  dequeue: (requests: readonly DequeueRequest[]) => Promise<LeasedMessage[][]>,
  sendOne: Straight['dequeue'],
): Gather<DequeueRequest, LeasedMessage[]> {
  return new Gather<DequeueRequest, LeasedMessage[]>({
    send: dequeue,
    sendOne,
    sizeOf: ({ count }) => Math.max(count, dequeueSizeMin),
    together: true,
    fits: (requests, next) =>
      sameMoment(requests, next) && requests.every(({ requestId }) => requestId !== next.requestId),
  });
}

export const gatherCalls = (calls: {
  readonly enqueue: Parameters<typeof gatherEnqueues>[0];
  readonly dequeues: Parameters<typeof gatherDequeues>[0];
  readonly complete: Parameters<typeof gatherCompletions>[0];
  readonly straight: Straight;
}) => ({
  enqueues: gatherEnqueues(calls.enqueue, calls.straight.enqueue),
  dequeues: gatherDequeues(calls.dequeues, calls.straight.dequeue),
  completions: gatherCompletions(calls.complete, calls.straight.complete),
});
