/**
 * Notifications, as callers see them: one door for sending, one worker that delivers, and what people may ask and change.
 * Promises: no duplicate job; per kind at least once or at most once; nothing stuck; every loss and duplicate counted.
 */
import type { Queryable } from '../database/index.js';
import { invalidInput } from '../errors.js';
import type { Component } from '../lifecycle.js';
import { createCampaigns, type Campaigns } from './campaigns.js';
import { Deliverer } from './deliver.js';
import { createDigests, type Digests } from './digests.js';
import { Door } from './door.js';
import type { SendOptions } from './door-prepare.js';
import { notifyError } from './errors.js';
import { createInbox, type Inbox } from './inbox.js';
import { Kinds } from './kinds-in-force.js';
import { policyOf, type AnyKind, type DataOf, type KindPolicy, type KindTable } from './kinds.js';
import { notifyMetrics } from './metrics.js';
import type {
  Channel,
  Content,
  Delivery,
  JsonObject,
  Ledger,
  Notification,
  SendOutcome,
  SendRequest,
} from './notification.js';
import { resolveOptions, type NotifyOptions, type NotifySettings } from './options.js';
import { createPeople, type People } from './people.js';
import type { Receipt, ReceiptRequest } from './provider.js';
import { RateLimiter } from './rate.js';
import { ProviderSelection } from './selection.js';
import type { DeliveryFilter } from './store.js';
import { createSweep } from './sweep.js';
import { createRenderer } from './templates.js';
import { createUnsubscribe } from './unsubscribe.js';
import { createNotifyWorker, type NotifyWorkerOptions } from './worker.js';

export interface ProviderStatus {
  readonly name: string;
  readonly channel: Channel;
  /** Whether it may be called now; else `reason` says why not. */
  readonly open: boolean;
  readonly reason: string | undefined;
}

export interface Notify<Table extends KindTable = KindTable> extends Component {
  /**
   * Accepts a notification once: the same user, kind and key answers the first one's id and state. With `transaction` it
   * is accepted when that commits.
   */
  send<Name extends keyof Table & string>(
    kind: Name,
    request: SendRequest<DataOf<Table[Name]>>,
    options?: { readonly transaction?: Queryable | undefined },
  ): Promise<SendOutcome>;
  /** Several of one kind in one transaction, answered in order; one that is refused refuses all. */
  sendMany<Name extends keyof Table & string>(
    kind: Name,
    requests: readonly SendRequest<DataOf<Table[Name]>>[],
    options?: { readonly transaction?: Queryable | undefined },
  ): Promise<SendOutcome[]>;
  /** Ends what waits of this key; what is being sent keeps its outcome. Answers the ids of deliveries that ended. */
  cancel(request: {
    readonly user: string;
    readonly kind: string;
    readonly key: string;
    readonly transaction?: Queryable | undefined;
  }): Promise<{ readonly canceled: readonly string[] }>;
  /** With the readable history of each delivery. */
  get(id: string): Promise<Notification | undefined>;
  delivery(id: string): Promise<Delivery | undefined>;
  /** Newest first. Default limit 50, at most 200; `before`: the last id of the page before. */
  deliveries(filter?: Partial<DeliveryFilter>): Promise<Delivery[]>;
  /** What was accepted and what became of it; the parts sum up to the whole at every moment. */
  ledger(options?: { readonly kind?: string }): Promise<Ledger>;
  /** The message as a channel would show it; nothing is sent. */
  preview(request: {
    readonly kind: string;
    readonly channel: Channel;
    readonly data: JsonObject;
    readonly locale?: string;
  }): Promise<Content>;

  /** What the workers know together of each provider. */
  providers(): Promise<ProviderStatus[]>;

  /** The kinds in force. */
  kinds(): Promise<KindPolicy[]>;
  /** The kinds that this process can send, as its code defines them. */
  definitions(): KindTable;
  /** An operator's change, obeyed by every worker within seconds and kept over restarts. */
  changeKind(name: string, change: Partial<AnyKind>): Promise<KindPolicy>;

  /** Where users can be reached, what they want, quiet hours, unsubscribe, erasure. */
  readonly people: People;
  /** Events of a window as one message. */
  readonly digests: Digests;
  /** One kind to a stream of recipients. */
  readonly campaigns: Campaigns;
  /** What users have in their in-app inbox. */
  readonly inbox: Inbox;

  /** A provider's own request to us. Answer its `status`: never an error for what we do not know. */
  receive(
    provider: string,
    request: ReceiptRequest,
  ): Promise<{ readonly status: 200 | 401; readonly matched: number }>;

  /** What delivers. Several processes may run one each. */
  worker(options?: NotifyWorkerOptions): Component;
}

export function createNotify<const Table extends KindTable>(options: NotifyOptions<Table>): Notify<Table> {
  return new Engine(resolveOptions(options)) as unknown as Notify<Table>;
}

class Engine implements Notify {
  readonly #settings: NotifySettings;
  readonly #kinds: Kinds;
  readonly #door: Door;
  readonly #metrics;
  readonly people: People;
  readonly digests: Digests;
  readonly campaigns: Campaigns;
  readonly inbox: Inbox;

  constructor(settings: NotifySettings) {
    this.#settings = settings;
    this.#kinds = new Kinds(settings);
    const kinds = this.#kinds;
    const unsubscribe = settings.unsubscribe && createUnsubscribe(settings.unsubscribe);
    const door = new Door(settings, { kinds, renderer: createRenderer(), unsubscribe });
    this.#door = door;
    this.people = createPeople(settings, { kinds, unsubscribe });
    this.digests = createDigests(settings, { kinds, door });
    this.campaigns = createCampaigns(settings, { kinds, door });
    this.inbox = createInbox(settings);
    this.#metrics = settings.metrics(notifyMetrics);
  }

