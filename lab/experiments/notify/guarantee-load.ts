/** What both sides of `guarantee` are put under: the sends, a provider that loses answers, and the kills in between. */
import {
  accepts,
  faultShares,
  startHttpCounterpart,
  type HttpCounterpart,
} from '../../../src/testing/index.js';
import type { Processes } from './guarantee-processes.js';

const share = 0.0025;
export const kinds = ['order', 'promo'] as const;
export type Kind = (typeof kinds)[number];

export interface Load {
  readonly sends: number;
  readonly batch: number;
  readonly processes: number;
  readonly kills: number;
  readonly killEveryMs: number;
}

export const loads: Readonly<Record<'quick' | 'full', Load>> = {
  quick: { sends: 6_000, batch: 100, processes: 2, kills: 3, killEveryMs: 1_500 },
  full: { sends: 200_000, batch: 200, processes: 2, kills: 20, killEveryMs: 6_000 },
};

/** How many answers the counterpart has kept to itself, and of how many messages that it had taken. */
export interface LostAnswers {
  all: number;
  taken: number;
}

/** A provider that loses the answer to some, half of them after it has taken the message. */
export async function startCounterpart(
  seed: number,
): Promise<{ readonly counterpart: HttpCounterpart; readonly lostAnswers: LostAnswers }> {
  const script = faultShares({
    seed,
    shares: [
      [share / 4, { kind: 'cut', accepts: true }],
      [share / 4, { kind: 'cut' }],
      [share / 4, { kind: 'silent', accepts: true }],
      [share / 4, { kind: 'silent' }],
    ],
  });
  const lostAnswers: LostAnswers = { all: 0, taken: 0 };
  const counterpart = await startHttpCounterpart({
    identify: ({ headers }) => headers['webhook-id'] ?? '',
    faults: {
      next() {
        const fault = script.next();
        if (fault.kind !== 'none') lostAnswers.all += 1;
        if (fault.kind !== 'none' && accepts(fault)) lostAnswers.taken += 1;
        return fault;
      },
    },
  });
  return { counterpart, lostAnswers };
}

/** Kills until it has killed as often as told, or all is over. */
export async function killInBetween(
  processes: Processes,
  load: Load,
  random: () => number,
  over: AbortSignal,
): Promise<void> {
  for (let kill = 0; kill < load.kills && !over.aborted; kill += 1) {
    await new Promise((resolve) => setTimeout(resolve, load.killEveryMs * (0.5 + random())));
    if (!over.aborted) await processes.killOne(random);
  }
}
