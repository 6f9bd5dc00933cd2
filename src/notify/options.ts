/** Options of the notification engine: validated once, then read-only; each bound with its default and reason. */
import { systemClock, type Clock } from '../clock.js';
import type { Database } from '../database/index.js';
import { invalidInput } from '../errors.js';
import { silentLog, type Log } from '../log.js';
import { noMetrics, type MetricsBackend } from '../metrics.js';
import type { Queue } from '../queue/index.js';
import { createDatabaseSignals, type Signals } from '../signals.js';
import { policyOf, type KindPolicy, type KindTable } from './kinds.js';
import { routeOf, type PushPlatform } from './notification.js';
import { inboxProviderOf } from './inbox.js';
import type { Provider } from './provider.js';
import type { BreakerLimits, NotifyStore } from './store.js';
import type { UnsubscribeOptions } from './unsubscribe.js';

export interface NotifyTimings {
  /** Total time of one attempt where the provider sets none. Default 10,000 ms. */
  readonly timeoutMs: number;
  /**
   * By how much a delivery is held longer than its attempt may take: for the answer to be written down. Default 5,000 ms.
   * A process that stood still for half of it before its call does not call.
   */
  readonly marginMs: number;
  /** How often the sweep looks for what died while sending. Default 500 ms: the promise is 1 s. */
  readonly sweepEveryMs: number;
  /** A delivery whose wake-up is overdue for so long is woken again. Default 60,000 ms. */
  readonly sweepMs: number;
  /** Rows that one step of the sweep touches. Default 500. */
  readonly sweepRowsMax: number;
  /** How long the kinds of the table may be remembered. Default 2,000 ms. */
  readonly kindsMs: number;
  /** How long receipts are kept, and those without a delivery wait for it. Default 3 days. */
  readonly receiptsKeptMs: number;
}

export const timingsDefault: NotifyTimings = {
  timeoutMs: 10_000,
  marginMs: 5_000,
  sweepEveryMs: 500,
  sweepMs: 60_000,
  sweepRowsMax: 500,
  kindsMs: 2_000,
  receiptsKeptMs: 3 * 86_400_000,
};

export const breakerDefault: BreakerLimits = {
  errors: 50,
  share: 0.2,
  windowMs: 60_000,
  unanswered: 5,
  coolDownMs: 30_000,
};

export interface NotifyOptions<Kinds extends KindTable = KindTable> {
  readonly database: Database;
  readonly store: NotifyStore;
  readonly queue: Queue;
  readonly kinds: Kinds;
  /** In the order in which they are tried, each for its channel. */
  readonly providers: readonly Provider[];
  /** Slots of all workers together, of which the floors of kinds are shares. Default 1,200. */
  readonly poolSlots?: number;
  /** Begins the names of the queues. Default: notify. */
  readonly queuePrefix?: string;
  readonly timings?: Partial<NotifyTimings>;
  /**
   * When a provider is left alone: `errors` (50) within `windowMs` (60,000) at a `share` of all calls of at least 0.2, or
   * `unanswered` (5) calls in a row; for `coolDownMs` (30,000), then one call probes it.
   */
  readonly breaker?: Partial<BreakerLimits>;
  /** Puts one-click unsubscribe links into e-mails of kinds that are not required. Default: none. */
  readonly unsubscribe?: UnsubscribeOptions;
  /** Tells other processes of changed inboxes. Default: over the database. */
  readonly signals?: Signals;
  readonly log?: Log;
  readonly metrics?: MetricsBackend;
  readonly clock?: Clock;
  readonly random?: () => number;
}

export interface NotifySettings {
  readonly database: Database;
  readonly store: NotifyStore;
  readonly queue: Queue;
  readonly kinds: KindTable;
  readonly policies: readonly KindPolicy[];
  readonly providers: readonly Provider[];
  readonly poolSlots: number;
  readonly queuePrefix: string;
  readonly timings: NotifyTimings;
  readonly breaker: BreakerLimits;
  readonly unsubscribe: UnsubscribeOptions | undefined;
  readonly signals: Signals;
  readonly log: Log;
  readonly metrics: MetricsBackend;
  readonly clock: Clock;
  readonly random: () => number;
}

const dayMs = 86_400_000;
const bounds: Readonly<Record<keyof NotifyTimings, readonly [number, number]>> = {
  timeoutMs: [1, 600_000],
  marginMs: [10, 600_000],
  sweepEveryMs: [10, 60_000],
  sweepMs: [100, dayMs],
  sweepRowsMax: [1, 10_000],
  kindsMs: [0, 60_000],
  receiptsKeptMs: [1_000, 365 * dayMs],
};

export function resolveOptions(options: NotifyOptions): NotifySettings {
  const timings = { ...timingsDefault, ...options.timings };
  for (const [name, [min, max]] of Object.entries(bounds)) {
    wholeNumber(`timings.${name}`, timings[name as keyof NotifyTimings], min, max);
  }
  const policies = Object.entries(options.kinds).map(([name, kind]) => policyOf(name, kind));
  const names = options.providers.map(({ name }) => name);
  for (const [index, name] of names.entries()) {
    if (typeof name !== 'string' || !/^[a-z][a-z0-9-]{0,39}$/.test(name) || names.indexOf(name) !== index)
      throw invalidInput(
        `providers[${index}].name`,
        name,
        'a name of its own of lower-case letters, digits, dashes',
      );
  }
  for (const { name, rate } of options.providers) {
    const { perSecond = 1, reserved = 0 } = rate ?? {};
    if (!(perSecond > 0 && reserved >= 0 && reserved < perSecond))
      throw invalidInput(`${name}.rate`, rate, 'perSecond above 0, and reserved below it');
  }
  const signals = options.signals ?? createDatabaseSignals(options.database);
  const inbox = inboxProviderOf({
    store: options.store,
    database: options.database,
    clock: options.clock ?? systemClock,
    signals,
  });
  return Object.freeze({
    database: options.database,
    store: options.store,
    queue: options.queue,
    kinds: options.kinds,
    policies,
    providers: [...options.providers, inbox],
    poolSlots: wholeNumber('poolSlots', options.poolSlots ?? 1_200, 1, 1_000_000),
    queuePrefix: options.queuePrefix ?? 'notify',
    timings: Object.freeze(timings),
    breaker: Object.freeze({ ...breakerDefault, ...options.breaker }),
    unsubscribe: parseUnsubscribe(options.unsubscribe),
    signals,
    log: options.log ?? silentLog,
    metrics: options.metrics ?? noMetrics,
    clock: options.clock ?? systemClock,
    random: options.random ?? Math.random,
  });
}

function parseUnsubscribe(options: UnsubscribeOptions | undefined): UnsubscribeOptions | undefined {
  if (options === undefined) return undefined;
  if (!URL.canParse(options.url)) throw invalidInput('unsubscribe.url', options.url, 'a URL');
  if (options.secret.length < 16)
    throw invalidInput('unsubscribe.secret', 'a short one', 'at least 16 characters');
  return options;
}

/** The route of what a provider takes. */
export function routeOfProvider({
  channel,
  platform,
}: {
  channel: Provider['channel'];
  platform?: PushPlatform | undefined;
}) {
  return routeOf({ channel, address: '', ...(platform !== undefined && { details: { platform } }) });
}

/** The queue of a route. */
export const queueOf = (settings: NotifySettings, route: string): string =>
  `${settings.queuePrefix}-${route}`;

function wholeNumber(field: string, value: number, min: number, max: number): number {
  if (Number.isSafeInteger(value) && value >= min && value <= max) return value;
  throw invalidInput(field, value, `a whole number from ${min} to ${max}`);
}
