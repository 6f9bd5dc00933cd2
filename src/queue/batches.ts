/** Batches in which each member is answered by itself: what is refused at the edge never reaches the store. */
import { HeadgateError } from '../errors.js';
import { parseList } from './parse.js';

/** The id under which a member is answered that was refused: it may have none, or one that is no text. */
export function idOf(input: { readonly id?: unknown } | null | undefined): string {
  const id = input?.id;
  return typeof id === 'string' || typeof id === 'number' ? String(id) : '';
}

interface Batch<Input, Parsed, Outcome> {
  /** Names the list where it is none. */
  readonly field: string;
  readonly inputs: readonly Input[];
  readonly parse: (input: Input) => Parsed;
  readonly refuse: (input: Input, error: HeadgateError) => Outcome;
  readonly send: (parsed: readonly Parsed[]) => Promise<Outcome[]>;
  readonly stepMax: number;
  /** Members with the same key ask for the same: the first is sent, the others get its answer. Default: none do. */
  readonly keyOf?: (parsed: Parsed) => string;
}

/** Parses all, sends the good ones on in steps of `stepMax`, and answers in the order of the request. */
export function eachByItself<Input, Parsed, Outcome>(
  batch: Batch<Input, Parsed, Outcome>,
): Promise<Outcome[]> {
  const { length } = parseList(batch.field, batch.inputs);
  return length === 1 ? oneByItself(batch, batch.inputs[0]!) : manyByThemselves(batch);
}

/** Whoever asks for one after the other feels each list and promise that puts several in order. */
function oneByItself<Input, Parsed, Outcome>(
  { parse, refuse, send }: Batch<Input, Parsed, Outcome>,
  input: Input,
): Promise<Outcome[]> {
  let parsed: Parsed;
  try {
    parsed = parse(input);
  } catch (error) {
    if (!(error instanceof HeadgateError)) throw error;
    return Promise.resolve([refuse(input, error)]);
  }
  return send([parsed]);
}

async function manyByThemselves<Input, Parsed, Outcome>(
  request: Batch<Input, Parsed, Outcome>,
): Promise<Outcome[]> {
  const { inputs, keyOf } = request;
  const outcomes: Outcome[] = [];
  const good: Parsed[] = [];
  const places: number[] = [];
  const firstPlaces = new Map<string, number>();
  const repeated: (readonly [place: number, first: number])[] = [];
  for (const [place, input] of inputs.entries()) {
    try {
      const parsed = request.parse(input);
      const key = keyOf?.(parsed);
      const first = key === undefined ? undefined : firstPlaces.get(key);
      if (first !== undefined) {
        repeated.push([place, first]);
        continue;
      }
      if (key !== undefined) firstPlaces.set(key, place);
      good.push(parsed);
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
  for (const [place, first] of repeated) outcomes[place] = outcomes[first]!;
  return outcomes;
}
