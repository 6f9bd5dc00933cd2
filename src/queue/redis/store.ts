/**
 * The redis store: each operation is one function of a library that lives in the server (lua/), so it is atomic and costs one
 * round trip. Redis 7.0+ and Valkey, one node or a Cluster. What an acknowledged change survives is the server's settings,
 * checked at start.
 */
import { type Log, silentLog } from '../../log.js';
import type { MessageEvent } from '../message.js';
import type { LeaseOutcome, MessageToStore, QueueConfiguration, QueueStore, Recurring } from '../store.js';
import type { Context, Request } from './call.js';
import { FunctionCaller, stopped } from './caller.js';
import { openConnection, type RedisConnection } from './connection.js';
import { DamageLog } from './damage.js';
import { inspectDurability, probeFlushes, type RedisDurabilityReport } from './durability.js';
import { noTransaction } from './errors.js';
import { Hints } from './hints.js';
import { createKeys, type Keys } from './keys.js';
import { type EnqueueCall, gatherCalls, isGathered } from './gathered.js';
import { functionLibrary } from './library.js';
import { configure, readConfiguration } from './operations/configure.js';
import type { FollowUpAccess } from './operations/follow-ups.js';
import { glance, housekeep } from './operations/housekeep.js';
import { advanceRecurring, putRecurring, readRecurring, removeRecurring } from './operations/recurring.js';
import { parseStoredConfiguration } from './configuration.js';
import { asNamed } from './named-error.js';
import { QueueNames } from './names.js';
import { straightCalls } from './straight.js';
import * as route from './routes.js';
import { Places, shardOfMessage } from './shards.js';
import { checkOptions, type RedisQueueStoreOptions } from './options.js';

export interface RedisQueueStore extends QueueStore {
  /** What an acknowledged change survives, by the settings that the servers had at start. */
  durability(): Promise<RedisDurabilityReport>;
}

