/**
 * The redis store: each operation is one function of a library that lives in the server (lua/), so it is atomic and costs one
 * round trip. Redis 7.0+ and Valkey, one node or a Cluster. What an acknowledged change survives is the server's settings,
 * checked at start.
 */
import { type Log, silentLog } from '../../log.js';
import { queueError } from '../errors.js';
import type { MessageEvent } from '../message.js';
import type { LeaseOutcome, QueueConfiguration, QueueStore, Recurring } from '../store.js';
import type { Context, Place, Request } from './call.js';
import { FunctionCaller, stopped } from './caller.js';
import { openConnection, type RedisConnection } from './connection.js';
import { DamageLog } from './damage.js';
import { inspectDurability, type RedisDurabilityReport } from './durability.js';
import { Hints } from './hints.js';
import { createKeys, type Keys } from './keys.js';
import { functionLibrary } from './library.js';
import { completeWithFollowUps, settleAndDequeue } from './operations/complete-and-more.js';
import { configure, readConfiguration } from './operations/configure.js';
import { depth, oldest } from './operations/depth.js';
import { dequeue } from './operations/dequeue.js';
import { enqueue, exclusiveKeyOf } from './operations/enqueue.js';
import { completeAcrossSlots } from './operations/follow-ups.js';
import { glance, housekeep } from './operations/housekeep.js';
import { cancel, change, purge, requeue } from './operations/operate.js';
import { get, history } from './operations/read.js';
import { listPage } from './operations/list.js';
import { advanceRecurring, putRecurring, readRecurring, removeRecurring } from './operations/recurring.js';
import { complete, extend, fail, release } from './operations/settle.js';
import { parseStoredConfiguration } from './configuration.js';
import { checkOptions, type RedisQueueStoreOptions } from './options.js';

export interface RedisQueueStore extends QueueStore {
  /** What an acknowledged change survives, by the settings that the servers had at start. */
  durability(): Promise<RedisDurabilityReport>;
}

interface Open {
  readonly connection: RedisConnection;
  readonly context: Context;
  readonly durability: RedisDurabilityReport;
}

/** Throws `invalid-input` for a bad option; connects at `start` or at the first operation. */
export function createRedisQueueStore(options: RedisQueueStoreOptions): RedisQueueStore {
  checkOptions(options);
  return new Store(options);
}

class Store implements RedisQueueStore {
  readonly name = 'redis';
  readonly #options: RedisQueueStoreOptions;
  readonly #log: Log;
  readonly #keys: Keys;
  readonly #hints: Hints;
  readonly #damage: DamageLog;
  readonly #listeners = new Set<(events: readonly MessageEvent[]) => void>();
  /** Queues that this process has put into the set of all. */
  readonly #registered = new Set<string>();
  #opening: Promise<Open> | undefined;
  #connection: RedisConnection | undefined;
  #stopped = false;

  constructor(options: RedisQueueStoreOptions) {
    this.#options = options;
    this.#log = options.log ?? silentLog;
    this.#keys = createKeys(options.prefix ?? 'headgate');
    this.#damage = new DamageLog(this.#log);
    this.#hints = new Hints({ open: () => this.#listener(), keys: this.#keys, log: this.#log });
  }

  async start(): Promise<void> {
    this.#stopped = false;
    await this.#open();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#hints.stop();
    this.#connection?.close();
    this.#connection = undefined;
    this.#opening = undefined;
  }

