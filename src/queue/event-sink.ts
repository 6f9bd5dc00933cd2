/**
 * Carries the changes that this process makes out of it: in order, in batches, one at a time, each batch again until it has been
 * taken (at least once). Guarantees: delays no answer of the queue, holds a bounded number of events, fills a hole in the
 * versions of a message from its history, and counts what it had to drop. What this process did not make is not carried.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { invalidInput } from '../errors.js';
import { type Component, endsWithin, stopDeadlineMs } from '../lifecycle.js';
import { type Log, silentLog } from '../log.js';
import { type Metrics, type MetricsBackend, noMetrics } from '../metrics.js';
import type { MessageEvent } from './message.js';
import { type QueueMetric, queueMetrics } from './metrics.js';
import type { Queue } from './queue.js';

export interface EventSinkOptions {
  readonly queue: Pick<Queue, 'onEvent' | 'history'>;
  /**
   * Takes a batch; it has been taken when the promise resolves. The same events may come again: an event is known by
   * `queue`, `id`, `incarnation` and `version`, and the highest version of an incarnation is its present.
   */
  readonly deliver: (events: readonly MessageEvent[]) => Promise<void>;
  /** Events of one call. Default 100. */
  readonly batchMax?: number;
  /** Events that may wait while `deliver` is slow or fails; beyond them the oldest are dropped. Default 10,000. */
  readonly eventsMax?: number;
  /** Upper bound of the first wait after a failure, in milliseconds; it doubles up to 64 times that, with full jitter. Default 500. */
  readonly retryDelayMs?: number;
  readonly log?: Log;
  readonly metrics?: MetricsBackend;
}

/** Messages of which the last version is remembered, so that a hole is seen: some megabytes. */
const versionsMax = 50_000;

/** Carries from start() on; stop() hands over what waits, as long as its deadline allows. */
export function createEventSink(options: EventSinkOptions): Component {
  for (const field of ['batchMax', 'eventsMax', 'retryDelayMs'] as const) {
    const value = options[field] ?? 1;
    if (!Number.isSafeInteger(value) || value < 1)
      throw invalidInput(field, value, 'a whole number of at least 1');
  }
  return new EventSink(options);
}

class EventSink implements Component {
  readonly #queue: EventSinkOptions['queue'];
  readonly #deliver: EventSinkOptions['deliver'];
  readonly #batchMax: number;
  readonly #eventsMax: number;
  readonly #retryDelayMs: number;
  readonly #log: Log;
  readonly #metrics: Metrics<QueueMetric>;
  /** The last version delivered, and the one before the first that was dropped, of each message lately seen. */
  readonly #delivered = new Map<string, number>();
  readonly #dropped = new Map<string, number>();
  #waiting: MessageEvent[] = [];
  #unsubscribe: (() => void) | undefined;
  #carrying: Promise<void> | undefined;
  #ending = new AbortController();

  constructor({
    queue,
    deliver,
    batchMax = 100,
    eventsMax = 10_000,
    retryDelayMs = 500,
    ...rest
  }: EventSinkOptions) {
    this.#queue = queue;
    this.#deliver = deliver;
    this.#batchMax = batchMax;
    this.#eventsMax = eventsMax;
    this.#retryDelayMs = retryDelayMs;
    this.#log = rest.log ?? silentLog;
    this.#metrics = (rest.metrics ?? noMetrics)(queueMetrics);
  }

  async start(): Promise<void> {
    if (this.#unsubscribe) return;
    this.#ending = new AbortController();
    this.#unsubscribe = this.#queue.onEvent((event) => this.#take(event));
  }

  async stop({ deadlineMs = stopDeadlineMs } = {}): Promise<void> {
    // The queue tells its listeners in a later turn: what has been made before this call is still to be told.
    await new Promise((resolve) => setImmediate(resolve));
    this.#unsubscribe?.();
    this.#unsubscribe = undefined;
    await endsWithin(deadlineMs, this.#carrying ?? Promise.resolve());
    this.#ending.abort();
    this.#drop(this.#waiting.splice(0).length);
  }

  #take(event: MessageEvent): void {
    this.#waiting.push(event);
    if (this.#waiting.length > this.#eventsMax) {
      const dropped = this.#waiting.shift()!;
      const key = keyOf(dropped);
      if (!this.#dropped.has(key)) put(this.#dropped, key, dropped.version - 1);
      this.#drop(1);
    }
    this.#carrying ??= this.#carry().finally(() => {
      this.#carrying = undefined;
    });
  }

  async #carry(): Promise<void> {
    // A later turn: what is made in one call goes out together.
    await new Promise((resolve) => setImmediate(resolve));
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, this.#batchMax);
      if (!(await this.#untilTaken(batch))) return this.#drop(batch.length);
    }
  }

  /** False when the sink ends before. */
  async #untilTaken(batch: readonly MessageEvent[]): Promise<boolean> {
    let events: readonly MessageEvent[] | undefined;
    for (let failures = 0; !this.#ending.signal.aborted; failures += 1) {
      try {
        events ??= await this.#complete(batch);
        if (events.length > 0) await this.#deliver(events);
        for (const event of events) this.#remember(event);
        this.#metrics.add('headgate_queue_sink_events_total', { outcome: 'delivered' }, events.length);
        return true;
      } catch (error) {
        this.#metrics.add('headgate_queue_sink_failures_total', {});
        this.#log.warn(
          { error, events: batch.length },
          'a batch of queue events was not taken; it is sent again',
        );
        const bound = this.#retryDelayMs * 2 ** Math.min(failures, 6);
        await delay(Math.random() * bound, undefined, { signal: this.#ending.signal }).catch(() => {});
      }
    }
    return false;
  }

  /** The batch without what has been delivered, and with what is missing before an event, if history still has it. */
  async #complete(batch: readonly MessageEvent[]): Promise<MessageEvent[]> {
    const events: MessageEvent[] = [];
    const reached = new Map<string, number>();
    for (const event of batch) {
      const key = keyOf(event);
      const last = reached.get(key) ?? this.#delivered.get(key);
      if (last !== undefined && event.version <= last) continue;
      const before = last ?? this.#dropped.get(key) ?? event.version - 1;
      if (event.version > before + 1) {
        const history = await this.#queue.history(event.queue, event.id);
        const isMissing = ({ incarnation, version }: MessageEvent) =>
          incarnation === event.incarnation && version > before && version < event.version;
        events.push(...history.filter(isMissing));
      }
      events.push(event);
      reached.set(key, event.version);
    }
    return events;
  }

  #remember(event: MessageEvent): void {
    const key = keyOf(event);
    this.#dropped.delete(key);
    if (isTerminal(event)) this.#delivered.delete(key);
    else put(this.#delivered, key, event.version);
  }

  #drop(count: number): void {
    if (count > 0) this.#metrics.add('headgate_queue_sink_events_total', { outcome: 'dropped' }, count);
  }
}

/** The latest last; the first go when there are too many. */
function put(versions: Map<string, number>, key: string, version: number): void {
  versions.delete(key);
  versions.set(key, version);
  if (versions.size > versionsMax) versions.delete(versions.keys().next().value!);
}

const keyOf = ({ queue, id, incarnation }: MessageEvent): string => JSON.stringify([queue, id, incarnation]);

/** An errored message may be requeued; then its versions go on. */
const isTerminal = ({ to }: MessageEvent): boolean => to === 'completed' || to === 'canceled';
