/**
 * What `createQueue` makes: parses at the edge, speaks to one store, counts, publishes events and lets dequeues wait.
 */
import { systemClock, type Clock } from '../clock.js';
import { groundError, invalidInput } from '../errors.js';
import { timeOrderedId } from '../ids.js';
import { endsWithin, stopDeadlineMs } from '../lifecycle.js';
import { silentLog } from '../log.js';
import { noMetrics } from '../metrics.js';
import { eachByItself, idOf } from './batches.js';
import { QueueCounters } from './counters.js';
import { EventDispatcher, type EventListener } from './events.js';
import { Housekeeping } from './housekeeping.js';
import type { LeasedMessage, Message, MessageEvent, MessageState, Metadata, NewMessage } from './message.js';
import { parseLimits, type QueueLimits } from './options.js';
import * as parse from './parse.js';
import { leaseCalls } from './lease-calls.js';
import type {
  CompleteLease,
  DequeueOptions,
  EnqueueOptions,
  ListOptions,
  Queue,
  QueueOptions,
  RecurOptions,
} from './queue.js';
import { RecurringMessages } from './recurring.js';
import { requeueAll } from './requeue-all.js';
import { waitForResult } from './results.js';
import type {
  CancelOutcome,
  ChangeOutcome,
  Depth,
  EnqueueOutcome,
  LeaseOutcome,
  MessageToStore,
  QueueConfiguration,
  QueueStore,
  Recurring,
  RequeueOutcome,
} from './store.js';
import { WaitingRoom } from './waiting.js';

type Refused = Extract<CancelOutcome, { readonly kind: 'refused' }>;

export class StoreQueue implements Queue {
  readonly store: QueueStore;
  readonly #clock: Clock;
  readonly #limits: QueueLimits;
  readonly #count: QueueCounters;
  readonly #waiting: WaitingRoom;
  readonly #housekeeping: Housekeeping;
  readonly #events: EventDispatcher;
  readonly #leases: ReturnType<typeof leaseCalls>;
  readonly #recurring: RecurringMessages;
  #unsubscribe: (() => void) | undefined;
  #stopped = false;

