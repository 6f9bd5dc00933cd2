/**
 * Start and stop of components. Guarantees: start() and stop() may be called twice and in any order, components start
 * in the order given and stop in the reverse one, a component that fails to start takes down those before it, and
 * stop() ends by its deadline.
 */
export interface Component {
  start(): Promise<void>;
  /** Ends by itself within about `deadlineMs`; default of the component if left out. */
  stop(options?: { deadlineMs?: number }): Promise<void>;
}

/** How long a stop may take where nobody says: Ctrl-C promises an end within five seconds. */
export const stopDeadlineMs = 5_000;

/** Waits for `work` until the deadline: what a store that has gone silent holds back must not hold a stop up. */
export async function endsWithin(deadlineMs: number, work: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const deadline = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, deadlineMs);
  });
  await Promise.race([work, deadline]).finally(() => clearTimeout(timer));
}

/** Joins components into one. Default deadline of stop(): 5,000 ms for all together, because Ctrl-C promises that. */
export function composeComponents(
  components: readonly Component[],
  { deadlineMs: deadlineDefaultMs = stopDeadlineMs } = {},
): Component {
  let started: Component[] = [];
  let starting: Promise<void> | undefined;
  let stopping: Promise<void> | undefined;

  const stopAll = async (deadlineMs: number): Promise<void> => {
    const endsAtMs = performance.now() + deadlineMs;
    const errors: unknown[] = [];
    for (const component of started.toReversed()) {
      try {
        await component.stop({ deadlineMs: Math.max(0, endsAtMs - performance.now()) });
      } catch (error) {
        errors.push(error);
      }
    }
    started = [];
    if (errors.length > 0)
      throw errors.length === 1 ? errors[0] : new AggregateError(errors, 'several components failed to stop');
  };

  return {
    start() {
      if (stopping) return stopping.then(() => this.start());
      starting ??= (async () => {
        try {
          for (const component of components) {
            started.push(component);
            await component.start();
          }
        } catch (error) {
          await stopAll(deadlineDefaultMs).catch(() => {});
          starting = undefined;
          throw error;
        }
      })();
      return starting;
    },
    stop({ deadlineMs = deadlineDefaultMs } = {}) {
      stopping ??= (async () => {
        try {
          await starting?.catch(() => {});
          await stopAll(deadlineMs);
        } finally {
          starting = undefined;
          stopping = undefined;
        }
      })();
      return stopping;
    },
  };
}
