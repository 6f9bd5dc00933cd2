/**
 * Which provider of a route an attempt goes to: the first in order whose circuit breaker is closed and that has not asked
 * to be left alone. What one worker learns it tells the others: every report is summed up locally and goes into the shared
 * row within a quarter of a second, what may open a breaker at once.
 *
 *   closed ─too many errors, or unanswered in a row─► open ─cool-down─► one probe ─answered─► closed
 *                                                       ▲                  └─failed─► open
 */
import type { Component } from '../lifecycle.js';
import { notifyMetrics } from './metrics.js';
import { routeOfProvider, type NotifySettings } from './options.js';
import type { AttemptOutcome, Provider } from './provider.js';
import type { ProviderReport, ProviderState } from './store.js';

export interface Choice {
  readonly first: Provider;
  /** The next one that may be called, for kinds that may change after an unknown outcome. */
  readonly second: Provider | undefined;
  /** One call that finds out whether the provider is back; end it by `endProbe`, called or not. */
  readonly isProbe: boolean;
}

const reportEveryMs = 250;
const nothing: ProviderReport = {
  calls: 0,
  errors: 0,
  unanswered: 0,
  answered: false,
  configuration: undefined,
  pausedMs: undefined,
};

interface Known extends ProviderState {
  readonly readAtMs: number;
}

export class ProviderSelection implements Component {
  readonly #settings: NotifySettings;
  readonly #byRoute = new Map<string, Provider[]>();
  readonly #known = new Map<string, Known>();
  readonly #seen = new Map<string, ProviderReport>();
  readonly #probing = new Set<string>();
  readonly #metrics;
  #timer: NodeJS.Timeout | undefined;
  #working: Promise<void> | undefined;

  constructor(settings: NotifySettings) {
    this.#settings = settings;
    this.#metrics = settings.metrics(notifyMetrics);
    for (const provider of settings.providers) {
      const route = routeOfProvider(provider);
      this.#byRoute.set(route, [...(this.#byRoute.get(route) ?? []), provider]);
    }
  }

