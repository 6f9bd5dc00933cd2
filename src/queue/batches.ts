/** Batches in which each member is answered by itself: what is refused at the edge never reaches the store. */
import { HeadgateError } from '../errors.js';

/** Parses all, sends the good ones on in steps of `stepMax`, and answers in the order of the request. */
export async function eachByItself<Input, Parsed, Outcome>(request: {
  readonly inputs: readonly Input[];
  readonly parse: (input: Input) => Parsed;
  readonly refuse: (input: Input, error: HeadgateError) => Outcome;
  readonly send: (parsed: readonly Parsed[]) => Promise<Outcome[]>;
  readonly stepMax: number;
}): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  const good: Parsed[] = [];
  const places: number[] = [];
  for (const [place, input] of request.inputs.entries()) {
    try {
      good.push(request.parse(input));
      places.push(place);
    } catch (error) {
      if (!(error instanceof HeadgateError)) throw error;
      outcomes[place] = request.refuse(input, error);
    }
  }
  for (let from = 0; from < good.length; from += request.stepMax) {
    const step = await request.send(good.slice(from, from + request.stepMax));
    for (const [index, outcome] of step.entries()) outcomes[places[from + index]!] = outcome;
  }
  return outcomes;
}
