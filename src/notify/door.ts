/**
 * The door: where a notification is accepted, once. Guarantees: the same user, kind and key is the same notification
 * however often and from wherever it is sent; what is accepted is rendered, frozen and will reach an end; notification,
 * deliveries and wake-ups are written in one transaction, the caller's own if given.
 */
import type { Queryable } from '../database/index.js';
import { randomToken, timeOrderedId } from '../ids.js';
import type { NewMessage } from '../queue/index.js';
import { Coalescer } from './coalesce.js';
import { contentHash } from './content-hash.js';
import { parseLine } from './destination.js';
import { destinationOf, parseData, parseSendAt, parseTargets } from './door-request.js';
import { notifyError } from './errors.js';
import type { AnyKind, KindPolicy } from './kinds.js';
import type { Kinds } from './kinds-in-force.js';
import { notifyMetrics } from './metrics.js';
import {
  leastAdvanced,
  routeOf,
  type Channel,
  type Content,
  type DeliverySummary,
  type JsonObject,
  type SendOutcome,
  type SendRequest,
} from './notification.js';
import { queueOf, type NotifySettings } from './options.js';
import type { Person } from './people-store.js';
import { createPersonLookup, type PersonLookup } from './person-lookup.js';
import { nextQuietEnd } from './quiet-hours.js';
import type { NewDelivery, NewNotification } from './store.js';
import type { Renderer, TemplateFields, Templates } from './templates.js';
import type { Unsubscribe } from './unsubscribe.js';
import { wakeUp } from './wake-up.js';

/** A request that has been checked and rendered: ready to be written. */
interface Prepared {
  readonly notification: NewNotification;
  readonly policy: KindPolicy;
  /** What the hash is made of, without its salt. */
  readonly hashed: unknown;
  readonly deliveries: readonly NewDelivery[];
}

export interface SendOptions {
  /** The caller's open transaction on the same database: accepted when it commits, never was when it rolls back. */
  readonly transaction?: Queryable | undefined;
  readonly origin?: NewNotification['origin'];
  readonly campaign?: string | undefined;
  /** Accepted and ended at once: its content goes out with another one. */
  readonly suppressed?: string | undefined;
  /** Text in place of the kind's own. */
  readonly templates?: Templates | undefined;
}

/** Sends of one transaction; what comes meanwhile makes up the next one. */
const togetherMax = 100;
const togetherSideBySide = 1;
/** How long a transaction of several waits for a key before each is tried alone; the usual wait is a few milliseconds. */
const keyWaitMsMax = 20;

export class Door {
  readonly #settings: NotifySettings;
  readonly #kinds: Kinds;
  readonly #renderer: Renderer;
  readonly #unsubscribe: Unsubscribe | undefined;
  readonly #metrics;
  readonly #together: Coalescer<Prepared, SendOutcome>;
  readonly #personsOf: PersonLookup;

