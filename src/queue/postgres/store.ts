/**
 * The postgres store: each operation is one statement, a call of a function of the same name in the store's schema, so
 * it is atomic, costs one round trip, and works in a caller's transaction through any client. PostgreSQL 15+ and PGlite.
 */
import { type Database, migrate, quoteSchema } from '../../database/index.js';
import { type Log, silentLog } from '../../log.js';
import type { MessageEvent } from '../message.js';
import type { EnqueueOutcome, LeaseOutcome, QueueConfiguration, QueueStore, Recurring } from '../store.js';
import { prepareCompleteWithFollowUps } from './operations/complete-with-follow-ups.js';
import { prepareConfigure } from './operations/configure.js';
import { prepareDepth } from './operations/depth.js';
import { prepareDequeue } from './operations/dequeue.js';
import { type EnqueueCall, prepareEnqueue } from './operations/enqueue.js';
import { prepareHousekeep } from './operations/housekeep.js';
import { prepareOperate } from './operations/operate.js';
import { prepareRead } from './operations/read.js';
import { prepareRecurring } from './operations/recurring.js';
import { prepareSettle, type Settled } from './operations/settle.js';
import { prepareSettleAndDequeue } from './operations/settle-and-dequeue.js';
import { ChangeEvents } from './change-events.js';
import { transactionQueryable } from './transaction.js';
import { Wake } from './wake.js';

export interface PostgresQueueStoreOptions {
  readonly database: Database;
  /** Default `headgate_queue`. Also the name of the NOTIFY channel. */
  readonly schema?: string;
  readonly log?: Log;
}

type Request<Operation extends keyof QueueStore> = QueueStore[Operation] extends
  | ((request: infer R) => unknown)
  | undefined
  ? R
  : never;

export function createPostgresQueueStore(options: PostgresQueueStoreOptions): QueueStore {
  return new PostgresQueueStore(options);
}

function prepareAll(schema: string) {
  return {
    enqueue: prepareEnqueue(schema),
    dequeue: prepareDequeue(schema),
    settleAndDequeue: prepareSettleAndDequeue(schema),
    settle: prepareSettle(schema),
    completeWithFollowUps: prepareCompleteWithFollowUps(schema),
    operate: prepareOperate(schema),
    read: prepareRead(schema),
    depth: prepareDepth(schema),
    configure: prepareConfigure(schema),
    housekeep: prepareHousekeep(schema),
    recurring: prepareRecurring(schema),
  };
}

class PostgresQueueStore implements QueueStore {
  readonly name = 'postgres';
  readonly #database: Database;
  readonly #schema: string;
  readonly #log: Log;
  readonly #do: ReturnType<typeof prepareAll>;
  readonly #wake: Wake;
  readonly #events: ChangeEvents;
  #starting: Promise<void> | undefined;
  #toldDamagedAtMs = Number.NEGATIVE_INFINITY;
  #maintainedAtMs = Number.NEGATIVE_INFINITY;

  constructor({ database, schema = 'headgate_queue', log = silentLog }: PostgresQueueStoreOptions) {
    this.#database = database;
    this.#schema = schema;
    this.#log = log;
    this.#do = prepareAll(quoteSchema(schema));
    this.#wake = new Wake({ database, channel: schema, log });
    this.#events = new ChangeEvents();
  }

