/** cancel, change, requeue by ids, and purge of a state. */
import type { CancelOutcome, ChangeOutcome, RequeueOutcome } from '../../store.js';
import { type Arguments, type Context, type Place, type Request, run } from '../call.js';
import { decodeAnswers, letterOfState, type PackedAnswer } from '../codec.js';

const idsPerCall = 1_000;
/** Forgotten by one call at most. */
const purgedPerCall = 500;

async function byId<Item, Outcome>(
  call: { context: Context; place: Place; name: string; now: number | undefined },
  items: readonly Item[],
  argumentsOf: (item: Item) => Arguments,
  outcomeOf: (item: Item, answer: PackedAnswer) => Outcome,
): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  for (let from = 0; from < items.length; from += idsPerCall) {
    const step = items.slice(from, from + idsPerCall);
    const { answer } = await run(call.context, call.place, call.name, call.now, step.flatMap(argumentsOf));
    const answers = decodeAnswers(answer as Buffer);
    outcomes.push(...step.map((item, index) => outcomeOf(item, answers[index]!)));
  }
  return outcomes;
}

export const cancel = (context: Context, place: Place, { ids, now }: Request<'cancel'>) =>
  byId(
    { context, place, name: 'cancel', now },
    ids,
    (id) => [id],
    (id, { letter, state }): CancelOutcome => {
      if (letter === 'u') return { kind: 'unknown', id };
      return letter === 't' ? { kind: 'terminal', id, state } : { kind: 'canceled', id };
    },
  );

export const change = (context: Context, place: Place, { changes, now }: Request<'change'>) =>
  byId(
    { context, place, name: 'change', now },
    changes,
    ({ id, priority = '', visibleAt = '', payload }) => [
      id,
      priority,
      visibleAt,
      payload === undefined ? '' : `p${payload}`,
    ],
    ({ id }, { letter, state, version }): ChangeOutcome => {
      if (letter === 'u') return { kind: 'unknown', id };
      return letter === 't' ? { kind: 'not-waiting', id, state } : { kind: 'changed', id, state, version };
    },
  );

export const requeue = (context: Context, place: Place, { ids, now }: Request<'requeue'>) =>
  byId(
    { context, place, name: 'requeue', now },
    ids,
    (id) => [id],
    (id, { letter, state, version }): RequeueOutcome => {
      if (letter === 'u') return { kind: 'unknown', id };
      return letter === 't' ? { kind: 'not-errored', id, state } : { kind: 'requeued', id, state, version };
    },
  );

export async function purge(
  context: Context,
  place: Place,
  { state, limit, now }: Request<'purge'>,
): Promise<{ removed: number }> {
  const args = [letterOfState(state), Math.min(limit, purgedPerCall)];
  const { answer } = await run(context, place, 'purge', now, args);
  return { removed: Number(answer) };
}