  constructor(
    settings: NotifySettings,
    parts: { kinds: Kinds; renderer: Renderer; unsubscribe: Unsubscribe | undefined },
  ) {
    this.#settings = settings;
    this.#kinds = parts.kinds;
    this.#renderer = parts.renderer;
    this.#unsubscribe = parts.unsubscribe;
    this.#metrics = settings.metrics(notifyMetrics);
    const { database } = settings;
    this.#personsOf = createPersonLookup(settings);
    this.#together = new Coalescer<Prepared, SendOutcome>({
      sizeMax: togetherMax,
      sideBySide: togetherSideBySide,
      keyOf: ({ notification: { user, kind, key } }) => JSON.stringify([user, kind, key]),
      together: (prepared) =>
        // Somebody's open transaction may hold one of the keys: only who sends that key waits for it.
        database.transaction((own) => this.#write(own, prepared, keyWaitMsMax)),
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
    const on = transaction ?? database;
    const { kind, policy } = await this.#kinds.get(on, kindName);
    const persons = await this.#persons(on, kind, policy, requests);
    const prepared: Prepared[] = [];
    for (const request of requests) {
      prepared.push(
        await this.#prepare({ kindName, kind, policy, request, options, person: persons.get(request.user) }),
      );
    }
    const outcomes = await this.#accept(transaction, prepared);
    for (const outcome of outcomes) this.#count(kindName, outcome);
    return outcomes;
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

  /** The message as a channel would show it. */
  async preview(request: {
    kind: string;
    channel: Channel;
    data: JsonObject;
    locale?: string;
  }): Promise<Content> {
    const { channel, kind: kindName, locale } = request;
    const kind = this.#kinds.definition(kindName);
    const data = parseData(kindName, kind, request.data);
    return this.#renderer.render({ kind: kindName, channel, fields: fieldsOf(kind, channel, locale), data });
  }

  /** Only what is needed of whom: a code with its number goes through without a look at the user. */
  #persons(
    on: Queryable,
    kind: AnyKind,
    policy: KindPolicy,
    requests: readonly SendRequest[],
  ): Promise<Map<string, Person>> {
    const asksAll = kind.locales !== undefined || policy.priority !== 'urgent';
    const users = requests.filter(({ to }) => asksAll || to === undefined).map(({ user }) => user);
    return this.#personsOf(on, users);
  }

  async #prepare(input: {
    readonly kindName: string;
    readonly kind: AnyKind;
    readonly policy: KindPolicy;
    readonly request: SendRequest;
    readonly person: Person | undefined;
    readonly options: SendOptions;
  }): Promise<Prepared> {
    const { kindName, kind, policy, request, person, options } = input;
    const user = parseLine('user', request.user, 200);
    const key = parseLine('key', request.key, 200);
    const data = parseData(kindName, kind, request.data);
    const targets = parseTargets(kind, request, person);
    const id = timeOrderedId(this.#settings.clock.now());
    const runAfter = await this.#runAfter(policy, person, parseSendAt(request.sendAt));
    const contents = new Map<Channel, Content>();
    const deliveries: NewDelivery[] = [];
    for (const [index, target] of targets.entries()) {
      const { channel } = target;
      const suppressed = options.suppressed ?? target.suppressed;
      const locale = request.locale ?? person?.locale;
      const content =
        suppressed === undefined
          ? (contents.get(channel) ??
            (await this.#render({ kindName, kind, policy, channel, data, user, locale, options })))
          : {};
      contents.set(channel, content);
      const destination = destinationOf(target);
      deliveries.push({
        id: `${id}-${index.toString(36)}`,
        notification: id,
        user,
        kind: kindName,
        destination,
        route: routeOf(destination),
        content,
        campaign: options.campaign,
        runAfter,
        deadlineMs: policy.deadlineMs,
        suppressed,
      });
    }
    const hashed = { data: request.data, to: request.to ?? null };
    const salt = randomToken();
    return {
      policy,
      hashed,
      deliveries,
      notification: {
        id,
        user,
        kind: kindName,
        key,
        purpose:
          kind.purpose === undefined ? undefined : parseLine('purpose', kind.purpose(data as never), 200),
        origin: options.origin ?? 'door',
        salt,
        contentHash: contentHash(salt, hashed),
        keyKeptMs: policy.keyKeptMs,
      },
    };
  }

  async #render(input: {
    kindName: string;
    kind: AnyKind;
    policy: KindPolicy;
    channel: Channel;
    data: JsonObject;
    user: string;
    locale: string | undefined;
    options: SendOptions;
  }): Promise<Content> {
    const { kindName, kind, policy, channel, data, user, locale, options } = input;
    const unsubscribeUrl = policy.required
      ? undefined
      : this.#unsubscribe?.url({ user, kind: kindName, channel });
    const content = await this.#renderer.render({
      kind: kindName,
      channel,
      fields: options.templates?.[channel] ?? fieldsOf(kind, channel, locale),
      data: unsubscribeUrl === undefined ? data : { ...data, unsubscribe_url: unsubscribeUrl },
    });
    return channel === 'email' && unsubscribeUrl !== undefined ? { ...content, unsubscribeUrl } : content;
  }

  /** Undefined: now. Urgent kinds pass quiet hours. */
  async #runAfter(
    policy: KindPolicy,
    person: Person | undefined,
    sendAt: number | undefined,
  ): Promise<number | undefined> {
    if (policy.priority === 'urgent' || person?.quiet === undefined) return sendAt;
    const from = sendAt ?? this.#settings.clock.storeNow() ?? this.#settings.clock.now();
    const end = await nextQuietEnd({ at: from, timeZone: person.timeZone, quiet: person.quiet });
    return end ?? sendAt;
  }

  async #write(on: Queryable, prepared: readonly Prepared[], keyWaitMs?: number): Promise<SendOutcome[]> {
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
    for (const { notification } of accepted) await this.#supersede(on, notification, now);
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

/** The text of a channel in a language: the exact locale, the language, the kind's own. */
function fieldsOf(kind: AnyKind, channel: Channel, locale: string | undefined): TemplateFields {
  const language = locale?.split('-')[0];
  return (
    (locale === undefined ? undefined : kind.locales?.[locale]?.[channel]) ??
    (language === undefined ? undefined : kind.locales?.[language]?.[channel]) ??
    kind.templates?.[channel] ??
    {}
  );
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
