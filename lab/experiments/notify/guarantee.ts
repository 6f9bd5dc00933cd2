/**
 * What is lost and doubled per kind when answers go missing and processes are killed, by the counterpart's own count, with
 * the ledger compared with the caller's count at every sample; and the naive loop beside it, which has one answer
 * to everything: again.
 */
import type { Database } from '../../../src/database/index.js';
import type { Ledger } from '../../../src/notify/index.js';
import { createQueue } from '../../../src/queue/index.js';
import { createPostgresQueueStore } from '../../../src/queue/postgres/index.js';
import {
  accepts,
  faultShares,
  startHttpCounterpart,
  type HttpCounterpart,
} from '../../../src/testing/index.js';
import type { Experiment, ExperimentContext, Figure, Report } from '../../experiment.js';
import { seededRandom } from '../../random.js';
import { openEngine, until, withLabServer, type LabEngine } from './engine.js';
import { Processes } from './guarantee-processes.js';
import { guaranteeTimings, webhookTo, type WorkerTask } from './guarantee-task.js';

const share = 0.0025;
const kinds = ['order', 'promo'] as const;
type Kind = (typeof kinds)[number];

interface Load {
  readonly sends: number;
  readonly batch: number;
  readonly processes: number;
  readonly kills: number;
  readonly killEveryMs: number;
}

const loads: Readonly<Record<'quick' | 'full', Load>> = {
  quick: { sends: 6_000, batch: 100, processes: 2, kills: 3, killEveryMs: 1_500 },
  full: { sends: 200_000, batch: 200, processes: 2, kills: 20, killEveryMs: 6_000 },
};

/** How many answers the counterpart has kept to itself, and of how many messages that it had taken. */
interface LostAnswers {
  all: number;
  taken: number;
}

