/**
 * The memory store: the specification of the port, the quick start, and the model of the random tests. Every operation
 * is one synchronous step, so it is linearizable by construction. Nothing survives the process.
 */
import type { MessageEvent, MessageState } from '../message.js';
import { invalidInput } from '../../errors.js';
import { queueError } from '../errors.js';
import type { Depth, FollowUp, LeaseOutcome, QueueConfiguration, QueueStore, Recurring } from '../store.js';
import { configurationDefault } from '../store.js';
import { dequeueFrom } from './dequeue.js';
import { enqueueOne, refusal } from './enqueue.js';
import { collect, forget, heldBy, sweep, type MoveContext } from './moves.js';
import { cancelOne, changeOne, requeueOne } from './operate.js';
import { completeOne, extendOne, failOne, releaseOne } from './settle.js';
import { QueueTable, type StoredMessage } from './table.js';
import { matches, toMessage } from './view.js';

const housekeepMax = 1_000;

type Request<Operation extends keyof QueueStore> = QueueStore[Operation] extends
  | ((request: infer R) => unknown)
  | undefined
  ? R
  : never;

export function createMemoryQueueStore(): QueueStore {
  return new MemoryQueueStore();
}

class MemoryQueueStore implements QueueStore {
  readonly name = 'memory';
  readonly #tables = new Map<string, QueueTable>();
  readonly #recurring = new Map<string, Recurring>();
  readonly #watchers = new Map<string, Set<(queue: string) => void>>();
  readonly #listeners = new Set<(events: readonly MessageEvent[]) => void>();
  #incarnation = 0;

  async start(): Promise<void> {}
  async stop(): Promise<void> {}

  async enqueue({ queue, messages, transaction, now }: Request<'enqueue'>) {
    if (transaction !== undefined) throw noTransaction();
    this.#table(queue);
    return this.#change(queue, now, (context) =>
      messages.map((message) => enqueueOne(context, message, () => ++this.#incarnation)),
    );
  }

  async dequeue(request: Request<'dequeue'>) {
    return this.#change(request.queue, request.now, (context) => dequeueFrom(context, request));
  }

  async extend({ queue, leases, now }: Request<'extend'>) {
    return this.#change(queue, now, (context) => leases.map((lease) => extendOne(context, lease)));
  }

  async complete({ queue, leases, transaction, now }: Request<'complete'>) {
    if (transaction !== undefined) throw noTransaction();
    return this.#change(queue, now, (context) =>
      leases.map((lease): LeaseOutcome => {
        const { id, leaseToken, followUps = [] } = lease;
        if (!heldBy(context, id, leaseToken)) return completeOne(context, lease);
        const error = this.#followUpRefusal(followUps);
        if (error) return { kind: 'refused', id, error };
        const outcome = completeOne(context, lease);
        this.#enqueueFollowUps(followUps, now);
        return outcome;
      }),
    );
  }

  async fail({ queue, leases, now }: Request<'fail'>) {
    return this.#change(queue, now, (context) => leases.map((lease) => failOne(context, lease)));
  }

  async release({ queue, leases, now }: Request<'release'>) {
    return this.#change(queue, now, (context) => leases.map((lease) => releaseOne(context, lease)));
  }

  async settleAndDequeue({ queue, complete, dequeue, now }: Request<'settleAndDequeue'>) {
    const completed = await this.complete({ queue, leases: complete, now });
    return { completed, messages: await this.dequeue(dequeue) };
  }

  async cancel({ queue, ids, now }: Request<'cancel'>) {
    return this.#change(queue, now, (context) => ids.map((id) => cancelOne(context, id)));
  }

  async change({ queue, changes, now }: Request<'change'>) {
    return this.#change(queue, now, (context) => changes.map((change) => changeOne(context, change)));
  }

  async requeue({ queue, ids, now }: Request<'requeue'>) {
    return this.#change(queue, now, (context) => ids.map((id) => requeueOne(context, id)));
  }

  async purge({ queue, state, limit }: Request<'purge'>) {
    const table = this.#tables.get(queue);
    const gone = table ? inState(table, state).slice(0, limit) : [];
    for (const message of gone) {
      table!.displace(message);
      forget(table!, message);
    }
    return { removed: gone.length };
  }