const hasNoFollowUps = ({ followUps }: Request<'complete'>['leases'][number]): boolean =>
  followUps === undefined || followUps.length === 0;

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
  readonly #places: Places;
  readonly #hints: Hints;
  readonly #damage: DamageLog;
  readonly #listeners = new Set<(events: readonly MessageEvent[]) => void>();
  readonly #names: QueueNames;
  readonly #gathered = gatherCalls({
    straight: straightCalls({
      context: () => this.#opened?.context,
      placesOf: (queue) => this.#places.of(queue),
      isNamed: (queue) => this.#names.isPut(queue),
      onNew: (queue) => this.#names.put(queue, true),
      configurationOf: (queue) => this.configuration(queue),
    }),
    enqueue: (call) => this.#enqueueNow(call),
    dequeues: async (calls) => route.dequeues(await this.#target(calls[0]!.queue), calls),
    complete: async (call) => route.complete(await this.#target(call.queue), call),
  });
  #opening: Promise<Open> | undefined;
  /** What `#opening` has come to. */
  #opened: Open | undefined;
  #connection: RedisConnection | undefined;
  #stopped = false;

  constructor(options: RedisQueueStoreOptions) {
    this.#options = options;
    this.#log = options.log ?? silentLog;
    this.#keys = createKeys(options.prefix ?? 'headgate');
    this.#places = new Places(options.shards);
    this.#names = new QueueNames(this.#keys, () => this.#open());
    this.#damage = new DamageLog(this.#log);
    this.#hints = new Hints({
      open: () => this.#listener(),
      channelsOf: (queue) => this.#places.of(queue).map(({ shard }) => this.#keys.hint(queue, shard)),
      queueOf: this.#keys.queueOfHint,
      log: this.#log,
    });
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
    this.#opening = this.#opened = undefined;
  }

  async durability(): Promise<RedisDurabilityReport> {
    return (await this.#open()).durability;
  }

  enqueue(request: Request<'enqueue'>) {
    if (request.transaction !== undefined) return this.#enqueueByOutbox(request);
    const { queue, messages, now } = request;
    return this.#gathered.enqueues.run(queue, { queue, messages, now });
  }

  async #enqueueByOutbox(request: Request<'enqueue'>) {
    if (!this.#options.outbox) throw noTransaction();
    const { queue, messages, transaction, wake, now } = request;
    return this.#options.outbox.enqueue({ queue, messages, transaction, wake, now });
  }

  async #enqueueNow({ queue, messages, now }: EnqueueCall) {
    const target = await this.#target(queue);
    if (!this.#names.isPut(queue)) await this.#names.put(queue);
    const { outcomes, isNew } = await route.enqueue(target, { messages, now });
    if (isNew) await this.#names.put(queue, true);
    return outcomes;
  }

  dequeue(request: Request<'dequeue'>) {
    return isGathered(request)
      ? this.#gathered.dequeues.run(request.queue, request)
      : this.#dequeueFiltered(request);
  }

  async #dequeueFiltered(request: Request<'dequeue'>) {
    return route.dequeue(await this.#target(request.queue), request);
  }

  async extend(request: Request<'extend'>) {
    return route.extend(await this.#target(request.queue), request);
  }

  complete(request: Request<'complete'>) {
    const { queue, leases, transaction, now } = request;
    return transaction === undefined && leases.every(hasNoFollowUps)
      ? this.#gathered.completions.run(queue, { queue, leases, now })
      : this.#completeWithFollowUps(request);
  }

  async #completeWithFollowUps({ queue, leases, transaction, now }: Request<'complete'>) {
    if (transaction !== undefined) throw noTransaction();
    const target = await this.#target(queue);
    const outcomes: LeaseOutcome[] = [];
    for (const lease of leases) {
      const { followUps = [] } = lease;
      for (const followUp of followUps) await this.#names.put(followUp.queue);
      outcomes.push(await route.followUps(target, { ...lease, followUps }, this.#followUpAccess(now)));
    }
    return outcomes;
  }

  fail = async (request: Request<'fail'>) => route.fail(await this.#target(request.queue), request);

  release = async (request: Request<'release'>) => route.release(await this.#target(request.queue), request);

  async settleAndDequeue(request: Request<'settleAndDequeue'>) {
    return route.settleAndDequeue(await this.#target(request.queue), request);
  }

  cancel = async (request: Request<'cancel'>) => route.cancel(await this.#target(request.queue), request);

  change = async (request: Request<'change'>) => route.change(await this.#target(request.queue), request);

  requeue = async (request: Request<'requeue'>) => route.requeue(await this.#target(request.queue), request);

  purge = async (request: Request<'purge'>) => route.purge(await this.#target(request.queue), request);

  async get(request: Request<'get'>) {
    return route.get(await this.#target(request.queue), request);
  }

  async list(request: Request<'list'>) {
    return route.list(await this.#target(request.queue), request);
  }

  async depth(request: Request<'depth'>) {
    return route.depth(await this.#target(request.queue), request);
  }

  async oldest(request: Request<'oldest'>) {
    return route.oldest(await this.#target(request.queue), request);
  }

  async history(request: Request<'history'>) {
    return route.history(await this.#target(request.queue), request);
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
    return this.#names.all();
  }

  async configuration(queue: string): Promise<QueueConfiguration> {
    const { connection, context } = await this.#open();
    return parseStoredConfiguration(await readConfiguration(connection.client, context, queue));
  }

  async configure(queue: string, change: Partial<QueueConfiguration>): Promise<QueueConfiguration> {
    const { connection, context } = await this.#open();
    await this.#names.put(queue);
    const places = this.#places.of(queue);
    route.refuseRateLimit(places, change);
    return configure(connection.client, context, places, change);
  }

  async watch(queues: readonly string[], onHint: (queue: string) => void): Promise<() => Promise<void>> {
    await this.#open();
    return this.#hints.watch(queues, onHint);
  }

  async ready({ queues, now }: Request<'ready'>): Promise<string[]> {
    const { context } = await this.#open();
    const places = queues.flatMap((queue) => this.#places.of(queue));
    const waiting = (await glance(context, places, now)).filter(({ waits }) => waits);
    return [...new Set(waiting.map(({ place }) => place.queue))];
  }

  async housekeep({ now }: Request<'housekeep'>) {
    const { context } = await this.#open();
    const places = (await this.#names.lately()).flatMap((queue) => this.#places.of(queue));
    const { moved, asOf, nextDueAt } = await housekeep(context, places, this.#followUpAccess(now));
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
      throw asNamed(error);
    });
    return this.#opening;
  }

  async #openNow(): Promise<Open> {
    const connection = (this.#connection ??= await openConnection(this.#options, this.#log));
    await connection.ready();
    const primaries = connection.primaries();
    const report = await inspectDurability({ primaries, options: this.#options, log: this.#log });
    const caller = new FunctionCaller(connection, functionLibrary());
    await caller.load();
    if (report.confirmation) {
      await probeFlushes(primaries, this.#options, report.confirmation);
      caller.require(report.confirmation);
    }
    const open = { connection, context: this.#context(caller, connection), durability: report };
    // Not when it has been stopped meanwhile.
    if (this.#connection === connection) this.#opened = open;
    return open;
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

  /** At once where the store is open: a promise more is felt by a call that does little. */
  #target(queue: string): route.Target | Promise<route.Target> {
    const targetOf = ({ context }: Open): route.Target => ({
      context,
      places: this.#places.of(queue),
      configuration: () => this.configuration(queue),
    });
    return this.#opened ? targetOf(this.#opened) : this.#open().then(targetOf);
  }

  #followUpAccess(now: number | undefined): FollowUpAccess {
    return {
      now,
      configurationOf: (queue) => this.configuration(queue),
      spread: async ({ queue, messages }) => {
        const places = this.#places.of(queue);
        if (places.length === 1) return [{ place: places[0]!, messages }];
        const { type } = await this.configuration(queue);
        const isIn = (shard: number) => (message: MessageToStore) =>
          shardOfMessage(message, type, places.length) === shard;
        return places
          .map((place, shard) => ({ place, messages: messages.filter(isIn(shard)) }))
          .filter((target) => target.messages.length > 0);
      },
    };
  }

  #listener() {
    if (!this.#connection) throw stopped();
    return this.#connection.listener();
  }
}