/** A provider that loses the answer to some, half of them after it has taken the message. */
async function startCounterpart(
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
async function killInBetween(
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

interface KindResult {
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

interface EngineResult {
  readonly kinds: readonly KindResult[];
  readonly kills: number;
  readonly samples: number;
  readonly wrongSamples: number;
  readonly stuck: number;
  readonly requests: number;
  readonly attempts: number;
  readonly seconds: number;
}

async function runEngine(
  context: ExperimentContext,
  load: Load,
  url: string,
  database: Database,
): Promise<EngineResult> {
  const { counterpart } = await startCounterpart(context.seed);
  const task: WorkerTask = { databaseUrl: url, port: counterpart.port, loop: 'engine' };
  const engine = await openEngine({
    database,
    suffix: 'guarantee',
    providers: [webhookTo(counterpart.port)],
    timings: guaranteeTimings,
  });
  const processes = new Processes(task);
  const random = seededRandom(context.seed);
  const over = new AbortController();
  const ids: Record<Kind, string[]> = { order: [], promo: [] };
  let acknowledged = 0;
  let begun = 0;
  let samples = 0;
  let wrongSamples = 0;
  const sample = async (): Promise<Ledger> => {
    const from = acknowledged;
    const ledger = await engine.notify.ledger();
    const { accepted, waiting, sent, failed, expired, suppressed, ambiguous } = ledger;
    const sum = waiting + sent + failed + expired + suppressed + ambiguous;
    samples += 1;
    // What was under way while the ledger was read counts or does not.
    if (sum !== accepted || accepted < from || accepted > begun) wrongSamples += 1;
    return ledger;
  };
  try {
    await processes.start(load.processes);
    const startedAtMs = performance.now();
    const killing = killInBetween(processes, load, random, over.signal);
    const to = [{ channel: 'webhook', address: `${counterpart.url}/` } as const];
    for (let from = 0; from < load.sends; from += load.batch) {
      const kind = kinds[(from / load.batch) % 2] as Kind;
      begun += load.batch;
      const requests = Array.from({ length: load.batch }, (_, index) => ({
        user: 'u',
        key: String(from + index),
        data: { number: from + index },
        to,
      }));
      const outcomes = await engine.notify.sendMany(kind, requests);
      ids[kind].push(...outcomes.map(({ deliveries }) => deliveries[0]!.id));
      acknowledged += load.batch;
      await sample();
    }
    await until('nothing waits', 600_000, async () => (await sample()).waiting === 0);
    over.abort();
    await killing;
    const seconds = (performance.now() - startedAtMs) / 1_000;
    // Once more, with everything quiet: nothing may have moved.
    const { waiting: stuck } = await sample();
    const results = await Promise.all(kinds.map((kind) => judge(engine, counterpart, kind, ids[kind])));
    const { rows } = await database.query<{ count: string }>(
      `select count(*) as count from ${engine.schema}.history where event = 'sending'`,
    );
    return {
      kinds: results,
      kills: processes.kills,
      samples,
      wrongSamples,
      stuck,
      requests: counterpart.requests.length,
      attempts: Number(rows[0]?.count),
      seconds,
    };
  } finally {
    over.abort();
    await processes.stop();
    await engine.stop();
    await counterpart.stop();
  }
}

async function judge(
  engine: LabEngine,
  counterpart: HttpCounterpart,
  kind: Kind,
  ids: readonly string[],
): Promise<KindResult> {
  const { rows: unknown } = await engine.database.query<{ count: string }>(
    `select count(*) as count from ${engine.schema}.history h join ${engine.schema}.deliveries d on d.id = h.delivery
     where d.kind = $1 and h.event = 'ambiguous'`,
    [kind],
  );
  const { rows: ended } = await engine.database.query<{ id: string }>(
    `select id from ${engine.schema}.deliveries where kind = $1 and state <> 'sent'`,
    [kind],
  );
  const notSent = new Set(ended.map(({ id }) => id));
  const lost = ids.filter((id) => !counterpart.taken.has(id));
  return {
    kind,
    sends: ids.length,
    unknown: Number(unknown[0]?.count),
    lost: lost.length,
    doubled: ids.reduce((sum, id) => sum + Math.max(0, (counterpart.taken.get(id) ?? 0) - 1), 0),
    lostAndSaid: lost.filter((id) => notSent.has(id)).length,
    ledger: await engine.notify.ledger({ kind }),
  };
}

interface NaiveResult {
  readonly sends: number;
  readonly lost: number;
  readonly doubled: number;
  readonly kills: number;
  readonly lostAnswers: LostAnswers;
}

/** The same load, faults and kills, by a loop that tries whatever did not answer again. */
async function runNaive(
  context: ExperimentContext,
  load: Load,
  url: string,
  database: Database,
): Promise<NaiveResult> {
  const { counterpart, lostAnswers } = await startCounterpart(context.seed);
  const processes = new Processes({ databaseUrl: url, port: counterpart.port, loop: 'naive' });
  const queue = createQueue({ store: createPostgresQueueStore({ database, schema: 'queue_naive' }) });
  await queue.start();
  const random = seededRandom(context.seed);
  const over = new AbortController();
  try {
    await processes.start(load.processes);
    const killing = killInBetween(processes, load, random, over.signal);
    for (let from = 0; from < load.sends; from += load.batch) {
      const messages = Array.from({ length: load.batch }, (_, index) => ({
        id: String(from + index),
        payload: {},
        attemptsMax: 10,
      }));
      await queue.enqueue('jobs', messages);
    }
    await until('the queue is empty', 600_000, async () => {
      const { invisible, pending, running } = await queue.depth('jobs');
      return invisible + pending + running === 0;
    });
    over.abort();
    await killing;
  } finally {
    over.abort();
    await processes.stop();
    await queue.stop();
    await counterpart.stop();
  }
  const copies = [...counterpart.taken.values()];
  return {
    sends: load.sends,
    lost: load.sends - copies.length,
    doubled: copies.reduce((sum, count) => sum + count - 1, 0),
    kills: processes.kills,
    lostAnswers,
  };
}

async function run(context: ExperimentContext): Promise<Report> {
  const load = context.quick ? loads.quick : loads.full;
  return withLabServer(async ({ open, durability }) => {
    const first = await open({ poolMax: 6 });
    const ours = await runEngine(context, load, first.url, first.database);
    context.tell(`engine: ${ours.requests} calls, ${ours.kills} kills, ${ours.seconds.toFixed(1)} s`);
    const second = await open({ poolMax: 6 });
    const naive = await runNaive(context, load, second.url, second.database);
    context.tell(`naive loop: ${naive.doubled} doubled of ${naive.sends}, ${naive.kills} kills`);
    return reportOf(ours, naive, durability);
  });
}

function reportOf(ours: EngineResult, naive: NaiveResult, durability: string): Report {
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

export const guarantee: Experiment = {
  name: 'guarantee',
  shows: 'losses and duplicates per kind under lost answers and kills, the naive loop beside it',
  run,
};
