/**
 * The door: where a notification is accepted, once. Guarantees: the same user, kind and key is the same notification
 * however often and from wherever it is sent; what is accepted is rendered, frozen and will reach an end; notification,
 * deliveries and wake-ups are written in one transaction, the caller's own if given.
 */
import type { Queryable } from '../database/index.js';
import { invalidInput } from '../errors.js';
import { randomToken, timeOrderedId } from '../ids.js';
import type { NewMessage } from '../queue/index.js';
import { contentHash } from './content-hash.js';
import { parseDestination, parseLine } from './destination.js';
import { notifyError } from './errors.js';
import type { AnyKind, KindPolicy } from './kinds.js';
import type { Kinds } from './kinds-in-force.js';
import { notifyMetrics } from './metrics.js';
import {
  routeOf,
  stateOrder,
  type Channel,
  type DeliverySummary,
  type Destination,
  type JsonObject,
  type SendOutcome,
  type SendRequest,
} from './notification.js';
import { queueOf, type NotifySettings } from './options.js';
import { nextQuietEnd } from './quiet-hours.js';
import type { KnownNotification, NewDelivery, NewNotification, Person } from './store.js';
import type { Renderer } from './templates.js';
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
}

const nobody: Person = { locale: undefined, timeZone: undefined, quiet: undefined, destinations: [] };
const destinationsMax = 1_000;

export class Door {
  readonly #settings: NotifySettings;
  readonly #kinds: Kinds;
  readonly #renderer: Renderer;
  readonly #metrics;

  constructor(settings: NotifySettings, kinds: Kinds, renderer: Renderer) {
    this.#settings = settings;
    this.#kinds = kinds;
    this.#renderer = renderer;
    this.#metrics = bindMetrics(settings);
  }

  /** Answers in the order of the requests; one that is refused throws, and nothing of the batch is written. */
  async send(
    kindName: string,
    requests: readonly SendRequest[],
    options: SendOptions = {},
  ): Promise<SendOutcome[]> {
    const { database } = this.#settings;
    const { transaction } = options;
    const prepared: Prepared[] = [];
    const on = transaction ?? database;
    for (const request of requests) prepared.push(await this.#prepare(on, kindName, request, options));
    const outcomes =
      transaction === undefined
        ? await database.transaction((own) => this.#write(own, prepared))
        : await this.#write(transaction, prepared);
    for (const { kind } of outcomes)
      this.#metrics.add('headgate_notify_sends_total', { kind: kindName, outcome: kind });
    return outcomes;
  }

  async #prepare(
    on: Queryable,
    kindName: string,
    request: SendRequest,
    options: SendOptions,
  ): Promise<Prepared> {
    const { kind, policy } = await this.#kinds.get(on, kindName);
    const user = parseLine('user', request.user, 200);
    const key = parseLine('key', request.key, 200);
    const data = parseData(kindName, kind, request.data);
    const asksPerson = request.to === undefined || kind.locales !== undefined || policy.priority !== 'urgent';
    const person = asksPerson ? await this.#settings.store.person(on, user) : nobody;
    const to = (request.to ?? registered(kind, user, person)).map((destination, index) => ({
      suppressed: undefined,
      ...destination,
      ...parseUnlessMissing(`to[${index}]`, destination),
    }));
    if (to.length > destinationsMax)
      throw invalidInput('to', to.length, `at most ${destinationsMax} destinations`);
    const id = timeOrderedId(this.#settings.clock.now());
    const hashed = { data: request.data, to: request.to ?? null };
    const salt = randomToken();
    const contents = new Map<Channel, NewDelivery['content']>();
    const locale = request.locale ?? person.locale;
    const runAfter = await this.#runAfter(policy, person, parseSendAt(request.sendAt));
    const deliveries: NewDelivery[] = [];
    for (const [index, { suppressed, ...destination }] of to.entries()) {
      const { channel } = destination;
      const content =
        contents.get(channel) ?? (await this.#render({ kindName, kind, channel, data, locale }));
      contents.set(channel, content);
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

  #render(request: {
    kindName: string;
    kind: AnyKind;
    channel: Channel;
    data: JsonObject;
    locale: string | undefined;
  }): Promise<NewDelivery['content']> {
    const { kindName, kind, channel, data, locale } = request;
    const language = locale?.split('-')[0];
    const fields =
      (locale === undefined ? undefined : kind.locales?.[locale]?.[channel]) ??
      (language === undefined ? undefined : kind.locales?.[language]?.[channel]) ??
      kind.templates?.[channel] ??
      {};
    return this.#renderer.render({ kind: kindName, channel, fields, data });
  }

  /** The message as a channel would show it. */
  preview(request: {
    kind: string;
    channel: Channel;
    data: JsonObject;
    locale?: string;
  }): Promise<NewDelivery['content']> {
    const kind = this.#kinds.definition(request.kind);
    const data = parseData(request.kind, kind, request.data);
    return this.#render({
      kindName: request.kind,
      kind,
      channel: request.channel,
      data,
      locale: request.locale,
    });
  }

  /** Undefined: now. Urgent kinds pass quiet hours. */
  async #runAfter(
    policy: KindPolicy,
    person: Person,
    sendAt: number | undefined,
  ): Promise<number | undefined> {
    if (policy.priority === 'urgent' || person.quiet === undefined) return sendAt;
    const from = sendAt ?? this.#settings.clock.storeNow() ?? this.#settings.clock.now();
    const end = await nextQuietEnd({ at: from, timeZone: person.timeZone, quiet: person.quiet });
    return end ?? sendAt;
  }

