/** Says which messages cannot be moved: once a minute, because the same ones are found at every step. */
import type { Log } from '../../log.js';

export function damageReport(log: Log): (damaged: readonly string[]) => void {
  let toldAtMs = Number.NEGATIVE_INFINITY;
  return (damaged) => {
    if (damaged.length === 0 || performance.now() - toldAtMs < 60_000) return;
    toldAtMs = performance.now();
    log.error(
      { damaged },
      'messages of the queue that are due cannot be moved; they are tried again each minute',
    );
  };
}
