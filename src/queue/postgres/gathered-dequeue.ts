/** Dequeues without a filter that come at the same time share a statement, where the queue allows it. */
import { Gather, type Gathering } from '../../gather.js';
import type { LeasedMessage } from '../message.js';
import type { DequeueRequest } from '../store.js';

type Dequeue = (requests: readonly DequeueRequest[]) => Promise<(LeasedMessage[] | undefined)[]>;

/** How long a queue that wants each request alone is not asked together. */
const aloneMs = 60_000;

export class GatheredDequeue {
  readonly #dequeue: Dequeue;
  readonly #gather: Gather<DequeueRequest, LeasedMessage[] | undefined>;
  /** Monotonic time until which requests of a queue go alone. */
  readonly #aloneUntil = new Map<string, number>();

  constructor(dequeue: Dequeue, gathering: Pick<Gathering<never, never>, 'isRefused' | 'check'>) {
    this.#dequeue = dequeue;
    this.#gather = new Gather({
      ...gathering,
      send: dequeue,
      sizeOf: ({ count }) => count,
      // A request that is there twice has to see the leases of the first.
      fits: (requests, { requestId, now }) =>
        requests.every((other) => other.requestId !== requestId && other.now === now),
    });
  }

  async run(request: DequeueRequest): Promise<LeasedMessage[]> {
    if (this.#goesAlone(request)) return this.#alone(request);
    const messages = await this.#gather.run(request.queue, request);
    if (messages !== undefined) return messages;
    this.#aloneUntil.set(request.queue, performance.now() + aloneMs);
    return this.#alone(request);
  }

  async #alone(request: DequeueRequest): Promise<LeasedMessage[]> {
    const [messages] = await this.#dequeue([request]);
    return messages ?? [];
  }

  #goesAlone({ queue, where }: DequeueRequest): boolean {
    if (Object.keys(where).length > 0) return true;
    const until = this.#aloneUntil.get(queue);
    if (until === undefined) return false;
    if (performance.now() < until) return true;
    this.#aloneUntil.delete(queue);
    return false;
  }
}
