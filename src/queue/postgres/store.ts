/**
 * The postgres store: each operation is one statement, a call of a function of the same name in the store's schema, so
 * it is atomic, costs one round trip, and works in a caller's transaction through any client. PostgreSQL 15+ and PGlite.
 */
import { type Database, migrate, quoteSchema, SqlError } from '../../database/index.js';
import { Gather, split } from '../../gather.js';
import { type Log, silentLog } from '../../log.js';
import type { MessageEvent } from '../message.js';
import type { EnqueueOutcome, LeaseOutcome, QueueConfiguration, QueueStore, Recurring } from '../store.js';
import { prepareCompleteWithFollowUps } from './operations/complete-with-follow-ups.js';
import { prepareConfigure } from './operations/configure.js';
import { prepareDepth } from './operations/depth.js';
import { prepareDequeue } from './operations/dequeue.js';
import { prepareEnqueue } from './operations/enqueue.js';
import { prepareHousekeep } from './operations/housekeep.js';
import { prepareOperate } from './operations/operate.js';
import { prepareRead } from './operations/read.js';
import { prepareRecurring } from './operations/recurring.js';
import { prepareSettle, type Settled } from './operations/settle.js';
import { prepareSettleAndDequeue } from './operations/settle-and-dequeue.js';
import { retryBusy } from './busy.js';
import { ChangeEvents } from './change-events.js';
import { damageReport } from './damage-report.js';
import { GatheredDequeue } from './gathered-dequeue.js';
import { GatheredEnqueue } from './gathered-enqueue.js';
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
  readonly sideBySide: boolean;
  readonly #database: Database;
  readonly #schema: string;
  readonly #log: Log;
  readonly #do: ReturnType<typeof prepareAll>;
  readonly #wake: Wake;
  readonly #events: ChangeEvents;
  readonly #gatheredDequeue: GatheredDequeue;
  readonly #gatheredEnqueue: GatheredEnqueue;
  readonly #gatheredComplete: Gather<Request<'complete'>, Settled[]>;
  #starting: Promise<void> | undefined;
  readonly #tellDamaged: ReturnType<typeof damageReport>;
  #maintainedAtMs = Number.NEGATIVE_INFINITY;

  constructor({ database, schema = 'headgate_queue', log = silentLog }: PostgresQueueStoreOptions) {
    this.sideBySide = database.driver === 'pg';
    this.#database = database;
    this.#schema = schema;
    this.#log = log;
    this.#tellDamaged = damageReport(log);
    this.#do = prepareAll(quoteSchema(schema));
    this.#wake = new Wake({ database, channel: schema, log });
    this.#events = new ChangeEvents();
    const gathering = {
      isRefused: (error: unknown) => error instanceof SqlError,
      check: () => database.assertOutside?.('query'),
    };
    this.#gatheredDequeue = new GatheredDequeue(
      (requests) => this.#do.dequeue(database, requests),
      gathering,
    );
    this.#gatheredEnqueue = new GatheredEnqueue(this.#do.enqueue, database, gathering);
    this.#gatheredComplete = new Gather({
      ...gathering,
      send: (requests) => this.#completeTogether(requests),
      sizeOf: ({ leases }) => leases.length,
      fits: ([first], { now }) => first!.now === now,
    });
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

  async enqueue(request: Request<'enqueue'>): Promise<EnqueueOutcome[]> {
    const { queue, messages, newIds = false, transaction, wake = true, now } = request;
    if (messages.length === 0) return [];
    const detail = this.#events.isHeard && transaction === undefined;
    const channel = transaction !== undefined && wake ? this.#wake.channel : undefined;
    const call = { queue, messages, newIds, channel, detail, now };
    const outcomes =
      transaction !== undefined
        ? await this.#gatheredEnqueue.alone(transactionQueryable(transaction), call)
        : await this.#gatheredEnqueue.run(call);
    if (
      transaction === undefined &&
      outcomes.some((outcome) => outcome.kind === 'enqueued' && outcome.created)
    )
      this.#wake.hint(queue);
    if (detail) this.#events.enqueued({ queue, messages, now }, outcomes);
    return outcomes.map(({ seq: _, ...outcome }) => outcome);
  }

  async dequeue(request: Request<'dequeue'>) {
    const messages = await this.#gatheredDequeue.run(request);
    this.#events.dequeued(messages);
    return messages;
  }

  async extend(request: Request<'extend'>): Promise<LeaseOutcome[]> {
    return this.#settled(request, (leases) => this.#do.settle.extend(this.#database, { ...request, leases }));
  }

  async complete(request: Request<'complete'>): Promise<LeaseOutcome[]> {
    const { queue, leases, transaction, now } = request;
    if (leases.some(({ followUps }) => followUps)) return this.#completeEach(request);
    if (transaction === undefined && now === undefined)
      return this.#settled(request, (some) =>
        this.#gatheredComplete.run(queue, { ...request, leases: some }),
      );
    const on = transaction === undefined ? this.#database : transactionQueryable(transaction);
    return this.#settled(request, (some) => this.#do.settle.complete(on, { ...request, leases: some }));
  }

  async #completeTogether(requests: readonly Request<'complete'>[]): Promise<Settled[][]> {
    const leases =
      requests.length === 1 ? requests[0]!.leases : requests.flatMap((request) => request.leases);
    const settled = await this.#do.settle.complete(this.#database, { ...requests[0]!, leases });
    return split(
      settled,
      requests.map((request) => request.leases.length),
    );
  }

  /** Follow-ups make each completion a transaction of its own: one that is refused takes no other with it. */
  async #completeEach({ queue, leases, transaction, now }: Request<'complete'>): Promise<LeaseOutcome[]> {
    const given = transaction === undefined ? undefined : transactionQueryable(transaction);
    const detail = this.#events.isHeard && given === undefined;
    const outcomes: LeaseOutcome[] = [];
    for (const lease of leases) {
      const call = { queue, lease, channel: this.#wake.channel, detail, now };
      const { settled, followed } = given
        ? await this.#do.completeWithFollowUps.inside(given, call)
        : await this.#do.completeWithFollowUps.inTransactionOf(this.#database, call);
      outcomes.push(settled.outcome);
      if (given) continue;
      this.#tellSettled(queue, [settled], now);
      for (const follow of followed) {
        this.#wake.hint(follow.queue);
        this.#events.enqueued({ ...follow, now }, follow.outcomes);
      }
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
    const settled = await retryBusy(complete, first, (leases) =>
      this.#do.settle.complete(this.#database, { queue, leases, now }),
    );
    this.#tellSettled(queue, settled, now);
    this.#events.dequeued(messages);
    return { completed: settled.map(({ outcome }) => outcome), messages };
  }

  async cancel(request: Request<'cancel'>) {
    const send = (ids: readonly string[]) => this.#do.operate.cancel(this.#database, { ...request, ids });
    const canceled = await retryBusy(request.ids, await send(request.ids), send);
    if (canceled.some(({ change }) => change?.from === 'running')) this.#wake.hint(request.queue);
    this.#events.operated(request, canceled);
    return canceled.map(({ outcome }) => outcome);
  }

  async change(request: Request<'change'>) {
    const changed = await this.#do.operate.change(this.#database, request);
    if (changed.some(({ outcome }) => outcome.kind === 'changed')) this.#wake.hint(request.queue);
    this.#events.operated(request, changed);
    return changed.map(({ outcome }) => outcome);
  }

  async requeue(request: Request<'requeue'>) {
    const requeued = await this.#do.operate.requeue(this.#database, request);
    if (requeued.some(({ outcome }) => outcome.kind === 'requeued')) this.#wake.hint(request.queue);
    this.#events.operated(request, requeued);
    return requeued.map(({ outcome }) => outcome);
  }

  purge = (request: Request<'purge'>) => this.#do.operate.purge(this.#database, request);

  get = (request: Request<'get'>) => this.#do.read.get(this.#database, request);

  list = (request: Request<'list'>) => this.#do.read.list(this.#database, request);

  history = (request: Request<'history'>) => this.#do.read.history(this.#database, request);

  depth = (request: Request<'depth'>) => this.#do.depth.depth(this.#database, request);

  oldest = (request: Request<'oldest'>) => this.#do.depth.oldest(this.#database, request);

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
    const settled = await retryBusy(leases, await settle(leases), settle);
    if (transaction === undefined) this.#tellSettled(queue, settled, now);
    return settled.map(({ outcome }) => outcome);
  }
}

const maintainEveryMs = 30_000;
