/** A progress bar on a terminal; elsewhere a line for every tenth of the way, so that a log stays readable. */
import { Presets, SingleBar } from 'cli-progress';

export interface ProgressDisplay {
  update(stage: string, done: number, total: number): void;
  end(): void;
}

function barDisplay(): ProgressDisplay {
  const bar = new SingleBar(
    {
      format: '{stage} {bar} {percentage}% | {value}/{total} | {eta_formatted}',
      hideCursor: true,
      clearOnComplete: true,
      stream: process.stderr,
    },
    Presets.shades_classic,
  );
  let started = false;
  return {
    update(stage, done, total) {
      if (!started) bar.start(total, done, { stage });
      else {
        bar.setTotal(total);
        bar.update(done, { stage });
      }
      started = true;
    },
    end() {
      if (started) bar.stop();
      started = false;
    },
  };
}

function lineDisplay(): ProgressDisplay {
  let shown = '';
  return {
    update(stage, done, total) {
      const line = `${stage}: ${Math.floor((10 * done) / Math.max(total, 1)) * 10} % of ${total}`;
      if (line !== shown) process.stderr.write(`${line}\n`);
      shown = line;
    },
    end() {},
  };
}

export function createProgressDisplay(isTerminal = process.stderr.isTTY): ProgressDisplay {
  return isTerminal ? barDisplay() : lineDisplay();
}
