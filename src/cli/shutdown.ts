/**
 * Ctrl-C and SIGTERM: the first asks for a clean stop, which has five seconds; a second one after a second, or the end of
 * the five, ends the process at once.
 */
export interface Shutdown {
  /** Aborted by the first signal. */
  readonly signal: AbortSignal;
  /** Waits for the first signal, or for `finish`. */
  wait(): Promise<void>;
  /** From here on the process has `stopDeadlineMs` to stop; a signal begins it as well. */
  begin(): void;
}

export const stopDeadlineMs = 5_000;
/** Terminals and npm both pass a Ctrl-C on, so the same one may arrive twice within moments. */
const repeatMs = 1_000;

export function watchSignals(): Shutdown {
  const controller = new AbortController();
  let firstAtMs: number | undefined;
  let guard: NodeJS.Timeout | undefined;
  const begin = (): void => {
    guard ??= setTimeout(() => {
      process.stderr.write(
        'headgate: the stop took longer than its deadline; ending now. Acknowledged work is kept.\n',
      );
      process.exit(1);
    }, stopDeadlineMs - 200);
    guard.unref();
  };
  const onSignal = (): void => {
    if (firstAtMs !== undefined && performance.now() - firstAtMs > repeatMs) process.exit(130);
    if (firstAtMs !== undefined) return;
    firstAtMs = performance.now();
    // what is still starting may wait for a database that does not answer
    begin();
    controller.abort();
  };
  process.on('SIGINT', onSignal);
  process.on('SIGTERM', onSignal);
  return {
    signal: controller.signal,
    wait: () =>
      new Promise((resolve) => {
        if (controller.signal.aborted) resolve();
        else controller.signal.addEventListener('abort', () => resolve(), { once: true });
      }),
    begin,
  };
}
