/**
 * What `createQueue` makes: parses at the edge, speaks to one store, counts, publishes events and lets dequeues wait.
 */
import { systemClock, type Clock } from '../clock.js';
import { groundError, invalidInput } from '../errors.js';
import { randomToken, timeOrderedId } from '../ids.js';
import { silentLog } from '../log.js';
import { noMetrics, type MetricsBackend } from '../metrics.js';
import { eachByItself } from './batches.js';
import { EventDispatcher, type EventListener } from './events.js';
import { Housekeeping } from './housekeeping.js';
import type { LeasedMessage, Message, MessageEvent, MessageState, Metadata, NewMessage } from './message.js';
import { queueMetrics } from './metrics.js';
import { parseLimits, type QueueLimits } from './options.js';
import * as parse from './parse.js';
import type {
  CompleteLease,
  DequeueOptions,
  EnqueueOptions,
  ListOptions,
  Queue,
  QueueOptions,
} from './queue.js';
import type {
  CancelOutcome,
  ChangeOutcome,
  DequeueRequest,
  Depth,
  EnqueueOutcome,
  FollowUp,
  LeaseOutcome,
  LeaseRef,
  QueueConfiguration,
  QueueStore,
  RequeueOutcome,
} from './store.js';
import { WaitingRoom } from './waiting.js';

export class StoreQueue implements Queue {
  readonly store: QueueStore;
  readonly #clock: Clock;
  readonly #limits: QueueLimits;
  readonly #metrics: ReturnType<typeof bindMetrics>;
  readonly #waiting: WaitingRoom;
  readonly #housekeeping: Housekeeping;
  readonly #events: EventDispatcher;
  #unsubscribe: (() => void) | undefined;
  #stopped = false;