  async durability(): Promise<RedisDurabilityReport> {
    return (await this.#open()).durability;
  }

  async enqueue({ queue, messages, transaction, wake, now }: Request<'enqueue'>) {
    if (transaction !== undefined) {
      if (!this.#options.outbox) throw noTransaction();
      return this.#options.outbox.enqueue({ queue, messages, transaction, wake, now });
    }
    const { context } = await this.#open();
    await this.#register(queue);
    const exclusiveKey = () => this.#exclusiveKey(queue);
    const { outcomes, isNew } = await enqueue(context, place(queue), { messages, now, exclusiveKey });
    if (isNew) await this.#register(queue, true);
    return outcomes;
  }

  async dequeue(request: Request<'dequeue'>) {
    const { context } = await this.#open();
    return dequeue(context, place(request.queue), request);
  }

  async extend(request: Request<'extend'>) {
    return extend((await this.#open()).context, place(request.queue), request);
  }

  async complete({ queue, leases, transaction, now }: Request<'complete'>) {
    if (transaction !== undefined) throw noTransaction();
    const { context } = await this.#open();
    if (leases.every(({ followUps = [] }) => followUps.length === 0))
      return complete(context, place(queue), { leases, now });
    const access = { now, placeOf: place, configurationOf: (name: string) => this.configuration(name) };
    const outcomes: LeaseOutcome[] = [];
    for (const lease of leases) {
      const { followUps = [] } = lease;
      for (const followUp of followUps) await this.#register(followUp.queue);
      const isOneSlot = !context.isCluster || followUps.every((followUp) => followUp.queue === queue);
      const complete = isOneSlot ? completeWithFollowUps : completeAcrossSlots;
      outcomes.push(await complete(context, place(queue), { ...lease, followUps }, access));
    }
    return outcomes;
  }

  async fail(request: Request<'fail'>) {
    return fail((await this.#open()).context, place(request.queue), request);
  }

  async release(request: Request<'release'>) {
    return release((await this.#open()).context, place(request.queue), request);
  }

  async settleAndDequeue(request: Request<'settleAndDequeue'>) {
    return settleAndDequeue((await this.#open()).context, place(request.queue), request);
  }

  async cancel(request: Request<'cancel'>) {
    return cancel((await this.#open()).context, place(request.queue), request);
  }

  async change(request: Request<'change'>) {
    return change((await this.#open()).context, place(request.queue), request);
  }

  async requeue(request: Request<'requeue'>) {
    return requeue((await this.#open()).context, place(request.queue), request);
  }

  async purge(request: Request<'purge'>) {
    return purge((await this.#open()).context, place(request.queue), request);
  }

  async get({ queue, id }: Request<'get'>) {
    return get((await this.#open()).context, place(queue), id);
  }

  async list(request: Request<'list'>) {
    return listPage((await this.#open()).context, place(request.queue), request);
  }

  async depth(request: Request<'depth'>) {
    return depth((await this.#open()).context, place(request.queue), request);
  }

  async oldest(request: Request<'oldest'>) {
    return oldest((await this.#open()).context, place(request.queue), request);
  }

  async history({ queue, id }: Request<'history'>) {
    return history((await this.#open()).context, place(queue), id);
  }

  onEvents(listener: (events: readonly MessageEvent[]) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async putRecurring(recurring: Recurring): Promise<void> {
    return putRecurring(await this.#access(), recurring);
  }

  async removeRecurring(name: string): Promise<boolean> {
    return removeRecurring(await this.#access(), name);
  }

  async recurring({ due, now }: Request<'recurring'>): Promise<Recurring[]> {
    const all = await readRecurring(await this.#access());
    if (!due) return all;
    const time = await this.time(now);
    return all.filter(({ next }) => next <= time);
  }

  async advanceRecurring(request: Request<'advanceRecurring'>): Promise<boolean> {
    return advanceRecurring(await this.#access(), request);
  }

  async time(now: number | undefined): Promise<number> {
    if (now !== undefined) return now;
    const { connection } = await this.#open();
    const [seconds, microseconds] = (await connection.primaries()[0]!.time()) as unknown as [string, string];
    return Number(seconds) * 1_000 + Math.floor(Number(microseconds) / 1_000);
  }

  async queues(): Promise<string[]> {
    const { connection } = await this.#open();
    return (await connection.client.smembers(this.#keys.queues)).sort();
  }

  async configuration(queue: string): Promise<QueueConfiguration> {
    const { connection, context } = await this.#open();
    return parseStoredConfiguration(await readConfiguration(connection.client, context, queue));
  }

  async configure(queue: string, change: Partial<QueueConfiguration>): Promise<QueueConfiguration> {
    const { connection, context } = await this.#open();
    await this.#register(queue);
    return configure(connection.client, context, [place(queue)], change);
  }

  async watch(queues: readonly string[], onHint: (queue: string) => void): Promise<() => Promise<void>> {
    await this.#open();
    return this.#hints.watch(queues, onHint);
  }

  async ready({ queues, now }: Request<'ready'>): Promise<string[]> {
    const { context } = await this.#open();
    const glances = await glance(context, queues.map(place), now);
    return queues.filter((_, index) => glances[index]?.waits);
  }

  async housekeep({ now }: Request<'housekeep'>) {
    const { context } = await this.#open();
    const queues = await this.queues();
    const access = { now, placeOf: place, configurationOf: (name: string) => this.configuration(name) };
    const { moved, asOf, nextDueAt } = await housekeep(context, queues.map(place), access);
    const ticks = (await readRecurring(await this.#access())).map(({ next }) => next);
    const next = Math.min(nextDueAt ?? Number.POSITIVE_INFINITY, ...ticks);
    return {
      moved,
      nextDueMs: next === Number.POSITIVE_INFINITY ? undefined : Math.max(0, next - asOf),
    };
  }

  #open(): Promise<Open> {
    if (this.#stopped) return Promise.reject(stopped());
    this.#opening ??= this.#openNow().catch((error: unknown) => {
      this.#opening = undefined;
      throw error;
    });
    return this.#opening;
  }

  async #openNow(): Promise<Open> {
    const { durability, replicas, replicaTimeoutMs = 1_000 } = this.#options;
    const connection = (this.#connection ??= await openConnection(this.#options, this.#log));
    await connection.ready();
    const primaries = connection.primaries();
    const report = await inspectDurability({ primaries, durability, replicas, log: this.#log });
    const caller = new FunctionCaller(connection, functionLibrary());
    if (report.confirmedBy > 0)
      caller.requireReplicas({ replicas: report.confirmedBy, timeoutMs: replicaTimeoutMs });
    await caller.load();
    return { connection, context: this.#context(caller, connection), durability: report };
  }

  #context(caller: FunctionCaller, { isCluster }: RedisConnection): Context {
    const listeners = this.#listeners;
    const publish = (events: readonly MessageEvent[]): void => {
      for (const listener of listeners) listener(events);
    };
    return {
      caller,
      keys: this.#keys,
      isCluster,
      damaged: (queue, id) => this.#damage.tell(queue, id),
      get publish() {
        return listeners.size === 0 ? undefined : publish;
      },
    };
  }

  async #access() {
    const { connection, context } = await this.#open();
    return { client: connection.client, context };
  }

  async #exclusiveKey(queue: string): Promise<string> {
    const { connection, context } = await this.#open();
    return exclusiveKeyOf(await readConfiguration(connection.client, context, queue));
  }

  /** Once a process is enough, unless the queue turned out to be gone from the server. */
  async #register(queue: string, again = false): Promise<void> {
    if (this.#registered.has(queue) && !again) return;
    const { connection } = await this.#open();
    await connection.client.sadd(this.#keys.queues, queue);
    this.#registered.add(queue);
  }

  #listener() {
    if (!this.#connection) throw stopped();
    return this.#connection.listener();
  }
}

const place = (queue: string): Place => ({ queue, shard: 0 });

const noTransaction = () =>
  queueError('transaction-unsupported', 'the redis store has no transactions: enqueue through an outbox', {
    field: 'transaction',
    expected: 'an outbox, or a postgres store',
  });
