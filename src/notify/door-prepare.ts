/**
 * From a request to what is written: checked, rendered and frozen. Guarantees: everything that is refused is refused here,
 * before anything is written; what a retry sends is what was rendered here.
 */
import type { Queryable } from '../database/index.js';
import { randomToken, timeOrderedId } from '../ids.js';
import { contentHash } from './content-hash.js';
import { parseLine } from './destination.js';
import { destinationOf, parseData, parseSendAt, parseTargets } from './door-request.js';
import type { AnyKind, KindPolicy } from './kinds.js';
import type { Kinds } from './kinds-in-force.js';
import { subjectsOf, type CountedSubject } from './limits.js';
import { routeOf, type Channel, type Content, type JsonObject, type SendRequest } from './notification.js';
import type { NotifySettings } from './options.js';
import type { Person } from './people-store.js';
import { createPersonLookup, type PersonLookup } from './person-lookup.js';
import { nextQuietEnd } from './quiet-hours.js';
import type { NewDelivery, NewNotification } from './store.js';
import type { Renderer, TemplateFields, Templates } from './templates.js';
import type { Unsubscribe } from './unsubscribe.js';

/** A request that has been checked and rendered: ready to be written. */
export interface Prepared {
  readonly notification: NewNotification;
  readonly policy: KindPolicy;
  /** What the hash is made of, without its salt. */
  readonly hashed: unknown;
  readonly deliveries: readonly NewDelivery[];
  /** What it counts for where its kind has limits. */
  readonly subjects: readonly CountedSubject[];
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

export interface PreparerParts {
  readonly kinds: Kinds;
  readonly renderer: Renderer;
  readonly unsubscribe: Unsubscribe | undefined;
}

export class Preparer {
  readonly #settings: NotifySettings;
  readonly #kinds: Kinds;
  readonly #renderer: Renderer;
  readonly #unsubscribe: Unsubscribe | undefined;
  readonly #personsOf: PersonLookup;

  constructor(settings: NotifySettings, parts: PreparerParts) {
    this.#settings = settings;
    this.#kinds = parts.kinds;
    this.#renderer = parts.renderer;
    this.#unsubscribe = parts.unsubscribe;
    this.#personsOf = createPersonLookup(settings);
  }

  /** In the order of the requests; one that is refused throws. */
  async prepare(
    on: Queryable,
    kindName: string,
    requests: readonly SendRequest[],
    options: SendOptions,
  ): Promise<Prepared[]> {
    const { kind, policy } = await this.#kinds.get(on, kindName);
    const persons = await this.#persons(on, kind, policy, requests);
    const prepared: Prepared[] = [];
    for (const request of requests) {
      prepared.push(
        await this.#prepare({ kindName, kind, policy, request, options, person: persons.get(request.user) }),
      );
    }
    return prepared;
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
    const origin = options.origin ?? 'door';
    const isCounted = origin !== 'digest' && options.suppressed === undefined;
    const hashed = { data: request.data, to: request.to ?? null };
    const salt = randomToken();
    return {
      policy,
      hashed,
      deliveries,
      subjects: isCounted ? subjectsOf(policy.limits, { user, deliveries }) : [],
      notification: {
        id,
        user,
        kind: kindName,
        key,
        purpose:
          kind.purpose === undefined ? undefined : parseLine('purpose', kind.purpose(data as never), 200),
        origin,
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
