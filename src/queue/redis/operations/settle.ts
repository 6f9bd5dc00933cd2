/** extend, complete, fail, release: batches of leases, each answered by itself. */
import type { LeaseOutcome, LeaseRef } from '../../store.js';
import { type Answer, type Arguments, type Context, type Place, type Request, run } from '../call.js';
import { decodeAnswers } from '../codec.js';

const leasesPerCall = 1_000;
const bytesPerCall = 1_048_576;

export function leaseOutcomes(leases: readonly LeaseRef[], answer: unknown): LeaseOutcome[] {
  return decodeAnswers(answer as Buffer).map(
    ({ letter, state, version, leaseUntil }, index): LeaseOutcome => {
      const { id } = leases[index]!;
      if (letter === 'l') return { kind: 'lease-lost', id };
      if (letter === 'x') return { kind: 'canceled', id };
      return { kind: 'done', id, state, version, ...(leaseUntil === undefined ? {} : { leaseUntil }) };
    },
  );
}

async function settle<Lease extends LeaseRef>(
  call: { context: Context; place: Place; name: string; now: number | undefined },
  leases: readonly Lease[],
  argumentsOf: (lease: Lease) => Arguments,
): Promise<LeaseOutcome[]> {
  const outcomes: LeaseOutcome[] = [];
  const send = async (step: readonly Lease[], args: Arguments): Promise<void> => {
    const { answer }: Answer = await run(call.context, call.place, call.name, call.now, args);
    outcomes.push(...leaseOutcomes(step, answer));
  };
  let from = 0;
  let bytes = 0;
  let args: (string | number | Buffer)[] = [];
  for (const [index, lease] of leases.entries()) {
    const more = [lease.id, lease.leaseToken, ...argumentsOf(lease)];
    args.push(...more);
    bytes += String(more[2]).length;
    if (index + 1 - from < leasesPerCall && bytes < bytesPerCall && index + 1 < leases.length) continue;
    await send(leases.slice(from, index + 1), args);
    [from, bytes, args] = [index + 1, 0, []];
  }
  return outcomes;
}

export const extend = (context: Context, place: Place, { leases, now }: Request<'extend'>) =>
  settle({ context, place, name: 'extend', now }, leases, ({ leaseMs }) => [leaseMs ?? '']);

export const resultArgument = (result: string | undefined): string =>
  result === undefined ? '' : `r${result}`;

export const complete = (
  context: Context,
  place: Place,
  { leases, now }: Pick<Request<'complete'>, 'leases' | 'now'>,
) => settle({ context, place, name: 'complete', now }, leases, ({ result }) => [resultArgument(result)]);

export const fail = (context: Context, place: Place, { leases, now }: Request<'fail'>) =>
  settle({ context, place, name: 'fail', now }, leases, ({ retryDelayMs, error }) => [
    retryDelayMs ?? '',
    error,
  ]);

export const release = (context: Context, place: Place, { leases, now }: Request<'release'>) =>
  settle({ context, place, name: 'release', now }, leases, ({ delayMs, refund }) => [
    delayMs,
    refund ? '1' : '0',
  ]);