  async #write(on: Queryable, prepared: readonly Prepared[]): Promise<SendOutcome[]> {
    const { store, clock, timings } = this.#settings;
    const now = clock.storeNow();
    const notifications = prepared.map(({ notification }) => notification);
    const createdAt = await store.insertNotifications(on, { notifications, now });
    const accepted = prepared.filter((_, index) => createdAt[index] !== undefined);
    const deliveries = accepted.flatMap((one) => one.deliveries);
    if (deliveries.length > 0)
      await store.insertDeliveries(on, { deliveries, sweepMs: timings.sweepMs, now });
    for (const { notification } of accepted) await this.#supersede(on, notification, now);
    await this.#enqueue(on, accepted, now ?? clock.now());
    const outcomes: SendOutcome[] = [];
    for (const [index, one] of prepared.entries()) {
      outcomes.push(createdAt[index] === undefined ? await this.#known(on, one) : acceptedOutcome(one));
    }
    return outcomes;
  }

  /** What waits of the same user and purpose is out of date now. */
  async #supersede(
    on: Queryable,
    { id, user, kind, purpose }: NewNotification,
    now: number | undefined,
  ): Promise<void> {
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
        byQueue.set(queue, [...(byQueue.get(queue) ?? []), message]);
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
    if (!known)
      throw notifyError(
        'notification-unknown',
        'the notification of this key has just been forgotten; send again',
      );
    const conflict = known.salt !== undefined && contentHash(known.salt, hashed) !== known.contentHash;
    return knownOutcome(known, conflict ? 'conflict' : 'duplicate');
  }
}

function acceptedOutcome({ notification, deliveries }: Prepared): SendOutcome {
  const summaries = deliveries.map(
    ({ id, destination: { channel, address }, suppressed }): DeliverySummary => ({
      id,
      channel,
      address,
      state: suppressed === undefined ? 'waiting' : 'suppressed',
    }),
  );
  return {
    kind: 'accepted',
    id: notification.id,
    duplicate: false,
    state: leastAdvanced(summaries),
    deliveries: summaries,
  };
}

function knownOutcome({ id, deliveries }: KnownNotification, kind: 'duplicate' | 'conflict'): SendOutcome {
  return { kind, id, duplicate: kind === 'duplicate', state: leastAdvanced(deliveries), deliveries };
}

/** Of several deliveries, the state that has got least far. */
export function leastAdvanced(deliveries: readonly DeliverySummary[]): DeliverySummary['state'] {
  return deliveries.reduce<DeliverySummary['state']>(
    (least, { state }) => (stateOrder[state] < stateOrder[least] ? state : least),
    'sent',
  );
}

function parseData(kindName: string, kind: AnyKind, data: unknown): JsonObject {
  if (typeof data !== 'object' || data === null || Array.isArray(data))
    throw invalidInput('data', Array.isArray(data) ? 'an array' : typeof data, 'a JSON object');
  if (kind.data === undefined) return data as JsonObject;
  try {
    return kind.data(data) as JsonObject;
  } catch (cause) {
    // The value itself stays out: it may be a code.
    throw invalidInput(
      'data',
      `data that the check of ${kindName} refused`,
      cause instanceof Error ? cause.message : 'other data',
    );
  }
}

type Target = Destination & { readonly suppressed?: string | undefined };

/** The user's destinations on the channels of the kind; a channel without one is said so, and not passed over. */
function registered(kind: AnyKind, user: string, person: Person): Target[] {
  return kind.channels.flatMap((channel): Target[] => {
    if (channel === 'inbox') return [{ channel, address: user }];
    const known = person.destinations.filter((destination) => destination.channel === channel);
    const live = known.filter(({ retired }) => retired === undefined);
    if (live.length > 0)
      return live.map(({ address, details }) => ({ channel, address, ...(details && { details }) }));
    const last = known.at(-1);
    if (last === undefined) return [{ channel, address: 'none', suppressed: 'no destination' }];
    return [{ channel, address: last.address, suppressed: `destination retired: ${last.retired}` }];
  });
}

function parseUnlessMissing(field: string, destination: Target): Partial<Destination> {
  return destination.suppressed === undefined ? parseDestination(field, destination) : {};
}

function parseSendAt(sendAt: number | Date | undefined): number | undefined {
  if (sendAt === undefined) return undefined;
  const at = sendAt instanceof Date ? sendAt.getTime() : sendAt;
  if (!Number.isSafeInteger(at) || at < 0)
    throw invalidInput('sendAt', sendAt, 'a time in unix milliseconds or a Date');
  return at;
}

function bindMetrics({ metrics }: NotifySettings) {
  return metrics(notifyMetrics);
}