  async start(): Promise<void> {
    if (this.#timer !== undefined) return;
    await this.#read();
    this.#timer = setInterval(() => {
      this.#working ??= this.refresh()
        .catch((error: unknown) =>
          this.#settings.log.warn({ error }, 'the state of providers could not be shared'),
        )
        .finally(() => (this.#working = undefined));
    }, reportEveryMs);
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#timer = undefined;
    await this.#working;
    await this.#reportAll().catch(() => {});
  }

  /** Every route that a provider serves. */
  get routes(): readonly string[] {
    return [...this.#byRoute.keys()];
  }

  providersOf(route: string): readonly Provider[] {
    return this.#byRoute.get(route) ?? [];
  }

  /** Tells what was seen and reads what the others have. */
  async refresh(): Promise<void> {
    await this.#reportAll();
    await this.#read();
  }

  /** Undefined: none may be called. A provider whose cool-down is over gets one message as a probe. */
  async choose(route: string): Promise<Choice | undefined> {
    for (const provider of this.providersOf(route)) {
      if (this.#standing(provider) !== 'probe' || !(await this.#takeProbe(provider))) continue;
      return { first: provider, second: undefined, isProbe: true };
    }
    const [first, second] = this.#callable(route);
    return first && { first, second, isProbe: false };
  }

  endProbe({ first, isProbe }: Choice): void {
    if (isProbe) this.#probing.delete(first.name);
  }

  /** Whether anything of the route may be dequeued now. */
  isOpen(route: string): boolean {
    return this.providersOf(route).some((provider) => this.#standing(provider) !== 'shut');
  }

  /** The provider that the next message of the route will go to. */
  next(route: string): Provider | undefined {
    return this.#callable(route)[0];
  }

  /** The provider of that name, if it may be called. */
  named(name: string, route: string): Provider | undefined {
    return this.providersOf(route).find(
      (provider) =>
        provider.name === name && (this.#standing(provider) === 'open' || this.#probing.has(name)),
    );
  }

  /** Whether a provider other than this may be called. */
  hasOther(route: string, name: string): boolean {
    return this.#callable(route).some((provider) => provider.name !== name);
  }

  /** Takes the outcome of a call into account. */
  async report(provider: Provider, outcome: AttemptOutcome): Promise<void> {
    const { name } = provider;
    if (provider.oneService === false) return;
    this.#seen.set(name, summedUp(this.#seen.get(name) ?? nothing, outcome));
    const isProbe = this.#probing.has(name);
    const { errors, unanswered, pausedMs, configuration } = this.#seen.get(name) as ProviderReport;
    const { breaker } = this.#settings;
    const isUrgent = isProbe || pausedMs !== undefined || configuration !== undefined;
    // What may open the breaker waits for no interval: a fast worker would make hundreds of calls more in it.
    if (isUrgent || unanswered >= breaker.unanswered || errors >= breaker.errors) {
      await this.#reportOne(name).catch((error: unknown) =>
        this.#settings.log.warn({ provider: name, error }, 'the state of a provider could not be shared'),
      );
    }
  }

  #callable(route: string): Provider[] {
    return this.providersOf(route).filter((provider) => this.#standing(provider) === 'open');
  }

  #standing(provider: Provider): 'open' | 'shut' | 'probe' {
    const known = this.#known.get(provider.name);
    if (known === undefined) return 'open';
    const elapsedMs = this.#settings.clock.monotonicMs() - known.readAtMs;
    if ((known.pausedInMs ?? 0) - elapsedMs > 0) return 'shut';
    if (known.openInMs === undefined) return 'open';
    if (known.openInMs - elapsedMs > 0 || (known.probeInMs ?? 0) - elapsedMs > 0) return 'shut';
    return 'probe';
  }

  async #takeProbe({ name, timeoutMs }: Provider): Promise<boolean> {
    const { store, database, clock, timings } = this.#settings;
    const probeMs = (timeoutMs ?? timings.timeoutMs) + timings.marginMs;
    const mine = await store.takeProbe(database, { name, probeMs, now: clock.storeNow() });
    const known = this.#known.get(name);
    if (known) this.#known.set(name, { ...known, probeInMs: probeMs, readAtMs: clock.monotonicMs() });
    if (mine) this.#probing.add(name);
    return mine;
  }

  async #read(): Promise<void> {
    const { store, database, clock } = this.#settings;
    const readAtMs = clock.monotonicMs();
    for (const state of await store.providerStates(database, { now: clock.storeNow() })) {
      this.#known.set(state.name, { ...state, readAtMs });
      const isOpen = state.openInMs !== undefined;
      this.#metrics.set('headgate_notify_breaker_open', { provider: state.name }, isOpen ? 1 : 0);
    }
  }

  async #reportAll(): Promise<void> {
    for (const name of this.#seen.keys()) await this.#reportOne(name);
  }

  async #reportOne(name: string): Promise<void> {
    const report = this.#seen.get(name);
    if (report === undefined) return;
    this.#seen.delete(name);
    const { store, database, clock, breaker: limits, log } = this.#settings;
    const readAtMs = clock.monotonicMs();
    const state = await store.reportProvider(database, { name, report, limits, now: clock.storeNow() });
    if (state === undefined) return;
    this.#known.set(name, { ...state, readAtMs });
    if (state.justOpened)
      log.error({ provider: name, reason: state.reason }, 'a provider is left alone for a while');
    if (state.justClosed) log.info({ provider: name }, 'a provider is called again');
  }
}

function summedUp(before: ProviderReport, outcome: AttemptOutcome): ProviderReport {
  const unanswered = 'unanswered' in outcome && outcome.unanswered === true;
  const isError = outcome.kind === 'ambiguous' || unanswered;
  const configuration =
    'configuration' in outcome && outcome.configuration === true ? outcome.detail : undefined;
  const pausedMs = outcome.kind === 'not-accepted' ? outcome.retryAfterMs : undefined;
  return {
    calls: before.calls + 1,
    errors: before.errors + (isError ? 1 : 0),
    unanswered: unanswered ? before.unanswered + 1 : 0,
    answered: before.answered || !unanswered,
    configuration: configuration ?? before.configuration,
    pausedMs: pausedMs ?? before.pausedMs,
  };
}
