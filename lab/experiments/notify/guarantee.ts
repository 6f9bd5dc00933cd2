/**
 * What is lost and doubled per kind when answers go missing and processes are killed, by the counterpart's own count, with
 * the ledger compared with the caller's count at every sample; and the naive loop beside it, which has one answer
 * to everything: again.
 */
import type { Database } from '../../../src/database/index.js';
import type { Ledger } from '../../../src/notify/index.js';
import type { HttpCounterpart } from '../../../src/testing/index.js';
import type { Experiment, ExperimentContext, Report } from '../../experiment.js';
import { seededRandom } from '../../random.js';
import { openEngine, withLabServer, type LabEngine } from './engine.js';
import { killInBetween, kinds, loads, startCounterpart, type Kind, type Load } from './guarantee-load.js';
import { runNaive } from './guarantee-naive.js';
import { Processes } from './guarantee-processes.js';
import { reportOf, type EngineResult, type KindResult } from './guarantee-report.js';
import { guaranteeTimings, webhookTo, type WorkerTask } from './guarantee-task.js';

const standstillMsMax = 120_000;

/** However long the whole takes: it throws when no delivery ends for two minutes. */
async function untilNothingWaits(count: () => Promise<number>): Promise<void> {
  let least = Number.POSITIVE_INFINITY;
  for (let movedAtMs = performance.now(); ; ) {
    const waiting = await count();
    if (waiting === 0) return;
    if (waiting < least) [least, movedAtMs] = [waiting, performance.now()];
    if (performance.now() - movedAtMs > standstillMsMax)
      throw new Error(`${waiting} deliveries wait, as many as ${standstillMsMax} ms ago`);
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
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
    await untilNothingWaits(async () => (await sample()).waiting);
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

export const guarantee: Experiment = {
  name: 'guarantee',
  shows: 'losses and duplicates per kind under lost answers and kills, the naive loop beside it',
  run,
};
