/**
 * Lets one caller at a time hold the only connection, in the order of asking, with a bound on the wait.
 */
import { groundError } from '../errors.js';

interface Waiter {
  enter(): void;
  refuse(error: unknown): void;
}

export class Turnstile {
  readonly #waiters = new Set<Waiter>();
  readonly #waitMaxMs: number;
  #held = false;

  constructor({ waitMaxMs }: { waitMaxMs: number }) {
    this.#waitMaxMs = waitMaxMs;
  }

  /** Resolves when the caller holds the connection; throws `database-busy` after the bound. */
  enter(): Promise<void> {
    if (!this.#held) {
      this.#held = true;
      return Promise.resolve();
    }
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        clearTimeout(timer);
        this.#waiters.delete(waiter);
      };
      const waiter: Waiter = {
        enter: () => {
          leave();
          resolve();
        },
        refuse: (error) => {
          leave();
          reject(error);
        },
      };
      const timer = setTimeout(() => {
        waiter.refuse(
          groundError(
            'database-busy',
            `the connection of the embedded database was not free within ${this.#waitMaxMs} ms`,
          ),
        );
      }, this.#waitMaxMs);
      this.#waiters.add(waiter);
    });
  }

  /** Hands the connection to whoever has waited longest. */
  leave(): void {
    const [next] = this.#waiters;
    if (next) next.enter();
    else this.#held = false;
  }

  /** Refuses everybody who waits. */
  refuseAll(error: unknown): void {
    for (const waiter of this.#waiters) waiter.refuse(error);
  }
}
