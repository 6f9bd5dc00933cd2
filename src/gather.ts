/**
 * Calls of one operation on one queue that come while others are on their way go together with the next one: a commit, or a
 * round trip, is what a small call costs, and together they share it. Guarantees: a call that finds nothing on its way goes
 * at once, or when its turn ends (`together`); every call gets its own answer; they go in the order in which they came; what
 * the server refuses as a whole is sent again one by one, so that nobody fails for somebody else's sake; and while the
 * server cannot be reached nobody waits for longer than it takes two statements to find that out.
 */
import { AsyncResource } from 'node:async_hooks';

export interface Gathering<Input, Answer> {
  /** One statement for all of them; an answer each. */
  readonly send: (inputs: readonly Input[]) => Promise<readonly Answer[]>;
  /** The way of an input that goes alone, where it has one that is shorter. */
  readonly sendOne?: (input: Input) => Promise<Answer> | undefined;
  /** What an input counts towards `sizeMax`, such as its messages. */
  readonly sizeOf: (input: Input) => number;
  /** Whether an input may stand in one statement with those before it. */
  readonly fits: (inputs: readonly Input[], input: Input) => boolean;
  /** Whether an error says that nothing has been done, and may be the fault of one input. Default: never. */
  readonly isRefused?: (error: unknown) => boolean;
  /**
   * Whether calls that are made in one turn go together, the first of them too. Default: a call that finds nothing on its way goes at
   * once, which suits statements that cost more than their round trip.
   */
  readonly together?: boolean;
  /** Throws where a call may not be made, in the context of its caller: the statement runs in none. */
  readonly check?: () => void;
}

/** Statements of one operation and queue on their way at once. */
const callsMax = 2;
/** Messages, or leases, in one statement that several calls share. */
const sizeMax = 500;

interface Call<Input, Answer> {
  readonly input: Input;
  /** Monotonic time of arrival. */
  readonly atMs: number;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}

interface Line<Input, Answer> {
  readonly waiting: Call<Input, Answer>[];
  open: number;
  /** The turn's end is going to look at it. */
  isScheduled: boolean;
}

export class Gather<Input, Answer> extends AsyncResource {
  readonly #gathering: Gathering<Input, Answer>;
  readonly #lines = new Map<string, Line<Input, Answer>>();

  constructor(gathering: Gathering<Input, Answer>) {
    // A statement belongs to none of its callers: it must not run in the asynchronous context of one of them.
    super('HeadgateGather');
    this.#gathering = gathering;
  }

  run(queue: string, input: Input): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.#gathering.check?.();
      let line = this.#lines.get(queue);
      if (line === undefined) this.#lines.set(queue, (line = { waiting: [], open: 0, isScheduled: false }));
      line.waiting.push({ input, atMs: performance.now(), resolve, reject });
      if (this.#gathering.together === true) this.#nextSoon(queue, line);
      else this.runInAsyncScope(this.#next, this, queue, line);
    });
  }

  /** When all that follows from what has just happened has run: whoever was answered together asks together again. */
  #nextSoon(queue: string, line: Line<Input, Answer>): void {
    if (line.isScheduled) return;
    line.isScheduled = true;
    process.nextTick(() => {
      line.isScheduled = false;
      this.runInAsyncScope(this.#next, this, queue, line);
    });
  }

  #next(queue: string, line: Line<Input, Answer>): void {
    while (line.open < callsMax && line.waiting.length > 0) {
      const calls = this.#take(line);
      if (calls.length > 1 || !this.#sendOne(queue, line, calls[0]!)) void this.#send(queue, line, calls);
    }
    if (line.open === 0 && this.#lines.get(queue) === line) this.#lines.delete(queue);
  }

  #take({ waiting }: Line<Input, Answer>): Call<Input, Answer>[] {
    if (waiting.length === 1) return waiting.splice(0);
    const { sizeOf, fits } = this.#gathering;
    const inputs: Input[] = [];
    let size = 0;
    for (const { input } of waiting) {
      size += sizeOf(input);
      if (inputs.length > 0 && (size > sizeMax || !fits(inputs, input))) break;
      inputs.push(input);
    }
    return waiting.splice(0, inputs.length);
  }

  /** Answers whether the call has a way of its own; without a promise in between, of which a call that does little would feel each. */
  #sendOne(queue: string, line: Line<Input, Answer>, call: Call<Input, Answer>): boolean {
    const sentAtMs = performance.now();
    const answer = this.#gathering.sendOne?.(call.input);
    if (answer === undefined) return false;
    line.open += 1;
    const answered = (value: Answer): void => {
      call.resolve(value);
      this.#hasEnded(queue, line);
    };
    const failed = (error: unknown): void => {
      if (this.#gathering.isRefused?.(error) === true) call.reject(error);
      else this.#rejectLost(line, [call], sentAtMs, error);
      this.#hasEnded(queue, line);
    };
    answer.then(answered, failed);
    return true;
  }

  async #send(
    queue: string,
    line: Line<Input, Answer>,
    calls: readonly Call<Input, Answer>[],
  ): Promise<void> {
    line.open += 1;
    const sentAtMs = performance.now();
    try {
      const answers = await this.#gathering.send(calls.map(({ input }) => input));
      for (const [index, { resolve }] of calls.entries()) resolve(answers[index]!);
    } catch (error) {
      if (this.#gathering.isRefused?.(error) !== true) this.#rejectLost(line, calls, sentAtMs, error);
      else if (calls.length > 1) await Promise.all(calls.map((call) => this.#sendAlone(call)));
      else calls[0]!.reject(error);
    } finally {
      this.#hasEnded(queue, line);
    }
  }

  #hasEnded(queue: string, line: Line<Input, Answer>): void {
    line.open -= 1;
    this.#next(queue, line);
  }

  /** Nobody knows what has been done; who came before this statement went out would have been lost with it. */
  #rejectLost(
    line: Line<Input, Answer>,
    calls: readonly Call<Input, Answer>[],
    sentAtMs: number,
    error: unknown,
  ): void {
    const early = line.waiting.findIndex(({ atMs }) => atMs > sentAtMs);
    const lost = line.waiting.splice(0, early === -1 ? line.waiting.length : early);
    for (const { reject } of [...calls, ...lost]) reject(error);
  }

  async #sendAlone({ input, resolve, reject }: Call<Input, Answer>): Promise<void> {
    try {
      const [answer] = await this.#gathering.send([input]);
      resolve(answer!);
    } catch (error) {
      reject(error);
    }
  }
}

/** The answers of several calls, each its own. */
export function split<Answer>(answers: readonly Answer[], sizes: readonly number[]): Answer[][] {
  let from = 0;
  return sizes.map((size) => answers.slice(from, (from += size)));
}
