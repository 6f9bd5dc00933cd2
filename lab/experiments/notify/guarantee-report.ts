/** Judges both sides of `guarantee`: what the counterpart saw, beside what the engine says and the caller counted. */
import type { Ledger } from '../../../src/notify/index.js';
import type { Figure, Report } from '../../experiment.js';
import type { Kind } from './guarantee-load.js';
import type { NaiveResult } from './guarantee-naive.js';

export interface KindResult {
  readonly kind: Kind;
  readonly sends: number;
  /** Attempts whose outcome nobody knew, those open at a kill among them. */
  readonly unknown: number;
  readonly lost: number;
  readonly doubled: number;
  /** Of the losses, those that the engine calls ambiguous, failed or expired. */
  readonly lostAndSaid: number;
  readonly ledger: Ledger;
}

export interface EngineResult {
  readonly kinds: readonly KindResult[];
  readonly kills: number;
  readonly samples: number;
  readonly wrongSamples: number;
  readonly stuck: number;
  readonly requests: number;
  readonly attempts: number;
  readonly seconds: number;
}

export function reportOf(ours: EngineResult, naive: NaiveResult, durability: string): Report {
  const [order, promo] = ours.kinds as readonly [KindResult, KindResult];
  const faults = [
    promo.doubled > 0 && `at most once doubled ${promo.doubled}`,
    promo.lost > promo.ledger.ambiguous &&
      `at most once lost ${promo.lost} of ${promo.ledger.ambiguous} ambiguous`,
    order.lost > order.lostAndSaid &&
      `at least once lost ${order.lost - order.lostAndSaid} that it calls sent`,
    order.doubled > order.unknown && `at least once doubled ${order.doubled} of ${order.unknown} unknown`,
    ours.stuck > 0 && `${ours.stuck} are stuck`,
    ours.wrongSamples > 0 && `the ledger was wrong in ${ours.wrongSamples} samples`,
    ours.requests > ours.attempts && `${ours.requests} calls for ${ours.attempts} attempts`,
  ].filter((fault) => fault !== false);
  const unknown = order.unknown + promo.unknown;
  const perTenMillion = (count: number, of: number): number => Math.round((count / of) * 10_000_000);
  const rows: Figure[][] = [
    [
      'at least once',
      order.sends,
      order.unknown,
      order.lost,
      order.doubled,
      order.ledger.failed + order.ledger.expired,
    ],
    ['at most once', promo.sends, promo.unknown, promo.lost, promo.doubled, promo.ledger.ambiguous],
    ['naive loop', naive.sends, null, naive.lost, naive.doubled, null],
  ];
  return {
    tables: [
      { columns: ['', 'sends', 'outcome unknown', 'lost', 'doubled', 'ended otherwise than sent'], rows },
    ],
    figures: {
      sends: order.sends + promo.sends,
      'processes killed': ours.kills,
      'ledger samples': ours.samples,
      'ledger samples that were wrong': ours.wrongSamples,
      stuck: ours.stuck,
      'outcome unknown': unknown,
      'at least once: lost': order.lost,
      'at least once: doubled': order.doubled,
      'at most once: lost': promo.lost,
      'at most once: doubled': promo.doubled,
      'naive loop: doubled': naive.doubled,
      'naive loop: answers lost': naive.lostAnswers.all,
      'naive loop: answers lost of what was taken': naive.lostAnswers.taken,
      // Of the lost answers alone: what kills add depends on how often one kills, not on how much one sends.
      'naive loop: doubled of 10 million by lost answers': perTenMillion(
        naive.lostAnswers.taken,
        naive.sends,
      ),
      'naive loop: extra calls of 10 million by lost answers': perTenMillion(
        naive.lostAnswers.all,
        naive.sends,
      ),
      'seconds with kills': Number(ours.seconds.toFixed(1)),
    },
    reference: {
      'ambiguous of 10 million (0.25 %, assumed)': 25_000,
      'doubled by retrying all': 12_500,
      'extra calls by retrying all': 25_000,
    },
    durability,
    holds: faults.length === 0,
    verdict:
      faults.length > 0
        ? faults.join('; ')
        : `at most once doubled none and lost ${promo.lost} of ${promo.ledger.ambiguous} ambiguous; at least once lost ${order.lost} and doubled ${order.doubled} of ${order.unknown} unknown; ${ours.kills} kills, 0 stuck, ${ours.samples} ledgers right; the naive loop doubled ${naive.doubled}, promotions among them`,
  };
}