  async get({ queue, id }: Request<'get'>) {
    const message = this.#tables.get(queue)?.known.get(id);
    return message && toMessage(queue, message);
  }

  async list({ queue, state, where, after, limit, newestFirst = false }: Request<'list'>) {
    if (after !== undefined && !/^-?\d{1,16}\.\d{1,16}$/.test(after))
      throw invalidInput('after', after, 'the cursor of a page');
    const table = this.#tables.get(queue);
    const inOrder = table ? inState(table, state) : [];
    const all = newestFirst ? inOrder.toReversed() : inOrder;
    const isLater = (message: StoredMessage, cursor: string) =>
      newestFirst ? !isPast(message, cursor) && cursorOf(message) !== cursor : isPast(message, cursor);
    const from = after === undefined ? 0 : all.findIndex((message) => isLater(message, after));
    const matching = from < 0 ? [] : all.slice(from).filter(({ metadata }) => matches(metadata, where));
    const page = matching.slice(0, limit);
    const last = matching.length > limit ? page.at(-1) : undefined;
    return { messages: page.map((message) => toMessage(queue, message)), next: last && cursorOf(last) };
  }

  async depth({ queue, where, now }: Request<'depth'>): Promise<Depth> {
    const counts = { invisible: 0, pending: 0, running: 0 };
    this.#change(queue, now, (context) => {
      sweep(context, Number.POSITIVE_INFINITY);
      for (const state of ['invisible', 'pending', 'running'] as const) {
        for (const { metadata } of context.table[state]) if (matches(metadata, where)) counts[state] += 1;
      }
    });
    return { ...counts, exact: true, asOf: now ?? Date.now() };
  }

  async oldest({ queue, where, now }: Request<'oldest'>) {
    return this.#change(queue, now, (context) => {
      sweep(context, Number.POSITIVE_INFINITY);
      let oldest: StoredMessage | undefined;
      for (const message of context.table.pending) {
        if (!matches(message.metadata, where) || context.table.isBusy(message.value)) continue;
        if (!oldest || message.visibleAt < oldest.visibleAt) oldest = message;
      }
      return oldest && { id: oldest.id, ageMs: Math.max(0, context.now - oldest.visibleAt) };
    });
  }

  async history({ queue, id }: Request<'history'>) {
    return [...(this.#tables.get(queue)?.known.get(id)?.events ?? [])];
  }

  onEvents(listener: (events: readonly MessageEvent[]) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async putRecurring(recurring: Recurring): Promise<void> {
    const existing = this.#recurring.get(recurring.name);
    const keeps = existing?.cron === recurring.cron && existing.timeZone === recurring.timeZone;
    this.#recurring.set(recurring.name, keeps ? { ...recurring, next: existing.next } : recurring);
  }

  async removeRecurring(name: string): Promise<boolean> {
    return this.#recurring.delete(name);
  }

  async recurring({ due, now = Date.now() }: Request<'recurring'>): Promise<Recurring[]> {
    return [...this.#recurring.values()].filter(({ next }) => !due || next <= now);
  }

  async advanceRecurring({ name, from, next }: Request<'advanceRecurring'>): Promise<boolean> {
    const existing = this.#recurring.get(name);
    if (existing?.next !== from) return false;
    this.#recurring.set(name, { ...existing, next });
    return true;
  }

  async time(now: number | undefined): Promise<number> {
    return now ?? Date.now();
  }

  async queues(): Promise<string[]> {
    return [...this.#tables.keys()].sort();
  }

  async configuration(queue: string): Promise<QueueConfiguration> {
    return this.#tables.get(queue)?.configuration ?? configurationDefault;
  }

  async configure(queue: string, change: Partial<QueueConfiguration>): Promise<QueueConfiguration> {
    const table = this.#table(queue);
    const { type } = table.configuration;
    const next = { ...table.configuration, ...change };
    if (!table.isEmpty && JSON.stringify(next.type) !== JSON.stringify(type)) {
      const text = `queue "${queue}" holds messages: its type and exclusivity key cannot change now`;
      throw queueError('configuration-fixed', text, { field: 'type', ids: { queue } });
    }
    table.configuration = next;
    return next;
  }

  async watch(queues: readonly string[], onHint: (queue: string) => void): Promise<() => Promise<void>> {
    for (const queue of queues)
      this.#watchers.set(queue, (this.#watchers.get(queue) ?? new Set()).add(onHint));
    return async () => {
      for (const queue of queues) this.#watchers.get(queue)?.delete(onHint);
    };
  }

  async ready({ queues, now = Date.now() }: Request<'ready'>): Promise<string[]> {
    return queues.filter((queue) => {
      const table = this.#tables.get(queue);
      if (!table || table.configuration.dequeueBlocked) return false;
      if (table.pending.size > 0) return true;
      return (
        (table.invisible.first?.visibleAt ?? Infinity) <= now ||
        (table.running.first?.leaseUntil ?? Infinity) <= now
      );
    });
  }

  async housekeep({ now = Date.now() }: Request<'housekeep'>) {
    let moved = 0;
    let nextDue = Number.POSITIVE_INFINITY;
    for (const [queue, table] of this.#tables) {
      moved += this.#change(queue, now, (context) => sweep(context, housekeepMax));
      for (let collected = 0; collected < housekeepMax; collected += 1, moved += 1) {
        const message = table.terminal.first;
        if (!message || message.expiresAt > now) break;
        collect(table, message, now);
      }
      nextDue = Math.min(
        nextDue,
        table.invisible.first?.visibleAt ?? Infinity,
        table.running.first?.leaseUntil ?? Infinity,
      );
    }
    for (const { next } of this.#recurring.values()) nextDue = Math.min(nextDue, next);
    return {
      moved,
      nextDueMs: nextDue === Number.POSITIVE_INFINITY ? undefined : Math.max(0, nextDue - now),
    };
  }

  #followUpRefusal(followUps: readonly FollowUp[]) {
    for (const { queue, messages } of followUps) {
      for (const message of messages) {
        const error = refusal(this.#table(queue), message);
        if (error) return error;
      }
    }
    return undefined;
  }

  #enqueueFollowUps(followUps: readonly FollowUp[], now: number | undefined): void {
    for (const { queue, messages } of followUps) {
      this.#table(queue);
      this.#change(queue, now, (context) =>
        messages.map((message) => enqueueOne(context, message, () => ++this.#incarnation)),
      );
    }
  }

  #table(queue: string): QueueTable {
    const table = this.#tables.get(queue) ?? new QueueTable(queue);
    this.#tables.set(queue, table);
    return table;
  }

  /** Runs one step on a queue, then publishes its events and, if something may have become dequeueable, a hint. */
  #change<T>(queue: string, now: number | undefined, step: (context: MoveContext) => T): T {
    const table = this.#tables.get(queue) ?? new QueueTable(queue);
    const context: MoveContext = { table, now: now ?? Date.now(), events: [] };
    const answer = step(context);
    if (context.events.length > 0) for (const listener of this.#listeners) listener(context.events);
    const isExclusive = table.configuration.type.kind === 'exclusive';
    if (context.events.some(({ to }) => to === 'pending' || (isExclusive && to !== 'running'))) {
      for (const watcher of this.#watchers.get(queue) ?? []) watcher(queue);
    }
    return answer;
  }
}

const noTransaction = () =>
  queueError('transaction-unsupported', 'the memory store has no transactions', {
    field: 'transaction',
    expected: 'a postgres store',
  });

/** Messages of a state in the order in which they are listed: what happens next first, terminal ones by enqueue. */
function inState(table: QueueTable, state: MessageState): StoredMessage[] {
  if (state === 'pending' || state === 'invisible' || state === 'running') return [...table[state]];
  const visible = [...table.terminal].filter((message) => message.state === state && !message.hidden);
  return visible.sort((a, b) => a.incarnation - b.incarnation);
}

const listKey = (message: StoredMessage): readonly [number, number] => {
  const keys: Partial<Record<MessageState, number>> = {
    pending: message.priority,
    invisible: message.visibleAt,
    running: message.leaseUntil ?? 0,
  };
  return [keys[message.state] ?? 0, message.incarnation];
};

const cursorOf = (message: StoredMessage): string => listKey(message).join('.');

function isPast(message: StoredMessage, cursor: string): boolean {
  const [key = 0, incarnation = 0] = cursor.split('.').map(Number);
  const own = listKey(message);
  return own[0] > key || (own[0] === key && own[1] > incarnation);
}
