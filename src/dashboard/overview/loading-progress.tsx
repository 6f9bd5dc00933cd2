/** How far the demo world is loaded. */
import type { DemoProgress } from '../api-types.js';
import { formatCount } from '../format.js';

export function LoadingProgress({ demo }: { readonly demo: DemoProgress }) {
  const isKnown = demo.total > 0;
  return (
    <section class="loading-world" aria-labelledby="loading-world">
      <h2 id="loading-world">The demo world is loading</h2>
      <p id="loading-stage">
        {demo.stage}
        {isKnown && (
          <span class="muted">
            {' '}
            · {formatCount(demo.done)} of {formatCount(demo.total)}
          </span>
        )}
      </p>
      <progress
        aria-labelledby="loading-world"
        aria-describedby="loading-stage"
        max={isKnown ? demo.total : undefined}
        value={isKnown ? demo.done : undefined}
      />
    </section>
  );
}
