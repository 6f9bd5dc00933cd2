/** Enqueues that come at the same time share a statement and so a commit; one into a caller's transaction goes alone. */
import type { Queryable } from '../../database/index.js';
import { Gather, type Gathering, split } from '../../gather.js';
import { type EnqueueAnswer, type EnqueueCall, type Enqueued, enqueueSettled } from './operations/enqueue.js';

type Enqueue = (on: Queryable, call: EnqueueCall) => Promise<EnqueueAnswer>;

export class GatheredEnqueue {
  readonly #enqueue: Enqueue;
  readonly #gather: Gather<EnqueueCall, Enqueued[]>;

  constructor(
    enqueue: Enqueue,
    on: Queryable,
    gathering: Pick<Gathering<never, never>, 'isRefused' | 'check'>,
  ) {
    this.#enqueue = enqueue;
    this.#gather = new Gather({
      ...gathering,
      send: (calls) => this.#together(on, calls),
      sizeOf: ({ messages }) => messages.length,
      fits: ([first], { detail, newIds, now }) =>
        first!.detail === detail && first!.newIds === newIds && first!.now === now,
    });
  }

  run(call: EnqueueCall): Promise<Enqueued[]> {
    return this.#gather.run(call.queue, call);
  }

  alone(on: Queryable, call: EnqueueCall): Promise<Enqueued[]> {
    return enqueueSettled(this.#enqueue, on, call);
  }

  async #together(on: Queryable, calls: readonly EnqueueCall[]): Promise<Enqueued[][]> {
    const messages = calls.length === 1 ? calls[0]!.messages : calls.flatMap((call) => call.messages);
    const outcomes = await this.alone(on, { ...calls[0]!, messages });
    return split(
      outcomes,
      calls.map((call) => call.messages.length),
    );
  }
}
