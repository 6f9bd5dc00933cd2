/**
 * The door: where a notification is accepted, once. Guarantees: the same user, kind and key is the same notification
 * however often and from wherever it is sent; what is accepted is rendered, frozen and will reach an end; notification,
 * deliveries and wake-ups are written in one transaction, the caller's own if given.
 */
import type { Queryable } from '../database/index.js';
import { isHeadgateError } from '../errors.js';
import type { NewMessage } from '../queue/index.js';
import { Coalescer } from './coalesce.js';
import { contentHash } from './content-hash.js';
import { Preparer, type Prepared, type PreparerParts, type SendOptions } from './door-prepare.js';
import { notifyError } from './errors.js';
import { limitReached } from './limits.js';
import { notifyMetrics } from './metrics.js';
import {
  leastAdvanced,
  type Content,
  type DeliverySummary,
  type SendOutcome,
  type SendRequest,
} from './notification.js';
import { queueOf, type NotifySettings } from './options.js';
import type { NewNotification } from './store.js';
import { wakeUp } from './wake-up.js';

/** Sends of one transaction; what comes meanwhile makes up the next one. */
const togetherMax = 100;
const togetherSideBySide = 1;
/** How long a transaction of several waits for a key before each is tried alone; the usual wait is a few milliseconds. */
const keyWaitMsMax = 20;

export class Door {
  readonly #settings: NotifySettings;
  readonly #preparer: Preparer;
  readonly #metrics;
  readonly #together: Coalescer<Prepared, SendOutcome>;

