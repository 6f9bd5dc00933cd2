/**
 * Live: tells open streams that a home may show something new. Hints travel by bucket of readers through the signals of
 * the database, gathered for a moment; a stream then reads the home itself, at most once a second, under the same rules
 * as every read. A lost hint costs a poll interval.
 */
import type { Clock } from '../clock.js';
import { groundError } from '../errors.js';
import type { Log } from '../log.js';
import type { Signals } from '../signals.js';
import type { FeedContext } from './context.js';
import type { Feed } from './feed.js';
import type { LiveHint } from './home.js';
import { readPage } from './read-home.js';
import { accountId } from './validate.js';

const topic = 'headgate_feed_live';
const bucketCount = 64n;
const gatherMs = 200;
const readEveryMs = 1_000;
const pollMs = 5_000;
const newest = '9223372036854775807';

export function bucketOf(reader: string): number {
  return Number(BigInt(reader) % bucketCount);
}

type Listener = (bucket: number | undefined) => void;

export class LiveHints {
  readonly #signals: Signals;
  readonly #log: Log;
  readonly #listeners = new Set<Listener>();
  #gathered = new Set<number>();
  #everybody = false;
  #timer: NodeJS.Timeout | undefined;
  #unsubscribe: Promise<() => Promise<void>> | undefined;

  constructor({ signals, log }: { signals: Signals; log: Log }) {
    this.#signals = signals;
    this.#log = log;
  }

  /** A post was published: its author's home shows it, or everybody's may when its author is pulled (`undefined`). */
  published(author: string | undefined): void {
    this.#gather(author === undefined ? undefined : [bucketOf(author)]);
  }

  /** Entries were written for readers of these buckets; undefined: of any. */
  delivered(buckets: readonly number[] | undefined): void {
    this.#gather(buckets);
  }

  async subscribe(listener: Listener): Promise<() => void> {
    this.#listeners.add(listener);
    this.#unsubscribe ??= this.#signals.subscribe(topic, (payload) => this.#receive(payload));
    await this.#unsubscribe.catch((error: unknown) => {
      this.#unsubscribe = undefined;
      this.#log.warn({ error }, 'live streams cannot listen and poll instead');
    });
    return () => this.#listeners.delete(listener);
  }

  async stop(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const unsubscribe = await this.#unsubscribe?.catch(() => undefined);
    this.#unsubscribe = undefined;
    await unsubscribe?.();
  }

  #gather(buckets: readonly number[] | undefined): void {
    if (buckets === undefined) this.#everybody = true;
    else for (const bucket of buckets) this.#gathered.add(bucket);
    if (!this.#everybody && this.#gathered.size === 0) return;
    this.#timer ??= setTimeout(() => this.#send(), gatherMs).unref();
  }

  #send(): void {
    this.#timer = undefined;
    const payload = this.#everybody ? '*' : [...this.#gathered].join(',');
    this.#everybody = false;
    this.#gathered = new Set();
    this.#signals.publish(topic, payload).catch((error: unknown) => {
      this.#log.debug({ error }, 'a live hint was not sent; streams poll');
    });
  }

  #receive(payload: string): void {
    if (payload === '' || payload === '*') for (const listener of this.#listeners) listener(undefined);
    else {
      for (const text of payload.split(',')) {
        for (const listener of this.#listeners) listener(Number(text));
      }
    }
  }
}

export function liveMethod(context: FeedContext, streams: { count: number }): Feed['live'] {
  return async function* live({ reader: readerGiven, signal }): AsyncGenerator<LiveHint> {
    const reader = accountId('reader', readerGiven);
    const top = async () => {
      const page = await readPage(context, { reader, limit: 1, position: newest, older: true });
      return { number: page.reader, position: page.items[0]?.position ?? '0', id: page.items[0]?.id };
    };
    if (signal.aborted)
      throw groundError('stopped', 'signal: the live stream had been ended before it began');
    let last = await top();
    const wake = new Wake(context.clock, signal);
    const bucket = bucketOf(last.number);
    const leave = await context.hints.subscribe((hinted) => {
      if (hinted === undefined || hinted === bucket) wake.call();
    });
    countStreams(context, streams, 1);
    try {
      while (await wake.next()) {
        const now = await top();
        if (BigInt(now.position) <= BigInt(last.position)) continue;
        last = now;
        yield { kind: 'posts', newest: now.id };
      }
    } finally {
      leave();
      wake.end();
      countStreams(context, streams, -1);
    }
  };
}

function countStreams({ metrics }: FeedContext, streams: { count: number }, change: number): void {
  streams.count += change;
  metrics.set('headgate_feed_live_streams', {}, streams.count);
}

/** Paces one stream: after a hint or the poll interval, but not sooner than a second after the read before. */
class Wake {
  readonly #clock: Clock;
  readonly #signal: AbortSignal;
  #called = false;
  #lastAtMs: number;
  #timer: NodeJS.Timeout | undefined;
  #resume: (() => void) | undefined;
  readonly #onAbort = () => this.#resume?.();

  constructor(clock: Clock, signal: AbortSignal) {
    this.#clock = clock;
    this.#signal = signal;
    this.#lastAtMs = clock.monotonicMs();
    signal.addEventListener('abort', this.#onAbort);
  }

  call(): void {
    this.#called = true;
    this.#resume?.();
  }

  /** False when the stream has been ended. */
  async next(): Promise<boolean> {
    if (!this.#called) await this.#sleep(pollMs);
    const dueInMs = readEveryMs - (this.#clock.monotonicMs() - this.#lastAtMs);
    if (dueInMs > 0 && !this.#signal.aborted) await this.#sleep(dueInMs, { untilHint: false });
    this.#called = false;
    this.#lastAtMs = this.#clock.monotonicMs();
    return !this.#signal.aborted;
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#signal.removeEventListener('abort', this.#onAbort);
  }

  #sleep(ms: number, { untilHint = true } = {}): Promise<void> {
    return new Promise((resolve) => {
      if (this.#signal.aborted) return resolve();
      const end = () => {
        clearTimeout(this.#timer);
        this.#resume = undefined;
        resolve();
      };
      this.#timer = setTimeout(end, ms);
      this.#resume = () => {
        if (untilHint || this.#signal.aborted) end();
      };
    });
  }
}
