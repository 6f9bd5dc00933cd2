/** The naive loop of `guarantee`, which has one answer to everything: again. */
import type { Database } from '../../../src/database/index.js';
import { createQueue } from '../../../src/queue/index.js';
import { createPostgresQueueStore } from '../../../src/queue/postgres/index.js';
import type { ExperimentContext } from '../../experiment.js';
import { seededRandom } from '../../random.js';
import { until } from './engine.js';
import { killInBetween, startCounterpart, type Load, type LostAnswers } from './guarantee-load.js';
import { Processes } from './guarantee-processes.js';

export interface NaiveResult {
  readonly sends: number;
  readonly lost: number;
  readonly doubled: number;
  readonly kills: number;
  readonly lostAnswers: LostAnswers;
}

/** The same load, faults and kills, by a loop that tries whatever did not answer again. */
export async function runNaive(
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
