/**
 * Checks what a queue has done against what it promises, from the outside: a store that records every answer, and a
 * check of the record together with the stored history. It says which promise was broken, for which message.
 */
import type { LeasedMessage, LeaseOutcome, Message, MessageEvent, QueueStore } from '../queue/index.js';

interface GrantedLease {
  readonly id: string;
  readonly leaseToken: string;
  readonly version: number;
  readonly startedAt: number;
  /** Moved by every extension that was accepted. */
  leaseUntil: number;
}

interface AcceptedEnd {
  readonly id: string;
  readonly leaseToken: string;
  readonly operation: string;
  readonly version: number;
}

/** What was acknowledged in one queue. Answers that never arrived are not in it. */
export class QueueRecord {
  readonly created = new Set<string>();
  readonly leases: GrantedLease[] = [];
  readonly accepted: AcceptedEnd[] = [];
  /** Leases that their holder tried to end; whether it did is unknown where no answer came. */
  readonly tried = new Set<string>();
  readonly #byToken = new Map<string, GrantedLease>();

  granted(messages: readonly LeasedMessage[]): void {
    for (const { id, leaseToken, version, startedAt, leaseUntil } of messages) {
      // A repeated request gives the same lease again.
      if (this.#byToken.has(`${id} ${leaseToken}`)) continue;
      const lease = { id, leaseToken, version, startedAt: startedAt!, leaseUntil };
      this.#byToken.set(`${id} ${leaseToken}`, lease);
      this.leases.push(lease);
    }
  }

  answered(
    operation: string,
    leases: readonly { readonly id: string; readonly leaseToken: string }[],
    outcomes: readonly LeaseOutcome[],
  ): void {
    for (const [place, outcome] of outcomes.entries()) {
      if (outcome.kind !== 'done') continue;
      const { id, leaseToken } = leases[place]!;
      const lease = this.#byToken.get(`${id} ${leaseToken}`);
      if (operation === 'extend' && lease && outcome.leaseUntil !== undefined)
        lease.leaseUntil = outcome.leaseUntil;
      this.accepted.push({ id, leaseToken, operation, version: outcome.version });
    }
  }
}

/** The same store, with every answer written down. */
export function recordQueueStore(store: QueueStore, record: QueueRecord): QueueStore {
  const settle =
    <Operation extends 'extend' | 'complete' | 'fail' | 'release'>(
      operation: Operation,
    ): QueueStore[Operation] =>
    async (request: Parameters<QueueStore[Operation]>[0]) => {
      if (operation !== 'extend')
        for (const { id, leaseToken } of request.leases) record.tried.add(`${id} ${leaseToken}`);
      const send = store[operation].bind(store) as (request: unknown) => Promise<LeaseOutcome[]>;
      const outcomes = await send(request);
      record.answered(operation, request.leases, outcomes);
      return outcomes;
    };
  const recorded: Partial<QueueStore> = {
    async enqueue(request) {
      const outcomes = await store.enqueue(request);
      for (const outcome of outcomes) if (outcome.kind === 'enqueued') record.created.add(outcome.id);
      return outcomes;
    },
    async dequeue(request) {
      const messages = await store.dequeue(request);
      record.granted(messages);
      return messages;
    },
    extend: settle('extend'),
    complete: settle('complete'),
    fail: settle('fail'),
    release: settle('release'),
  };
  return new Proxy(store, {
    get(target, name) {
      const own = recorded[name as keyof QueueStore];
      if (own !== undefined) return own;
      const value: unknown = Reflect.get(target, name);
      return typeof value === 'function' ? (value as (...values: unknown[]) => unknown).bind(target) : value;
    },
  });
}

/** What the store says at the end. */
export interface QueueEnding {
  readonly message: Message | undefined;
  readonly events: readonly MessageEvent[];
}

const terminal = new Set(['completed', 'canceled', 'errored']);

/** The broken promises, one sentence each; empty when all were kept. `valueOf` gives a message's exclusivity value. */
export function checkQueueHistory(
  record: QueueRecord,
  endings: ReadonlyMap<string, QueueEnding>,
  valueOf: (message: Message) => string | undefined = () => undefined,
): string[] {
  return [
    ...[...record.created].flatMap((id) => checkEnding(id, endings.get(id))),
    ...checkLeases(record),
    ...checkTokens(record),
    ...checkValues(endings, valueOf),
  ];
}

/** Acknowledged and there; terminal; versions and attempts without a gap. */
function checkEnding(id: string, ending: QueueEnding | undefined): string[] {
  if (!ending?.message) return [`${id}: an acknowledged enqueue was lost`];
  const broken: string[] = [];
  const { message, events } = ending;
  if (!terminal.has(message.state)) broken.push(`${id}: ends ${message.state}, not terminal`);
  if (events.some(({ version }, index) => version !== index + 1) || events.length !== message.version) {
    broken.push(
      `${id}: versions ${events.map(({ version }) => version).join(' ')} of ${message.version} have a gap`,
    );
  }
  let attempts = 0;
  for (const { from, to, attempt, version } of events) {
    const isDequeue = from === 'pending' && to === 'running';
    const isRefund = from === 'running' && attempt === attempts - 1;
    if (attempt !== attempts + (isDequeue ? 1 : 0) && !isRefund)
      broken.push(`${id}: attempt ${attempt} after ${attempts} at version ${version}`);
    attempts = attempt;
  }
  if (message.attempts > message.attemptsMax)
    broken.push(`${id}: ${message.attempts} attempts of ${message.attemptsMax}`);
  return broken;
}

function groupById<T extends { readonly id: string }>(items: readonly T[]): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) groups.set(item.id, [...(groups.get(item.id) ?? []), item]);
  return groups;
}

