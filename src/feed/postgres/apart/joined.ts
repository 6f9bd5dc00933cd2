/**
 * What is asked for while an answer is on its way is asked for together when that has come: under load few statements do the
 * work of many, and nobody waits when there is none. A failure is everybody's who was asked for together.
 */

interface Asked<Input, Output> {
  readonly input: Input;
  readonly settle: (output: Output) => void;
  readonly fail: (error: unknown) => void;
}

/** `ask` answers in the order of its inputs, at most `max` of them, all of them alike. */
export function joined<Input, Output>(
  ask: (inputs: readonly Input[]) => Promise<readonly Output[]>,
  { max, isAlike }: { max: number; isAlike: (one: Input, other: Input) => boolean },
): (input: Input) => Promise<Output> {
  let waiting: Asked<Input, Output>[] = [];
  let isServing = false;

  async function serve(): Promise<void> {
    isServing = true;
    for (let [first] = waiting; first !== undefined; [first] = waiting) {
      const { input } = first;
      const taken = waiting.filter((asked) => isAlike(asked.input, input)).slice(0, max);
      waiting = waiting.filter((asked) => !taken.includes(asked));
      try {
        const outputs = await ask(taken.map((asked) => asked.input));
        for (const [at, { settle }] of taken.entries()) settle(outputs[at]!);
      } catch (error) {
        for (const { fail } of taken) fail(error);
      }
    }
    isServing = false;
  }

  return (input) =>
    new Promise((settle, fail) => {
      waiting.push({ input, settle, fail });
      if (!isServing) void serve();
    });
}