  /** Brings the schema up to date. */
  start(): Promise<void> {
    this.#starting ??= this.#migrate().catch((error: unknown) => {
      this.#starting = undefined;
      throw error;
    });
    return this.#starting;
  }

  async stop(): Promise<void> {
    this.#starting = undefined;
    await this.#wake.stop();
  }

  async #migrate(): Promise<void> {
    const directory = new URL('./migrations/', import.meta.url);
    await migrate(this.#database, { part: 'queue', schema: this.#schema, directory, log: this.#log });
  }

  async enqueue({
    queue,
    messages,
    transaction,
    wake = true,
    now,
  }: Request<'enqueue'>): Promise<EnqueueOutcome[]> {
    if (messages.length === 0) return [];
    const on = transaction === undefined ? this.#database : transactionQueryable(transaction);
    const channel = transaction !== undefined && wake ? this.#wake.channel : undefined;
    const detail = this.#events.isHeard && transaction === undefined;
    const outcomes = await this.#enqueueUntilSettled((call) => this.#do.enqueue(on, call), {
      queue,
      messages,
      channel,
      detail,
      now,
    });
    if (
      transaction === undefined &&
      outcomes.some((outcome) => outcome.kind === 'enqueued' && outcome.created)
    )
      this.#wake.hint(queue);
    if (detail) this.#events.enqueued({ queue, messages, now }, outcomes);
    return outcomes.map(({ seq: _, ...outcome }) => outcome);
  }

  /** An id that was known when it was looked for and free when it was looked at is tried again. */
  async #enqueueUntilSettled(
    enqueue: (call: EnqueueCall) => ReturnType<ReturnType<typeof prepareEnqueue>>,
    call: EnqueueCall,
  ) {
    const { outcomes, again } = await enqueue(call);
    for (const place of again) {
      for (;;) {
        const alone = await enqueue({ ...call, messages: [call.messages[place]!] });
        outcomes[place] = alone.outcomes[0]!;
        if (alone.again.length === 0) break;
      }
    }
    return outcomes;
  }

  async dequeue(request: Request<'dequeue'>) {
    const messages = await this.#do.dequeue(this.#database, request);
    this.#events.dequeued(messages);
    return messages;
  }

  async extend(request: Request<'extend'>): Promise<LeaseOutcome[]> {
    return this.#settled(request, (leases) => this.#do.settle.extend(this.#database, { ...request, leases }));
  }

  async complete(request: Request<'complete'>): Promise<LeaseOutcome[]> {
    const { leases, transaction } = request;
    if (leases.some(({ followUps }) => followUps)) return this.#completeEach(request);
    const on = transaction === undefined ? this.#database : transactionQueryable(transaction);
    return this.#settled(request, (some) => this.#do.settle.complete(on, { ...request, leases: some }));
  }

  /** Follow-ups make each completion a transaction of its own: one that is refused takes no other with it. */
  async #completeEach({ queue, leases, transaction, now }: Request<'complete'>): Promise<LeaseOutcome[]> {
    const given = transaction === undefined ? undefined : transactionQueryable(transaction);
    const outcomes: LeaseOutcome[] = [];
    for (const lease of leases) {
      const call = { queue, lease, channel: this.#wake.channel, now };
      const { settled, wakes } = given
        ? await this.#do.completeWithFollowUps(given, call)
        : await this.#do.completeWithFollowUps.inTransactionOf(this.#database, call);
      outcomes.push(settled.outcome);
      if (given) continue;
      this.#tellSettled(queue, [settled], now);
      for (const name of wakes) this.#wake.hint(name);
    }
    return outcomes;
  }

  async fail(request: Request<'fail'>): Promise<LeaseOutcome[]> {
    return this.#settled(request, (leases) => this.#do.settle.fail(this.#database, { ...request, leases }));
  }

  async release(request: Request<'release'>): Promise<LeaseOutcome[]> {
    return this.#settled(request, (leases) =>
      this.#do.settle.release(this.#database, { ...request, leases }),
    );
  }

  async settleAndDequeue(request: Request<'settleAndDequeue'>) {
    const { queue, complete, now } = request;
    const { settled: first, messages } = await this.#do.settleAndDequeue(this.#database, request);
    // A dequeue elsewhere that saw a row while it still waited keeps it locked for its own short transaction.
    const settled = await this.#retryBusy(complete, first, (leases) =>
      this.#do.settle.complete(this.#database, { queue, leases, now }),
    );
    this.#tellSettled(queue, settled, now);
    this.#events.dequeued(messages);
    return { completed: settled.map(({ outcome }) => outcome), messages };
  }

  async cancel(request: Request<'cancel'>) {
    const send = (ids: readonly string[]) => this.#do.operate.cancel(this.#database, { ...request, ids });
    const canceled = await this.#retryBusy(request.ids, await send(request.ids), send);
    if (canceled.some(({ change }) => change?.from === 'running')) this.#wake.hint(request.queue);
    this.#events.canceled(request, canceled);
    return canceled.map(({ outcome }) => outcome);
  }

  async change(request: Request<'change'>) {
    const outcomes = await this.#do.operate.change(this.#database, request);
    if (outcomes.some(({ kind }) => kind === 'changed')) this.#wake.hint(request.queue);
    return outcomes;
  }

  async requeue(request: Request<'requeue'>) {
    const outcomes = await this.#do.operate.requeue(this.#database, request);
    if (outcomes.some(({ kind }) => kind === 'requeued')) this.#wake.hint(request.queue);
    return outcomes;
  }

  async purge(request: Request<'purge'>) {
    return this.#do.operate.purge(this.#database, request);
  }

  async get(request: Request<'get'>) {
    return this.#do.read.get(this.#database, request);
  }

  async list(request: Request<'list'>) {
    return this.#do.read.list(this.#database, request);
  }

  async history(request: Request<'history'>) {
    return this.#do.read.history(this.#database, request);
  }

  async depth(request: Request<'depth'>) {
    return this.#do.depth.depth(this.#database, request);
  }

  async oldest(request: Request<'oldest'>) {
    return this.#do.depth.oldest(this.#database, request);
  }

  onEvents(listener: (events: readonly MessageEvent[]) => void): () => void {
    return this.#events.subscribe(listener);
  }

  async putRecurring(recurring: Recurring): Promise<void> {
    await this.#do.recurring.put(this.#database, recurring);
  }

  async removeRecurring(name: string): Promise<boolean> {
    return this.#do.recurring.remove(this.#database, name);
  }

  async recurring({ due, now }: Request<'recurring'>): Promise<Recurring[]> {
    return this.#do.recurring.list(this.#database, due, now);
  }

  async advanceRecurring({ name, from, next }: Request<'advanceRecurring'>): Promise<boolean> {
    return this.#do.recurring.advance(this.#database, name, from, next);
  }

  time = (now: number | undefined): Promise<number> => this.#do.housekeep.time(this.#database, now);

  queues = (): Promise<string[]> => this.#do.configure.queues(this.#database);

  configuration = (queue: string): Promise<QueueConfiguration> =>
    this.#do.configure.configuration(this.#database, queue);

  async configure(queue: string, change: Partial<QueueConfiguration>): Promise<QueueConfiguration> {
    return this.#do.configure.configure(this.#database, queue, change);
  }

  async watch(queues: readonly string[], onHint: (queue: string) => void): Promise<() => Promise<void>> {
    return this.#wake.watch(queues, onHint);
  }

  async ready({ queues, now }: Request<'ready'>): Promise<string[]> {
    return this.#do.housekeep.ready(this.#database, queues, now);
  }

  async housekeep({ now }: Request<'housekeep'>) {
    if (performance.now() - this.#maintainedAtMs >= maintainEveryMs) {
      this.#maintainedAtMs = performance.now();
      await this.#do.housekeep.maintain(this.#database, now);
    }
    const step = await this.#do.housekeep.housekeep(this.#database, now);
    const { moved, nextDueMs, woken, repaired, damaged } = step;
    if (repaired > 0)
      this.#log.error({ repaired }, 'exclusivity values disagreed with their messages and were repaired');
    this.#tellDamaged(damaged);
    for (const queue of woken) this.#wake.hint(queue);
    return { moved, nextDueMs };
  }

  /** Outside a caller's transaction only: inside it nothing has happened yet. */
  #tellSettled(queue: string, settled: readonly Settled[], now: number | undefined): void {
    if (settled.some(({ frees }) => frees)) this.#wake.hint(queue);
    this.#events.settled(queue, settled, now);
  }

  /** Once a minute: the same messages are found at every step. */
  #tellDamaged(damaged: readonly string[]): void {
    if (damaged.length === 0 || performance.now() - this.#toldDamagedAtMs < 60_000) return;
    this.#toldDamagedAtMs = performance.now();
    this.#log.error(
      { damaged },
      'messages of the queue that are due cannot be moved; they are tried again each minute',
    );
  }

  async #settled<Lease>(
    {
      queue,
      leases,
      transaction,
      now,
    }: {
      queue: string;
      leases: readonly Lease[];
      transaction?: unknown;
      now: number | undefined;
    },
    settle: (leases: readonly Lease[]) => Promise<Settled[]>,
  ): Promise<LeaseOutcome[]> {
    if (leases.length === 0) return [];
    const settled = await this.#retryBusy(leases, await settle(leases), settle);
    if (transaction === undefined) this.#tellSettled(queue, settled, now);
    return settled.map(({ outcome }) => outcome);
  }

  /** A batch waits for nobody; what somebody held in that moment is tried again, a few times. */
  async #retryBusy<Input, Answer extends { readonly outcome: { readonly kind: string } }>(
    inputs: readonly Input[],
    answers: Answer[],
    send: (inputs: readonly Input[]) => Promise<Answer[]>,
  ): Promise<Answer[]> {
    for (const pauseMs of busyPausesMs) {
      const busy = [...answers.keys()].filter((place) => answers[place]!.outcome.kind === 'busy');
      if (busy.length === 0) break;
      await pause(pauseMs);
      const again = await send(busy.map((place) => inputs[place]!));
      for (const [index, place] of busy.entries()) answers[place] = again[index]!;
    }
    return answers;
  }
}

const busyPausesMs = [2, 6, 18, 54];
const maintainEveryMs = 30_000;
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
