/** depth and oldest: by the clock, so what is due moves first; the rest is counted in bounded steps. */
import type { Depth } from '../../store.js';
import { type Context, type Place, type Request, run, runWhileDue } from '../call.js';
import { letterOfState } from '../codec.js';

/** As many as lua/read.lua walks in a call. */
const walk = 1_000;
/** Messages that `oldest` looks at; beyond them it answers for the first ones by priority. */
const oldestSample = 100_000;

export async function depth(
  context: Context,
  place: Place,
  { where, now }: Pick<Request<'depth'>, 'where' | 'now'>,
): Promise<Depth> {
  const pairs = Object.entries(where).flat();
  const { answer } = await runWhileDue(context, place, 'depth', now, pairs);
  const [asOf, invisible, pending, running] = answer as [number, number, number, number];
  if (pending >= 0) return { invisible, pending, running, exact: true, asOf };
  const counts = { invisible: 0, pending: 0, running: 0 };
  let exact = true;
  for (const state of ['invisible', 'pending', 'running'] as const) {
    for (let rank = 0; ; rank += walk) {
      const args = [letterOfState(state), rank, ...pairs];
      const counted = await run(context, place, 'count_matching', now, args);
      const [matched, walked] = counted.answer as [number, number];
      counts[state] += matched;
      if (walked < walk) break;
      exact = false;
    }
  }
  return { ...counts, exact, asOf };
}

export async function oldest(
  context: Context,
  place: Place,
  { where, now }: Pick<Request<'oldest'>, 'where' | 'now'>,
): Promise<{ id: string; ageMs: number } | undefined> {
  const pairs = Object.entries(where).flat();
  let best: { id: string; at: number; asOf: number } | undefined;
  for (let rank = 0; rank < oldestSample; rank += walk) {
    const { answer } = await runWhileDue(context, place, 'oldest', now, [rank, ...pairs]);
    const [asOf, at, id, walked] = answer as [number, number, Buffer, number];
    if (at >= 0 && (!best || at < best.at)) best = { id: id.toString(), at, asOf };
    if (walked < walk) break;
  }
  return best && { id: best.id, ageMs: Math.max(0, best.asOf - best.at) };
}
