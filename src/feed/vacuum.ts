/**
 * Vacuum: takes out timelines of readers who are gone or unseen for long, entries that nobody may see, and rows past
 * their time. In bounded steps, all of them at once for an operator, a few at a time by the worker.
 */
import type { FeedContext } from './context.js';
import type { VacuumOutcome } from './operate.js';

/** All steps from the beginning to the end. */
export async function vacuum(context: FeedContext): Promise<VacuumOutcome> {
  const total = { timelinesDropped: 0, entriesDeleted: 0, rowsDeleted: 0 };
  let position: string | undefined = '0';
  while (position !== undefined) {
    const step = await vacuumStep(context, position);
    total.timelinesDropped += step.timelines;
    total.entriesDeleted += step.entries;
    total.rowsDeleted += step.rows;
    position = step.position;
  }
  return total;
}

function vacuumStep({ database, store, options, now }: FeedContext, position: string) {
  const step = {
    position,
    activeMs: options.activeMs,
    deletedKeptMs: options.deletedKeptMs,
    rankingKeptMs: options.ranking.keptMs,
    rowsMax: options.stepRowsMax,
    now: now(),
  };
  if (store.apart) return store.vacuumStep(database, step);
  return database.transaction((transaction) => store.vacuumStep(transaction, step));
}

/**
 * Goes round step by step. Where it stands among the rows of the database is stored, so that workers go on where another
 * stopped; where it stands in a scan of timelines outside, which only that server understands, is known to this one.
 */
export class VacuumRound {
  #outside: string | undefined;

  /** One step; answers whether the round has ended. */
  async step(context: FeedContext): Promise<boolean> {
    const { database, store } = context;
    const stored = await store.progress(database, 'vacuum');
    const { position } = await vacuumStep(context, this.#outside ?? stored);
    this.#outside = position === undefined || /^\d+$/.test(position) ? undefined : position;
    const next = this.#outside === undefined ? (position ?? '0') : '0';
    if (next !== stored) await store.setProgress(database, { name: 'vacuum', position: next });
    return position === undefined;
  }
}
