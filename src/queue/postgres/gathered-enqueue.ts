/**
 * Enqueues that come at the same time share a statement and so a commit; one into a caller's transaction goes alone.
 * Guarantees an answer that is settled: an id that was known when it was looked for and free when it was looked at is
 * tried again.
 */
import type { Queryable } from '../../database/index.js';
import { Gather, type Gathering, split } from '../../gather.js';
import type { EnqueueAnswer, EnqueueCall, Enqueued } from './operations/enqueue.js';

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

  async alone(on: Queryable, call: EnqueueCall): Promise<Enqueued[]> {
    const { outcomes, again } = await this.#enqueue(on, call);
    for (const place of again) {
      for (;;) {
        const once = await this.#enqueue(on, { ...call, messages: [call.messages[place]!] });
        outcomes[place] = once.outcomes[0]!;
        if (once.again.length === 0) break;
      }
    }
    return outcomes;
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