/** No message with two live leases at once: a lease that its holder did not end is live to its last known end. */
function checkLeases(record: QueueRecord): string[] {
  const ends = new Map(
    record.accepted
      .filter(({ operation }) => operation !== 'extend')
      .map((end) => [`${end.id} ${end.leaseToken}`, end]),
  );
  return [...groupById(record.leases)].flatMap(([id, leases]) => {
    const inOrder = leases.sort((a, b) => a.version - b.version);
    return inOrder.slice(1).flatMap((lease, index) => {
      const before = inOrder[index]!;
      const end = ends.get(`${id} ${before.leaseToken}`);
      const isEnded = end ? lease.version > end.version : record.tried.has(`${id} ${before.leaseToken}`);
      if (isEnded || lease.startedAt >= before.leaseUntil) return [];
      return [`${id}: two live leases, of versions ${before.version} and ${lease.version}`];
    });
  });
}

/** No effect accepted from an old token: nothing of a lease has a version beyond that of the next lease. */
function checkTokens(record: QueueRecord): string[] {
  const leasesById = groupById(record.leases);
  const byToken = new Map(record.leases.map((lease) => [`${lease.id} ${lease.leaseToken}`, lease]));
  return record.accepted.flatMap(({ id, leaseToken, operation, version }) => {
    const own = byToken.get(`${id} ${leaseToken}`);
    if (!own) return [`${id}: ${operation} accepted from a token that was never given out`];
    const later = (leasesById.get(id) ?? []).find(
      (lease) => lease.version > own.version && lease.version < version,
    );
    return later
      ? [
          `${id}: ${operation} accepted from the token of version ${own.version} after the lease of version ${later.version}`,
        ]
      : [];
  });
}

/** At most one running message of a value at any moment of the store's clock. */
function checkValues(
  endings: ReadonlyMap<string, QueueEnding>,
  valueOf: (message: Message) => string | undefined,
): string[] {
  const runs = new Map<string, { id: string; from: number; until: number }[]>();
  for (const [id, { message, events }] of endings) {
    const value = message && valueOf(message);
    if (value === undefined) continue;
    for (const [index, event] of events.entries()) {
      if (event.to !== 'running' || event.from === 'running') continue;
      const until =
        events.slice(index + 1).find(({ to }) => to !== 'running')?.at ?? Number.POSITIVE_INFINITY;
      runs.set(value, [...(runs.get(value) ?? []), { id, from: event.at, until }]);
    }
  }
  return [...runs].flatMap(([value, all]) => {
    const inOrder = all.sort((a, b) => a.from - b.from || a.until - b.until);
    return inOrder.slice(1).flatMap((run, index) => {
      const before = inOrder[index]!;
      return run.from < before.until && before.from < run.until
        ? [`value ${value}: ${before.id} and ${run.id} ran at once`]
        : [];
    });
  });
}