  constructor({ store, log = silentLog, metrics = noMetrics, clock = systemClock, limits }: QueueOptions) {
    this.store = store;
    this.#clock = clock;
    this.#limits = parseLimits(limits);
    this.#count = new QueueCounters(metrics);
    const { pollMs, eventsMax } = this.#limits;
    const storeNow = () => clock.storeNow();
    this.#waiting = new WaitingRoom({ store, log, pollMs, clock });
    this.#recurring = new RecurringMessages({ store, log, storeNow });
    this.#leases = leaseCalls({
      store,
      limits: this.#limits,
      storeNow,
      parseMessage: this.#parseMessage,
      count: (queue, operation, outcomes) => this.#count.settled(queue, operation, outcomes),
    });
    this.#housekeeping = new Housekeeping({
      step: () => this.#housekeep(),
      log,
      pollMs,
      onMoved: (moved) => this.#count.moved(moved),
      onFailure: () => this.#count.housekeepingFailed(),
    });
    this.#events = new EventDispatcher({
      eventsMax,
      log,
      onDropped: (count) => this.#count.eventsDropped(count),
    });
  }

  readonly #parseMessage = (message: NewMessage): MessageToStore =>
    parse.parseMessage(message, () => timeOrderedId(this.#clock.now()), this.#limits.payloadBytesMax);

  async start(): Promise<void> {
    await this.store.start();
    this.#stopped = false;
    this.#housekeeping.start();
  }

  async stop({ deadlineMs = stopDeadlineMs }: { deadlineMs?: number } = {}): Promise<void> {
    this.#stopped = true;
    const stopping = Promise.all([this.#waiting.stop(), this.#housekeeping.stop()]).then(() =>
      this.store.stop({ deadlineMs }),
    );
    await endsWithin(deadlineMs, stopping);
  }

  async #housekeep(): Promise<{ moved: number; nextDueMs: number | undefined }> {
    const { moved, nextDueMs } = await this.store.housekeep({ now: this.#clock.storeNow() });
    return { moved: moved + (await this.#recurring.tick()), nextDueMs };
  }

  async enqueue(
    queueName: string,
    messages: readonly NewMessage[],
    options: EnqueueOptions = {},
  ): Promise<EnqueueOutcome[]> {
    const queue = parse.parseQueueName(queueName);
    const newIds = parse.parseList('messages', messages).every((message) => message?.id === undefined);
    const outcomes = await eachByItself<NewMessage, MessageToStore, EnqueueOutcome>({
      field: 'messages',
      inputs: messages,
      parse: this.#parseMessage,
      refuse: (message, error) => ({ kind: 'refused', id: idOf(message), error }),
      send: (parsed) =>
        this.store.enqueue({ queue, messages: parsed, newIds, ...options, now: this.#clock.storeNow() }),
      stepMax: this.#limits.batchMax,
    });
    for (const message of messages) if (message?.delayMs) this.#housekeeping.dueIn(message.delayMs);
    this.#count.enqueued(queue, outcomes);
    return outcomes;
  }

  async dequeue(queueName: string, options: DequeueOptions = {}): Promise<LeasedMessage[]> {
    const request = parse.parseDequeue(queueName, options, this.#limits.batchMax);
    const { queue, where } = request;
    const waitMs = options.waitMs === undefined ? 0 : parse.parseWaitMs(options.waitMs);
    const look = () => this.store.dequeue({ ...request, now: this.#clock.storeNow() });
    const isWaiting = waitMs > 0 && !this.#stopped;
    if (isWaiting) this.#housekeeping.start();
    const messages = isWaiting
      ? await this.#waiting.dequeue({
          queue,
          filter: JSON.stringify(where),
          waitMs,
          signal: options.signal,
          look,
          isOver: () => this.#stopped,
        })
      : await look();
    this.#count.dequeued(queue, messages);
    return messages;
  }

  extend(queueName: string, leases: Parameters<Queue['extend']>[1]): Promise<LeaseOutcome[]> {
    return this.#leases.extend(queueName, leases);
  }

  complete(
    queueName: string,
    leases: readonly CompleteLease[],
    options?: { readonly transaction?: unknown },
  ): Promise<LeaseOutcome[]> {
    return this.#leases.complete(queueName, leases, options);
  }

  fail(queueName: string, leases: Parameters<Queue['fail']>[1]): Promise<LeaseOutcome[]> {
    return this.#leases.fail(queueName, leases);
  }

  release(queueName: string, leases: Parameters<Queue['release']>[1]): Promise<LeaseOutcome[]> {
    return this.#leases.release(queueName, leases);
  }

  async cancel(queueName: string, ids: readonly string[]): Promise<CancelOutcome[]> {
    const queue = parse.parseQueueName(queueName);
    return this.#eachId<CancelOutcome>(ids, (step) =>
      this.store.cancel({ queue, ids: step, now: this.#clock.storeNow() }),
    );
  }

  async change(queueName: string, changes: Parameters<Queue['change']>[1]): Promise<ChangeOutcome[]> {
    const queue = parse.parseQueueName(queueName);
    return eachByItself<(typeof changes)[number], ReturnType<typeof parse.parseChange>, ChangeOutcome>({
      field: 'changes',
      inputs: changes,
      parse: (change) => parse.parseChange(change, this.#limits.payloadBytesMax),
      refuse: (change, error) => ({ kind: 'refused', id: idOf(change), error }),
      send: (parsed) => this.store.change({ queue, changes: parsed, now: this.#clock.storeNow() }),
      stepMax: this.#limits.batchMax,
    });
  }

  async requeue(queueName: string, ids: readonly string[]): Promise<RequeueOutcome[]> {
    const queue = parse.parseQueueName(queueName);
    return this.#eachId<RequeueOutcome>(ids, (step) =>
      this.store.requeue({ queue, ids: step, now: this.#clock.storeNow() }),
    );
  }

  async requeueAll(queueName: string, where: Metadata = {}): Promise<number> {
    return requeueAll({
      store: this.store,
      queue: parse.parseQueueName(queueName),
      where: parse.parseMetadata('where', where),
      limit: Math.min(1_000, this.#limits.batchMax),
      storeNow: () => this.#clock.storeNow(),
    });
  }

  async purge(queueName: string, state: Exclude<MessageState, 'running'>): Promise<number> {
    const queue = parse.parseQueueName(queueName);
    if ((parse.parseState(state) as string) === 'running')
      throw invalidInput('state', state, 'a state other than running');
    let total = 0;
    for (;;) {
      const { removed } = await this.store.purge({
        queue,
        state,
        limit: this.#limits.batchMax,
        now: this.#clock.storeNow(),
      });
      total += removed;
      if (removed === 0) return total;
    }
  }

  async get(queueName: string, id: string): Promise<Message | undefined> {
    const queue = parse.parseQueueName(queueName);
    return this.store.get({ queue, id: parse.parseId(id), now: this.#clock.storeNow() });
  }

  async list(
    queueName: string,
    options: ListOptions,
  ): Promise<{ messages: Message[]; next: string | undefined }> {
    return this.store.list({
      queue: parse.parseQueueName(queueName),
      ...parse.parseListOptions(options),
      now: this.#clock.storeNow(),
    });
  }

  async history(queueName: string, id: string): Promise<MessageEvent[]> {
    const request = { queue: parse.parseQueueName(queueName), id: parse.parseId(id) };
    return this.store.history({ ...request, now: this.#clock.storeNow() });
  }

  async result(
    queueName: string,
    id: string,
    { waitMs = 30_000, signal }: { readonly waitMs?: number; readonly signal?: AbortSignal } = {},
  ): Promise<Message | undefined> {
    return waitForResult({
      get: () => this.get(queueName, id),
      onEvent: (listener) => this.onEvent(listener),
      waitMs: parse.parseWaitMs(waitMs),
      pollMs: this.#limits.pollMs,
      isOver: () => signal?.aborted === true || this.#stopped,
      signal,
    });
  }

  async depth(queueName: string, where: Metadata = {}): Promise<Depth> {
    const queue = parse.parseQueueName(queueName);
    return this.store.depth({
      queue,
      where: parse.parseMetadata('where', where),
      now: this.#clock.storeNow(),
    });
  }

  async oldest(queueName: string, where: Metadata = {}): Promise<{ id: string; ageMs: number } | undefined> {
    const queue = parse.parseQueueName(queueName);
    const oldest = await this.store.oldest({
      queue,
      where: parse.parseMetadata('where', where),
      now: this.#clock.storeNow(),
    });
    if (Object.keys(where).length === 0) this.#count.lag(queue, oldest?.ageMs ?? 0);
    return oldest;
  }

  queues = (): Promise<string[]> => this.store.queues();

  configuration = async (queueName: string): Promise<QueueConfiguration> =>
    this.store.configuration(parse.parseQueueName(queueName));

  async configure(queueName: string, change: Partial<QueueConfiguration>): Promise<QueueConfiguration> {
    return this.store.configure(parse.parseQueueName(queueName), parse.parseConfiguration(change));
  }

  async pause(
    queueName: string,
    what: { readonly enqueue?: boolean; readonly dequeue?: boolean } = { dequeue: true },
  ): Promise<void> {
    if (what.enqueue) await this.configure(queueName, { enqueueBlocked: true });
    if (what.dequeue) await this.configure(queueName, { dequeueBlocked: true });
  }

  async resume(queueName: string): Promise<void> {
    await this.configure(queueName, { enqueueBlocked: false, dequeueBlocked: false });
    this.#waiting.hint(parse.parseQueueName(queueName));
  }

  async recur(options: RecurOptions): Promise<{ next: number }> {
    const message = this.#parseMessage({ ...parse.parseObject('options', options).message, id: 'tick' });
    const { next } = await this.#recurring.put({
      name: parse.parseRecurringName(options.name),
      queue: parse.parseQueueName(options.queue),
      cron: String(options.cron),
      timeZone: options.timeZone ?? 'UTC',
      message,
    });
    return { next };
  }

  endRecurring = async (name: string): Promise<boolean> =>
    this.#recurring.remove(parse.parseRecurringName(name));

  recurring = (): Promise<Recurring[]> => this.#recurring.list();

  onEvent(listener: EventListener): () => void {
    if (this.#stopped) throw groundError('stopped', 'the queue has been stopped');
    const end = this.#events.subscribe(listener);
    this.#unsubscribe ??= this.store.onEvents((events) => this.#events.publish(events));
    return () => {
      end();
      if (this.#events.hasListeners) return;
      this.#unsubscribe?.();
      this.#unsubscribe = undefined;
    };
  }

  #eachId<Outcome>(
    ids: readonly string[],
    send: (step: readonly string[]) => Promise<(Outcome | Refused)[]>,
  ): Promise<(Outcome | Refused)[]> {
    return eachByItself<string, string, Outcome | Refused>({
      field: 'ids',
      inputs: ids,
      parse: parse.parseId,
      refuse: (id, error) => ({ kind: 'refused', id: idOf({ id }), error }),
      send,
      stepMax: this.#limits.batchMax,
      keyOf: (id) => id,
    });
  }
}
