/** Names damaged messages in the log: those that an index names and that are not there. At most one line a second. */
import type { Log } from '../../log.js';

const pauseMs = 1_000;

export class DamageLog {
  readonly #log: Log;
  #quietUntilMs = 0;
  #unsaid = 0;

  constructor(log: Log) {
    this.#log = log;
  }

  tell(queue: string, message: string): void {
    this.#unsaid += 1;
    if (performance.now() < this.#quietUntilMs) return;
    const text = 'a message is in an index and nowhere else; it was taken out of the index';
    this.#log.error({ queue, message, count: this.#unsaid }, text);
    this.#quietUntilMs = performance.now() + pauseMs;
    this.#unsaid = 0;
  }
}
