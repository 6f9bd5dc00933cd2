/** How far something long has come: the start of the server, or the demo world. */
import { formatCount } from '../format.js';

export interface LoadingProgressProps {
  readonly title: string;
  readonly stage: string;
  readonly done: number;
  /** 0 while it is not known. */
  readonly total: number;
}

export function LoadingProgress({ title, stage, done, total }: LoadingProgressProps) {
  const isKnown = total > 0;
  return (
    <section class="loading-world" aria-labelledby="loading-world">
      <h2 id="loading-world">{title}</h2>
      <p id="loading-stage">
        {stage}
        {isKnown && (
          <span class="muted">
            {' '}
            · {formatCount(done)} of {formatCount(total)}
          </span>
        )}
      </p>
      <progress
        aria-labelledby="loading-world"
        aria-describedby="loading-stage"
        max={isKnown ? total : undefined}
        value={isKnown ? done : undefined}
      />
    </section>
  );
}
