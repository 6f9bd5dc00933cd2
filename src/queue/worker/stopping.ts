/**
 * Ends a run. Guarantees: it resolves by the deadline whatever state the store is in; until shortly before it running
 * handlers may end and their settlements reach the store; what is left then is aborted and given back, its attempt
 * refunded; no timer is left.
 */
import type { Run } from './run.js';

/** Kept back from the deadline for giving back what still runs. */
const releaseMsMost = 500;

export async function stopRun(run: Run, deadlineMs: number): Promise<void> {
  const { clock, log, name } = run.settings;
  const endsAtMs = clock.monotonicMs() + deadlineMs;
  run.beginStop();
  const unwatched = run.waiting.stop();
  const releaseMs = Math.min(releaseMsMost, deadlineMs / 5);
  const done = Promise.all([run.idle(), unwatched]);
  let inTime = await within(done, deadlineMs - releaseMs);
  if (!inTime) {
    run.releaseAll();
    inTime = await within(Promise.all([run.idle(), unwatched]), endsAtMs - clock.monotonicMs());
  }
  const leftBehind = run.leases.size;
  run.end();
  if (leftBehind > 0) {
    log.warn(
      { worker: name, messages: leftBehind },
      'the worker stopped before the store had answered; these leases end by themselves',
    );
  }
}

/** Whether `work` ended within `ms`. */
async function within(work: Promise<unknown>, ms: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(() => resolve(false), Math.max(0, ms));
  });
  try {
    return await Promise.race([work.then(() => true), late]);
  } finally {
    clearTimeout(timer);
  }
}
