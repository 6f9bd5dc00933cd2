/** Errored messages of a queue wait again, in bounded steps; one that is errored anew meanwhile is not taken twice. */
import type { Metadata } from './message.js';
import type { QueueStore } from './store.js';

export interface RequeueAllRequest {
  readonly store: QueueStore;
  readonly queue: string;
  readonly where: Metadata;
  /** Messages of one step. */
  readonly limit: number;
  readonly storeNow: () => number | undefined;
}

/** How many were requeued. */
export async function requeueAll(request: RequeueAllRequest): Promise<number> {
  const { store, queue, where, limit, storeNow } = request;
  let requeued = 0;
  let after: string | undefined;
  do {
    const page = await store.list({ queue, state: 'errored', where, after, limit, now: storeNow() });
    const ids = page.messages.map(({ id }) => id);
    const outcomes = ids.length === 0 ? [] : await store.requeue({ queue, ids, now: storeNow() });
    requeued += outcomes.filter(({ kind }) => kind === 'requeued').length;
    after = page.next;
  } while (after !== undefined);
  return requeued;
}
