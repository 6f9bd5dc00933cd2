/**
 * Calls that are made at the same time go to the database together. Guarantees: each caller gets its own answer, and an
 * error of its own where one call spoils the batch; nobody waits for a row or key that somebody else holds except its own
 * caller; the first of several calls is not delayed beyond the present turn of the event loop.
 *
 * It is not the queue's gathering (src/gather.ts), for each of its rules is the other way round. There order is a promise:
 * a batch is the front of one line, it leaves at once, and an error of which nobody knows what it did must not be tried
 * again. Here calls know nothing of each other: one that may not go yet is passed over, the batch waits for the end of the
 * turn, a single answer may be "busy", and a batch that failed has done nothing, so that each is tried alone, by another
 * statement that waits for its row. One class for both would be two behind four switches.
 */
import { AsyncResource } from 'node:async_hooks';
import { isHeadgateError } from '../errors.js';

export interface CoalescerOptions<Input, Output> {
  /** Most calls of one batch. */
  readonly sizeMax: number;
  /** Batches on their way; what comes meanwhile makes up the next one. */
  readonly sideBySide: number;
  /** Calls of the same key are never in one batch. Default: they may be. */
  readonly keyOf?: (input: Input) => string;
  /** Only calls of the same group are in one batch. Default: all are. */
  readonly groupOf?: (input: Input) => unknown;
  /** Undefined in the place of an answer: busy; it is run alone. Must have done nothing when it throws. */
  readonly together: (inputs: readonly Input[]) => Promise<readonly (Output | undefined)[]>;
  readonly alone: (input: Input) => Promise<Output>;
}

interface Call<Input, Output> {
  readonly input: Input;
  readonly resolve: (output: Output) => void;
  readonly reject: (error: unknown) => void;
}

/** What is no fault of any one call: trying each alone would only make it worse. */
const common = ['database-unavailable', 'database-busy', 'database-closed'] as const;

export class Coalescer<Input, Output> extends AsyncResource {
  readonly #options: CoalescerOptions<Input, Output>;
  #waiting: Call<Input, Output>[] = [];
  #running = 0;
  #scheduled = false;

  constructor(options: CoalescerOptions<Input, Output>) {
    // A batch belongs to none of its callers: it must not run in the asynchronous context of one of them.
    super('HeadgateCoalescer');
    this.#options = options;
  }

  call(input: Input): Promise<Output> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ input, resolve, reject });
      if (this.#scheduled) return;
      this.#scheduled = true;
      this.runInAsyncScope(setImmediate, undefined, () => {
        this.#scheduled = false;
        this.#flush();
      });
    });
  }

  #flush(): void {
    while (this.#running < this.#options.sideBySide && this.#waiting.length > 0) {
      this.#running += 1;
      void this.#run(this.#take()).finally(() => {
        this.#running -= 1;
        this.#flush();
      });
    }
  }

  #take(): Call<Input, Output>[] {
    const { sizeMax, keyOf, groupOf = () => undefined } = this.#options;
    const keys = new Set<string>();
    const taken: Call<Input, Output>[] = [];
    const left: Call<Input, Output>[] = [];
    const group = groupOf((this.#waiting[0] as Call<Input, Output>).input);
    for (const call of this.#waiting) {
      const key = keyOf?.(call.input);
      const isNext = key === undefined || !keys.has(key);
      const fits = taken.length < sizeMax && isNext && groupOf(call.input) === group;
      (fits ? taken : left).push(call);
      if (key !== undefined) keys.add(key);
    }
    this.#waiting = left;
    return taken;
  }

  async #run(calls: readonly Call<Input, Output>[]): Promise<void> {
    let outputs: readonly (Output | undefined)[];
    try {
      outputs = await this.#options.together(calls.map(({ input }) => input));
    } catch (error) {
      if (common.some((code) => isHeadgateError(error, code))) {
        for (const { reject } of calls) reject(error);
        return;
      }
      outputs = [];
    }
    for (const [index, { input, resolve, reject }] of calls.entries()) {
      const output = outputs[index];
      if (output !== undefined) resolve(output);
      else this.#options.alone(input).then(resolve, reject);
    }
  }
}
