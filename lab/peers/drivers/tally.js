/** Counts how often each message was handled: the exact check at the end of every run. */
export class Tally {
  #counts;
  #handled = 0;
  #onAll;
  #seen = 0;

  constructor(messages, onAll) {
    this.#counts = new Uint8Array(messages);
    this.#onAll = onAll;
  }

  handle(index) {
    this.#handled += 1;
    this.#counts[index] += 1;
    if (this.#counts[index] === 1 && ++this.#seen === this.#counts.length) this.#onAll?.();
  }

  answer(seconds) {
    const lost = this.#counts.reduce((sum, count) => sum + (count === 0 ? 1 : 0), 0);
    const doubled = this.#counts.reduce((sum, count) => sum + (count > 1 ? 1 : 0), 0);
    return { seconds, handled: this.#handled, lost, doubled };
  }
}

/** Cuts [0, count) into steps of at most `size`. */
export function* steps(count, size) {
  for (let from = 0; from < count; from += size) {
    yield Array.from({ length: Math.min(size, count - from) }, (_, index) => from + index);
  }
}

export const request = JSON.parse(process.argv[2]);

export function finish(answer) {
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
