/** A batch waits for nobody; what somebody held in that moment is tried again, a few times. */
export const pausesMs = [2, 6, 18, 54];

export async function retryBusy<Input, Answer extends { readonly outcome: { readonly kind: string } }>(
  inputs: readonly Input[],
  answers: Answer[],
  send: (inputs: readonly Input[]) => Promise<Answer[]>,
): Promise<Answer[]> {
  for (const pauseMs of pausesMs) {
    const busy = [...answers.keys()].filter((place) => answers[place]!.outcome.kind === 'busy');
    if (busy.length === 0) break;
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
    const again = await send(busy.map((place) => inputs[place]!));
    for (const [index, place] of busy.entries()) answers[place] = again[index]!;
  }
  return answers;
}