  constructor({ store, log = silentLog, metrics = noMetrics, clock = systemClock, limits }: QueueOptions) {
    this.store = store;
    this.#clock = clock;
    this.#limits = parseLimits(limits);
    this.#metrics = bindMetrics(metrics);
    const { pollMs, eventsMax } = this.#limits;
    const storeNow = () => clock.storeNow();
    this.#waiting = new WaitingRoom({ store, log, pollMs, storeNow });
    this.#housekeeping = new Housekeeping({
      step: () => store.housekeep({ now: storeNow() }),
      log,
      pollMs,
      onMoved: (moved) => this.#metrics.add('headgate_queue_housekeeping_moved_total', {}, moved),
      onFailure: () => this.#metrics.add('headgate_queue_housekeeping_failures_total', {}),
    });
    const onDropped = (count: number) => this.#metrics.add('headgate_queue_events_dropped_total', {}, count);
    this.#events = new EventDispatcher({ eventsMax, log, onDropped });
  }

  async start(): Promise<void> {
    await this.store.start();
    this.#stopped = false;
    this.#housekeeping.start();
  }

  async stop(options?: { deadlineMs?: number }): Promise<void> {
    this.#stopped = true;
    await this.#waiting.stop();
    await this.#housekeeping.stop();
    await this.store.stop(options);
  }

  async enqueue(
    queueName: string,
    messages: readonly NewMessage[],
    options: EnqueueOptions = {},
  ): Promise<EnqueueOutcome[]> {
    const queue = parse.parseQueueName(queueName);
    const newId = () => timeOrderedId(this.#clock.now());
    const outcomes = await eachByItself<NewMessage, ReturnType<typeof parse.parseMessage>, EnqueueOutcome>({
      inputs: messages,
      parse: (message) => parse.parseMessage(message, newId, this.#limits.payloadBytesMax),
      refuse: (message, error) => ({ kind: 'refused', id: String(message?.id ?? ''), error }),
      send: (parsed) =>
        this.store.enqueue({ queue, messages: parsed, ...options, now: this.#clock.storeNow() }),
      stepMax: this.#limits.batchMax,
    });
    for (const message of messages) if (message?.delayMs) this.#housekeeping.dueIn(message.delayMs);
    this.#countOutcomes(outcomes, (outcome, amount) => {
      this.#metrics.add('headgate_queue_enqueued_total', { queue, outcome }, amount);
    });
    return outcomes;
  }

  async dequeue(queueName: string, options: DequeueOptions = {}): Promise<LeasedMessage[]> {
    const request = this.#parseDequeue(queueName, options);
    const waitMs = options.waitMs === undefined ? 0 : parse.parseWaitMs(options.waitMs);
    const messages =
      waitMs === 0
        ? await this.store.dequeue(request)
        : await this.#dequeueWaiting(request, waitMs, options.signal);
    this.#countDequeued(request.queue, messages);
    return messages;
  }

  #parseDequeue(queueName: string, options: DequeueOptions): DequeueRequest {
    const { count = 1, where = {}, leaseMs, requestId, worker } = options;
    return {
      queue: parse.parseQueueName(queueName),
      count: parse.parseCount('count', count, this.#limits.batchMax),
      where: parse.parseMetadata('where', where),
      leaseMs: leaseMs === undefined ? undefined : parse.parseLeaseMs(leaseMs),
      requestId: requestId === undefined ? randomToken() : parse.parseRequestId(requestId),
      worker: worker === undefined ? undefined : parse.parseWorker(worker),
      now: this.#clock.storeNow(),
    };
  }

  /** Looks, waits for a reason to look again, and passes the wake-up on when it may have left something behind. */
  async #dequeueWaiting(
    request: DequeueRequest,
    waitMs: number,
    signal: AbortSignal | undefined,
  ): Promise<LeasedMessage[]> {
    const endsAtMs = this.#clock.monotonicMs() + waitMs;
    const waiter = this.#waiting.join(request.queue, JSON.stringify(request.where));
    this.#housekeeping.start();
    try {
      for (;;) {
        const messages = await this.store.dequeue({ ...request, now: this.#clock.storeNow() });
        const leftMs = endsAtMs - this.#clock.monotonicMs();
        if (messages.length > 0 || leftMs <= 0 || signal?.aborted || this.#stopped) {
          this.#waiting.leave(request.queue, waiter);
          if (messages.length > 0) this.#waiting.hint(request.queue);
          return messages;
        }
        await this.#waiting.wait(waiter, leftMs, signal);
      }
    } finally {
      this.#waiting.leave(request.queue, waiter);
    }
  }

  async extend(queueName: string, leases: Parameters<Queue['extend']>[1]): Promise<LeaseOutcome[]> {
    return this.#settle('extend', queueName, leases, (lease) => ({
      ...this.#parseLease(lease),
      leaseMs: lease.leaseMs === undefined ? undefined : parse.parseLeaseMs(lease.leaseMs),
    }));
  }

  async complete(
    queueName: string,
    leases: readonly CompleteLease[],
    options: { readonly transaction?: unknown } = {},
  ): Promise<LeaseOutcome[]> {
    const parseLease = (lease: CompleteLease) => ({
      ...this.#parseLease(lease),
      result:
        lease.result === undefined
          ? undefined
          : parse.parseJson('result', lease.result, this.#limits.resultBytesMax),
      ...(lease.followUps
        ? { followUps: lease.followUps.map((followUp) => this.#parseFollowUp(followUp)) }
        : {}),
    });
    return this.#settle('complete', queueName, leases, parseLease, options);
  }

  async fail(queueName: string, leases: Parameters<Queue['fail']>[1]): Promise<LeaseOutcome[]> {
    return this.#settle('fail', queueName, leases, (lease) => ({
      ...this.#parseLease(lease),
      error: parse.parseErrorText(lease.error),
      retryDelayMs:
        lease.retryDelayMs === undefined ? undefined : parse.parseDelayMs('retryDelayMs', lease.retryDelayMs),
    }));
  }

  async release(queueName: string, leases: Parameters<Queue['release']>[1]): Promise<LeaseOutcome[]> {
    return this.#settle('release', queueName, leases, (lease) => ({
      ...this.#parseLease(lease),
      delayMs: lease.delayMs === undefined ? 0 : parse.parseDelayMs('delayMs', lease.delayMs),
      refund: lease.refund !== false,
    }));
  }

  #parseLease(lease: LeaseRef): LeaseRef {
    return { id: parse.parseId(lease.id), leaseToken: parse.parseLeaseToken(lease.leaseToken) };
  }

  #parseFollowUp(followUp: NonNullable<CompleteLease['followUps']>[number]): FollowUp {
    const newId = () => timeOrderedId(this.#clock.now());
    return {
      queue: parse.parseQueueName(followUp.queue),
      messages: followUp.messages.map((message) =>
        parse.parseMessage(message, newId, this.#limits.payloadBytesMax),
      ),
    };
  }

  async #settle<Operation extends 'extend' | 'complete' | 'fail' | 'release', Input extends LeaseRef>(
    operation: Operation,
    queueName: string,
    leases: readonly Input[],
    parseLease: (lease: Input) => Parameters<QueueStore[Operation]>[0]['leases'][number],
    more: { readonly transaction?: unknown } = {},
  ): Promise<LeaseOutcome[]> {
    const queue = parse.parseQueueName(queueName);
    type Send = (request: {
      queue: string;
      leases: readonly unknown[];
      now: number | undefined;
    }) => Promise<LeaseOutcome[]>;
    const send = this.store[operation].bind(this.store) as unknown as Send;
    const outcomes = await eachByItself<Input, unknown, LeaseOutcome>({
      inputs: leases,
      parse: parseLease,
      refuse: (lease, error) => ({ kind: 'refused', id: String(lease?.id ?? ''), error }),
      send: (parsed) => send({ queue, leases: parsed, now: this.#clock.storeNow(), ...more }),
      stepMax: this.#limits.batchMax,
    });
    this.#countOutcomes(outcomes, (outcome, amount) => {
      this.#metrics.add('headgate_queue_settled_total', { queue, operation, outcome }, amount);
    });
    return outcomes;
  }

  async cancel(queueName: string, ids: readonly string[]): Promise<CancelOutcome[]> {
    const queue = parse.parseQueueName(queueName);
    return this.#inSteps(ids.map(parse.parseId), (step) =>
      this.store.cancel({ queue, ids: step, now: this.#clock.storeNow() }),
    );
  }

  async change(queueName: string, changes: Parameters<Queue['change']>[1]): Promise<ChangeOutcome[]> {
    const queue = parse.parseQueueName(queueName);
    return eachByItself<(typeof changes)[number], ReturnType<typeof parse.parseChange>, ChangeOutcome>({
      inputs: changes,
      parse: (change) => parse.parseChange(change, this.#limits.payloadBytesMax),
      refuse: (change, error) => ({ kind: 'refused', id: String(change?.id ?? ''), error }),
      send: (parsed) => this.store.change({ queue, changes: parsed, now: this.#clock.storeNow() }),
      stepMax: this.#limits.batchMax,
    });
  }

  async requeue(queueName: string, ids: readonly string[]): Promise<RequeueOutcome[]> {
    const queue = parse.parseQueueName(queueName);
    return this.#inSteps(ids.map(parse.parseId), (step) =>
      this.store.requeue({ queue, ids: step, now: this.#clock.storeNow() }),
    );
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
    const { state, where = {}, after, limit = 100 } = options;
    return this.store.list({
      queue: parse.parseQueueName(queueName),
      state: parse.parseState(state),
      where: parse.parseMetadata('where', where),
      after: after === undefined ? undefined : parse.parseCursor(after),
      limit: parse.parseCount('limit', limit, 1_000),
      now: this.#clock.storeNow(),
    });
  }

  async history(queueName: string, id: string): Promise<MessageEvent[]> {
    const queue = parse.parseQueueName(queueName);
    return this.store.history({ queue, id: parse.parseId(id), now: this.#clock.storeNow() });
  }

  async result(
    queueName: string,
    id: string,
    { waitMs = 30_000, signal }: { readonly waitMs?: number; readonly signal?: AbortSignal } = {},
  ): Promise<Message | undefined> {
    const endsAtMs = this.#clock.monotonicMs() + parse.parseWaitMs(waitMs);
    for (let pauseMs = 10; ; pauseMs = Math.min(pauseMs * 2, this.#limits.pollMs)) {
      const message = await this.get(queueName, id);
      if (!message || message.finishedAt !== undefined) return message;
      const leftMs = endsAtMs - this.#clock.monotonicMs();
      if (leftMs <= 0 || signal?.aborted || this.#stopped) return undefined;
      await this.#eventOf(message, Math.min(pauseMs, leftMs), signal);
    }
  }

  /** Resolves at the next change of a message that this process makes, or after `ms`. */
  #eventOf(message: Message, ms: number, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', done);
        unsubscribe();
        resolve();
      };
      const timer = setTimeout(done, ms);
      signal?.addEventListener('abort', done, { once: true });
      const unsubscribe = this.onEvent((event) => {
        if (event.id === message.id && event.queue === message.queue) done();
      });
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
    if (Object.keys(where).length === 0)
      this.#metrics.set('headgate_queue_lag_seconds', { queue }, (oldest?.ageMs ?? 0) / 1_000);
    return oldest;
  }

  async queues(): Promise<string[]> {
    return this.store.queues();
  }

  async configuration(queueName: string): Promise<QueueConfiguration> {
    return this.store.configuration(parse.parseQueueName(queueName));
  }

  async configure(queueName: string, change: Partial<QueueConfiguration>): Promise<QueueConfiguration> {
    return this.store.configure(parse.parseQueueName(queueName), parse.parseConfiguration(change));
  }

  async pause(
    queueName: string,
    what: { readonly enqueue?: boolean; readonly dequeue?: boolean } = { dequeue: true },
  ): Promise<void> {
    await this.configure(queueName, {
      ...(what.enqueue ? { enqueueBlocked: true } : {}),
      ...(what.dequeue ? { dequeueBlocked: true } : {}),
    });
  }

  async resume(queueName: string): Promise<void> {
    await this.configure(queueName, { enqueueBlocked: false, dequeueBlocked: false });
    this.#waiting.hint(parse.parseQueueName(queueName));
  }

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

  async #inSteps<Outcome>(
    ids: readonly string[],
    send: (step: readonly string[]) => Promise<Outcome[]>,
  ): Promise<Outcome[]> {
    const outcomes: Outcome[] = [];
    for (let from = 0; from < ids.length; from += this.#limits.batchMax) {
      outcomes.push(...(await send(ids.slice(from, from + this.#limits.batchMax))));
    }
    return outcomes;
  }

  #countDequeued(queue: string, messages: readonly LeasedMessage[]): void {
    if (messages.length === 0) return this.#metrics.add('headgate_queue_empty_dequeues_total', { queue });
    this.#metrics.add('headgate_queue_dequeued_total', { queue }, messages.length);
    for (const { startedAt, visibleAt } of messages) {
      this.#metrics.observe(
        'headgate_queue_wait_seconds',
        { queue },
        Math.max(0, (startedAt ?? visibleAt) - visibleAt) / 1_000,
      );
    }
  }

  #countOutcomes(
    outcomes: readonly { readonly kind: string; readonly created?: boolean }[],
    count: (outcome: string, amount: number) => void,
  ) {
    const amounts = new Map<string, number>();
    for (const { kind, created } of outcomes) {
      const outcome = created === undefined ? kind : created ? 'created' : 'known';
      amounts.set(outcome, (amounts.get(outcome) ?? 0) + 1);
    }
    for (const [outcome, amount] of amounts) count(outcome, amount);
  }
}

const bindMetrics = (backend: MetricsBackend) => backend(queueMetrics);