  constructor(settings: NotifySettings, parts: PreparerParts) {
    this.#settings = settings;
    this.#preparer = new Preparer(settings, parts);
    this.#metrics = settings.metrics(notifyMetrics);
    const { database } = settings;
    this.#together = new Coalescer<Prepared, SendOutcome>({
      sizeMax: togetherMax,
      sideBySide: togetherSideBySide,
      keyOf: ({ notification: { user, kind, key } }) => JSON.stringify([user, kind, key]),
      together: (prepared) =>
        // Somebody's open transaction may hold one of the keys: only who sends that key waits for it.
        database.transaction((own) => this.#writeAllowed(own, prepared, keyWaitMsMax)),
      alone: async (one) => (await database.transaction((own) => this.#write(own, [one])))[0] as SendOutcome,
    });
  }

  /** Answers in the order of the requests; one that is refused throws, and nothing of the batch is written. */
  async send(
    kindName: string,
    requests: readonly SendRequest[],
    options: SendOptions = {},
  ): Promise<SendOutcome[]> {
    const { transaction } = options;
    const { database } = this.#settings;
    // What is written later, with others, would not notice.
    if (transaction === undefined) database.assertOutside?.('transaction');
    const prepared = await this.#preparer.prepare(transaction ?? database, kindName, requests, options);
    const outcomes = await this.#accept(transaction, prepared).catch((error: unknown) => {
      if (isHeadgateError(error, 'send-limited'))
        this.#metrics.add('headgate_notify_sends_total', { kind: kindName, outcome: 'limited' });
      throw error;
    });
    for (const outcome of outcomes) this.#count(kindName, outcome);
    return outcomes;
  }

  /** The message as a channel would show it. */
  preview(request: Parameters<Preparer['preview']>[0]): Promise<Content> {
    return this.#preparer.preview(request);
  }

  /** In the caller's transaction, or in one of ours: alone, or with what others send at the same moment. */
  async #accept(transaction: Queryable | undefined, prepared: readonly Prepared[]): Promise<SendOutcome[]> {
    if (transaction !== undefined) return this.#write(transaction, prepared);
    const { database } = this.#settings;
    const [only] = prepared;
    if (only === undefined || prepared.length > 1)
      return database.transaction((own) => this.#write(own, prepared));
    return [await this.#together.call(only)];
  }

  /** One that is over a limit refuses all; in a campaign it is accepted, and has ended. */
  async #write(on: Queryable, prepared: readonly Prepared[]): Promise<SendOutcome[]> {
    const isCampaign = prepared[0]?.notification.origin === 'campaign';
    const over = await this.#overLimit(on, prepared, { all: !isCampaign });
    for (const [{ notification }, retryAfterMs] of over)
      if (!isCampaign) throw limitReached(notification.kind, retryAfterMs);
    return this.#insert(
      on,
      prepared.map((one) => (over.has(one) ? endedByLimit(one) : one)),
    );
  }

  /** Undefined in the place of one that is over a limit: it is refused alone. */
  async #writeAllowed(
    on: Queryable,
    prepared: readonly Prepared[],
    keyWaitMs: number,
  ): Promise<(SendOutcome | undefined)[]> {
    const over = await this.#overLimit(on, prepared, { all: false, keyWaitMs });
    const allowed = prepared.filter((one) => !over.has(one));
    const outcomes = await this.#insert(on, allowed, keyWaitMs);
    return prepared.map((one) => outcomes[allowed.indexOf(one)]);
  }

  /** Counts those whose kind has a limit; answers those that are over it, with the time until they would not be. */
  async #overLimit(
    on: Queryable,
    prepared: readonly Prepared[],
    { all, keyWaitMs }: { readonly all: boolean; readonly keyWaitMs?: number },
  ): Promise<ReadonlyMap<Prepared, number>> {
    const counted = prepared.filter(({ subjects }) => subjects.length > 0);
    if (counted.length === 0) return new Map();
    const over = await this.#settings.store.takeSends(on, {
      sends: counted.map(({ subjects, notification: { user, kind, key } }) => ({
        user,
        kind,
        key,
        subjects,
      })),
      all,
      keyWaitMs,
      now: this.#settings.clock.storeNow(),
    });
    return new Map([...over].map(([place, retryAfterMs]) => [counted[place] as Prepared, retryAfterMs]));
  }

  async #insert(on: Queryable, prepared: readonly Prepared[], keyWaitMs?: number): Promise<SendOutcome[]> {
    if (prepared.length === 0) return [];
    const { store, clock, timings } = this.#settings;
    const now = clock.storeNow();
    const written = await store.accept(on, {
      notifications: prepared.map(({ notification }) => notification),
      deliveries: prepared.flatMap(({ deliveries }) => deliveries),
      sweepMs: timings.sweepMs,
      keyWaitMs,
      now,
    });
    const isNew = ({ notification: { id } }: Prepared): boolean => written.has(id);
    const accepted = prepared.filter(isNew);
    for (const { notification, deliveries } of accepted) {
      // What will not be sent itself takes nobody's place.
      if (deliveries.some(({ suppressed }) => suppressed === undefined))
        await this.#supersede(on, notification, now);
    }
    await this.#enqueue(on, accepted, now ?? clock.now());
    const outcomes: SendOutcome[] = [];
    for (const one of prepared) outcomes.push(isNew(one) ? acceptedOutcome(one) : await this.#known(on, one));
    return outcomes;
  }

  /** What waits of the same user and purpose is out of date now. */
  async #supersede(on: Queryable, notification: NewNotification, now: number | undefined): Promise<void> {
    const { id, user, kind, purpose } = notification;
    if (purpose === undefined) return;
    await this.#settings.store.suppressWaiting(on, {
      selection: { user, kind, purpose, exceptNotification: id },
      reason: 'superseded by a newer one',
      now,
    });
  }

  /** The wake-ups, in the same transaction. */
  async #enqueue(on: Queryable, accepted: readonly Prepared[], now: number): Promise<void> {
    const byQueue = new Map<string, NewMessage[]>();
    for (const { deliveries, policy } of accepted) {
      for (const { id, kind, route, runAfter, suppressed } of deliveries) {
        if (suppressed !== undefined) continue;
        const delayMs = Math.max(0, (runAfter ?? now) - now);
        const message = wakeUp({ id, kind, priority: policy.priority, runAfter: now + delayMs, delayMs });
        const queue = queueOf(this.#settings, route);
        const messages = byQueue.get(queue);
        if (messages === undefined) byQueue.set(queue, [message]);
        else messages.push(message);
      }
    }
    for (const [queue, messages] of byQueue) {
      const outcomes = await this.#settings.queue.enqueue(queue, messages, { transaction: on });
      for (const outcome of outcomes) if (outcome.kind === 'refused') throw outcome.error;
    }
  }

  async #known(on: Queryable, { notification, hashed }: Prepared): Promise<SendOutcome> {
    const { user, kind, key } = notification;
    const known = await this.#settings.store.known(on, { user, kind, key });
    if (!known) {
      const text = 'the notification of this key has been forgotten this moment; send again';
      throw notifyError('notification-unknown', text);
    }
    const { id, salt, deliveries } = known;
    const duplicate = salt === undefined || contentHash(salt, hashed) === known.contentHash;
    const state = leastAdvanced(deliveries);
    return { kind: duplicate ? 'duplicate' : 'conflict', id, duplicate, state, deliveries };
  }

  #count(kind: string, { kind: outcome, deliveries }: SendOutcome): void {
    this.#metrics.add('headgate_notify_sends_total', { kind, outcome });
    if (outcome !== 'accepted') return;
    for (const { channel } of deliveries)
      this.#metrics.add('headgate_notify_deliveries_total', { kind, channel });
  }
}

/** It ends before it begins, so that the campaign's sums add up. */
function endedByLimit(one: Prepared): Prepared {
  const deliveries = one.deliveries.map((delivery) => ({
    ...delivery,
    suppressed: delivery.suppressed ?? 'over the limit of its kind',
  }));
  return { ...one, deliveries };
}

function acceptedOutcome({ notification: { id }, deliveries }: Prepared): SendOutcome {
  const summaries = deliveries.map(
    ({ id: delivery, destination: { channel, address }, suppressed }): DeliverySummary => ({
      id: delivery,
      channel,
      address,
      state: suppressed === undefined ? 'waiting' : 'suppressed',
    }),
  );
  return { kind: 'accepted', id, duplicate: false, state: leastAdvanced(summaries), deliveries: summaries };
}
