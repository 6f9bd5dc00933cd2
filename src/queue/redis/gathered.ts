/** Small enqueues and completions that come at the same time share a call of the server, each answered by itself. */
import { Gather, split } from '../../gather.js';
import type { EnqueueOutcome, LeaseOutcome } from '../store.js';
import type { Request } from './call.js';

export type EnqueueCall = Pick<Request<'enqueue'>, 'queue' | 'messages' | 'now'>;
export type CompleteCall = Pick<Request<'complete'>, 'queue' | 'leases' | 'now'>;

const sameMoment = (
  [first]: readonly { readonly now: number | undefined }[],
  next: { readonly now: number | undefined },
) => first!.now === next.now;

export function gatherEnqueues(
  enqueue: (call: EnqueueCall) => Promise<readonly EnqueueOutcome[]>,
): Gather<EnqueueCall, EnqueueOutcome[]> {
  return new Gather<EnqueueCall, EnqueueOutcome[]>({
    send: async (calls) => {
      const messages = calls.flatMap((call) => call.messages);
      const sizes = calls.map((call) => call.messages.length);
      return split(await enqueue({ ...calls[0]!, messages }), sizes);
    },
    sizeOf: ({ messages }) => messages.length,
    fits: sameMoment,
  });
}

export function gatherCompletions(
  complete: (call: CompleteCall) => Promise<readonly LeaseOutcome[]>,
): Gather<CompleteCall, LeaseOutcome[]> {
  return new Gather<CompleteCall, LeaseOutcome[]>({
    send: async (calls) => {
      const leases = calls.flatMap((call) => call.leases);
      const sizes = calls.map((call) => call.leases.length);
      return split(await complete({ ...calls[0]!, leases }), sizes);
    },
    sizeOf: ({ leases }) => leases.length,
    fits: sameMoment,
  });
}