  get #now(): number | undefined {
    return this.#settings.clock.storeNow();
  }

  async start(): Promise<void> {
    const { store, database, policies } = this.#settings;
    await store.start();
    await store.putKinds(database, { policies, now: this.#now });
    await store.putProviders(database, { names: this.#settings.providers.map(({ name }) => name) });
    this.#kinds.forget();
  }

  async stop(options?: { deadlineMs?: number }): Promise<void> {
    await this.#settings.store.stop(options);
  }

  async send(kind: string, request: SendRequest, options?: SendOptions): Promise<SendOutcome> {
    const [outcome] = await this.#door.send(kind, [request], options);
    return outcome as SendOutcome;
  }

  sendMany(kind: string, requests: readonly SendRequest[], options?: SendOptions): Promise<SendOutcome[]> {
    return this.#door.send(kind, requests, options);
  }

  async cancel({
    user,
    kind,
    key,
    transaction,
  }: {
    readonly user: string;
    readonly kind: string;
    readonly key: string;
    readonly transaction?: Queryable | undefined;
  }) {
    this.#kinds.definition(kind);
    const { store, database } = this.#settings;
    const canceled = await store.suppressWaiting(transaction ?? database, {
      selection: { user, kind, key },
      reason: 'canceled',
      now: this.#now,
    });
    return { canceled };
  }

  get(id: string): Promise<Notification | undefined> {
    return this.#settings.store.notification(this.#settings.database, id);
  }

  delivery(id: string): Promise<Delivery | undefined> {
    return this.#settings.store.delivery(this.#settings.database, id);
  }

  async deliveries(filter: Partial<DeliveryFilter> = {}): Promise<Delivery[]> {
    const { user, kind, state, before, limit = 50 } = filter;
    if (!Number.isSafeInteger(limit) || limit < 1 || limit > 200)
      throw invalidInput('limit', limit, 'a whole number from 1 to 200');
    return this.#settings.store.deliveries(this.#settings.database, { user, kind, state, before, limit });
  }

  ledger({ kind }: { readonly kind?: string } = {}): Promise<Ledger> {
    return this.#settings.store.ledger(this.#settings.database, { kind });
  }

  preview(request: Parameters<Notify['preview']>[0]): Promise<Content> {
    return this.#door.preview(request);
  }

  async providers(): Promise<ProviderStatus[]> {
    const { store, database, providers } = this.#settings;
    const states = await store.providerStates(database, { now: this.#now });
    return providers.map(({ name, channel }) => {
      const state = states.find((one) => one.name === name);
      const paused = (state?.pausedInMs ?? 0) > 0;
      const open = !paused && state?.openInMs === undefined;
      return {
        name,
        channel,
        open,
        reason: open ? undefined : paused ? 'asked to be left alone' : state?.reason,
      };
    });
  }

  kinds(): Promise<KindPolicy[]> {
    return this.#settings.store.kinds(this.#settings.database);
  }

  definitions(): KindTable {
    return this.#settings.kinds;
  }

  async changeKind(name: string, change: Partial<AnyKind>): Promise<KindPolicy> {
    const { store, database } = this.#settings;
    const { policy: present } = await this.#kinds.get(database, name);
    const policy = policyOf(name, { ...definitionOf(present), ...change } as AnyKind);
    await store.changeKind(database, { policy, now: this.#now });
    this.#kinds.forget();
    return policy;
  }

  async receive(name: string, request: ReceiptRequest): Promise<{ status: 200 | 401; matched: number }> {
    const provider = this.#settings.providers.find((one) => one.name === name);
    if (provider?.parseReceipts === undefined)
      throw notifyError('provider-unknown', `no provider "${name}" that gives receipts`, {
        ids: { provider: name },
      });
    const parsed = await provider.parseReceipts(request);
    if (parsed.kind === 'signature-invalid') return { status: 401, matched: 0 };
    let matched = 0;
    for (const receipt of parsed.receipts) if (await this.#take(name, receipt)) matched += 1;
    return { status: 200, matched };
  }

  /** Answers whether a delivery was found. */
  async #take(provider: string, receipt: Receipt): Promise<boolean> {
    const { store, database, log } = this.#settings;
    const taken = await store.receive(database, { provider, receipt, now: this.#now });
    this.#metrics.add('headgate_notify_receipts_total', { provider, outcome: taken ? 'matched' : 'unknown' });
    log.debug({ provider, delivery: taken?.delivery, status: receipt.status }, 'a receipt came');
    return taken !== undefined;
  }

  worker(options: NotifyWorkerOptions = {}): Component {
    const settings = this.#settings;
    const selection = new ProviderSelection(settings);
    const limiter = new RateLimiter(settings);
    return createNotifyWorker({
      settings,
      options,
      selection,
      limiter,
      deliverer: new Deliverer(settings, selection, limiter),
      sweep: createSweep(settings, [() => this.digests.closeDue()]),
      policies: async () => (await this.#kinds.all(settings.database)).values(),
      receive: async (provider, receipt) => void (await this.#take(provider, receipt)),
    });
  }
}

/** A policy as the definition that would give it. */
function definitionOf(policy: KindPolicy): Omit<AnyKind, 'channels'> {
  return {
    delivery: policy.delivery,
    deadline: policy.deadlineMs,
    attemptsMax: policy.attemptsMax,
    retryAfter: policy.retryAfterMs,
    retryAfterMax: policy.retryAfterMaxMs,
    priority: policy.priority,
    floor: policy.floor,
    required: policy.required,
    secret: policy.secret,
    changeProvider: policy.changeProvider,
    keyKept: policy.keyKeptMs,
    limits: policy.limits.map(({ per, count, windowMs: window }) => ({ per, count, window })),
  };
}
