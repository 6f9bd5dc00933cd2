/** Paces what happens again and again while something is broken, so that it does not fill the log. */
export function atMostEvery<A extends unknown[]>(
  intervalMs: number,
  act: (...args: A) => void,
): (...args: A) => void {
  let actedAtMs = Number.NEGATIVE_INFINITY;
  return (...args) => {
    const nowMs = performance.now();
    if (nowMs - actedAtMs < intervalMs) return;
    actedAtMs = nowMs;
    act(...args);
  };
}
