/**
 * One attempt of one delivery: claim the row, call the provider, write down what is known. Guarantees: only the winner
 * of the claim calls; no connection or transaction is held during the call; the call ends at its time limit whatever the
 * adapter does; a process that stood still between claim and call does not call.
 *
 *   wake-up ─► claim ─later─► back to the queue with a delay          claim ─ended─► the wake-up is done
 *                └─claimed─► call (total time limit) ─► settle ─► done, or back to the queue until the next attempt
 */
import { NoRetryError, ReleaseError } from '../queue/index.js';
import { notifyMetrics } from './metrics.js';
import type { NotifySettings } from './options.js';
import type { AttemptOutcome, Provider } from './provider.js';
import { nextQuietEnd } from './quiet-hours.js';
import type { RateLimiter } from './rate.js';
import type { Choice, ProviderSelection } from './selection.js';
import type { Claim, Settled } from './store.js';

export interface DeliverRequest {
  readonly id: string;
  readonly route: string;
  /** May take the reserved share of a provider's rate. */
  readonly urgent: boolean;
  readonly stopped: AbortSignal;
}

interface Held {
  readonly reason: string;
  /** By the store's clock; the deadline moves along. Undefined: at once. */
  readonly runAfter: number | undefined;
  readonly delayMs: number;
}

type Claimed = Extract<Claim, { kind: 'claimed' }>;

/** How long an adapter may take to end after its signal has fired; then its answer is not waited for. */
const graceMs = 250;
/** Pauses between tries to write an answer down; what is known would be lost with it. */
const settlePausesMs = [50, 200, 500, 1_000, 2_000, 5_000];
/** How long a delivery waits while no provider of its route may be called. */
const noProviderMs = 1_000;

export class Deliverer {
  readonly #settings: NotifySettings;
  readonly #selection: ProviderSelection;
  readonly #limiter: RateLimiter;
  readonly #metrics;
  readonly #running = new Set<Promise<void>>();

  constructor(settings: NotifySettings, selection: ProviderSelection, limiter: RateLimiter) {
    this.#settings = settings;
    this.#selection = selection;
    this.#limiter = limiter;
    this.#metrics = settings.metrics(notifyMetrics);
  }

  /** Handles one wake-up; throws a ReleaseError when the delivery is to be looked at again. */
  deliver(request: DeliverRequest): Promise<void> {
    const running = this.#deliver(request);
    this.#running.add(running);
    void Promise.allSettled([running]).then(() => this.#running.delete(running));
    return running;
  }

  /** Resolves when no attempt runs and all answers are written down. */
  async idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.allSettled(this.#running);
  }

  async #deliver(request: DeliverRequest): Promise<void> {
    if (request.stopped.aborted) throw new ReleaseError('stopping');
    const choice = await this.#selection.choose(request.route);
    if (choice === undefined)
      throw new ReleaseError('no provider may be called now', { delayMs: noProviderMs });
    try {
      await this.#deliverBy(choice, request);
    } finally {
      this.#selection.endProbe(choice);
    }
  }

  async #deliverBy(choice: Choice, { id, route, urgent, stopped }: DeliverRequest): Promise<void> {
    const { store, database, clock, timings } = this.#settings;
    const waitMs = await this.#limiter.spend(choice.first, urgent);
    if (waitMs > 0) throw new ReleaseError('the rate is used up', { delayMs: waitMs });
    const askedAtMs = clock.monotonicMs();
    const claim = await store.claim(database, {
      id,
      provider: choice.first.name,
      alternative: choice.second?.name,
      // Whichever of them the row is bound to: it is held for as long as the slowest may take.
      timeoutMs: Math.max(...this.#selection.providersOf(route).map((one) => this.#timeoutMs(one))),
      marginMs: timings.marginMs,
      now: clock.storeNow(),
    });
    if (claim.kind === 'later') throw new ReleaseError('not due', { delayMs: claim.afterMs });
    if (claim.kind === 'unknown') return;
    if (claim.kind === 'ended') return this.#ended(claim);
    const provider = this.#selection.named(claim.provider, route);
    const held = await this.#held(claim, provider, clock.monotonicMs() - askedAtMs);
    if (provider === undefined || held !== undefined) return this.#giveBack(claim, held ?? waitsFor(claim));
    const outcome = await this.#attempt(claim, provider, stopped);
    await this.#selection.report(provider, outcome);
    await this.#settle(claim, provider.name, outcome, route);
  }

  #ended({ state, kindName, moved }: Extract<Claim, { kind: 'ended' }>): void {
    if (moved) this.#metrics.add('headgate_notify_finished_total', { kind: kindName, state });
  }

  /** Why what was just claimed is not called after all. */
  async #held(
    { delivery }: Claimed,
    provider: Provider | undefined,
    elapsedMs: number,
  ): Promise<Held | undefined> {
    const { clock, timings } = this.#settings;
    // Half of the margin is left for the answer; a process that stood still longer may call when another one does.
    if (elapsedMs > timings.marginMs / 2)
      return { reason: 'the process stood still', runAfter: undefined, delayMs: 0 };
    const { quiet, timeZone, priority } = delivery;
    if (provider === undefined || priority === 'urgent' || quiet === undefined) return undefined;
    const now = clock.storeNow() ?? clock.now();
    const end = await nextQuietEnd({ at: now, timeZone, quiet });
    return end === undefined ? undefined : { reason: 'quiet hours', runAfter: end, delayMs: end - now };
  }

  async #giveBack(claim: Claimed, held: Held): Promise<void> {
    const { store, database, clock, timings } = this.#settings;
    const { reason, runAfter, delayMs } = held;
    const { id } = claim.delivery;
    const { sweepMs } = timings;
    await store.hold(database, {
      id,
      attempt: claim.attempt,
      reason,
      runAfter,
      sweepMs,
      now: clock.storeNow(),
    });
    throw new ReleaseError(reason, { delayMs });
  }

  #timeoutMs(provider: Provider, timeLeftMs = Number.POSITIVE_INFINITY): number {
    return Math.max(1, Math.min(provider.timeoutMs ?? this.#settings.timings.timeoutMs, timeLeftMs));
  }

  async #attempt(claim: Claimed, provider: Provider, stopped: AbortSignal): Promise<AttemptOutcome> {
    const { clock } = this.#settings;
    const { delivery, attempt, timeLeftMs } = claim;
    const { kind } = delivery;
    this.#metrics.observe('headgate_notify_wait_seconds', { kind }, Math.max(0, claim.waitedMs) / 1_000);
    if (claim.knowingDuplicate) this.#metrics.add('headgate_notify_knowing_duplicates_total', { kind });
    const startedAtMs = clock.monotonicMs();
    const outcome = await callWithin({
      limitMs: this.#timeoutMs(provider, timeLeftMs),
      stopped,
      call: (signal) =>
        provider.attempt(
          {
            reference: delivery.id,
            attempt,
            kind,
            destination: delivery.destination,
            content: delivery.content,
            createdAt: delivery.createdAt,
            timeLeftMs,
          },
          { signal },
        ),
    });
    const seconds = (clock.monotonicMs() - startedAtMs) / 1_000;
    this.#metrics.observe('headgate_notify_attempt_seconds', { provider: provider.name }, seconds);
    this.#metrics.add('headgate_notify_attempts_total', {
      kind,
      provider: provider.name,
      outcome: outcome.kind,
    });
    return outcome;
  }

  async #settle(claim: Claimed, provider: string, outcome: AttemptOutcome, route: string): Promise<void> {
    const { log } = this.#settings;
    const { id, kind } = claim.delivery;
    const settled = await this.#write(claim, provider, outcome, route);
    const { state, moved, retryInMs, reason } = settled;
    log.debug(
      { delivery: id, kind, provider, attempt: claim.attempt, outcome: outcome.kind, state },
      'an attempt ended',
    );
    if ('configuration' in outcome && outcome.configuration)
      log.error({ provider, detail: outcome.detail }, 'a provider refuses our credentials or settings');
    if (!moved) return;
    if (state === 'waiting') throw new ReleaseError(outcome.kind, { delayMs: retryInMs ?? 0 });
    this.#metrics.add('headgate_notify_finished_total', { kind, state });
    if (state === 'failed') log.warn({ delivery: id, kind, provider, reason }, 'a delivery has failed');
  }

  /** What is known is written down with patience: lost, it would be called unknown. */
  async #write(claim: Claimed, provider: string, outcome: AttemptOutcome, route: string): Promise<Settled> {
    const { store, database, clock, timings, random, log } = this.#settings;
    const input = {
      id: claim.delivery.id,
      attempt: claim.attempt,
      provider,
      outcome,
      jitter: random(),
      atOnce: outcome.kind === 'not-accepted' && this.#selection.hasOther(route, provider),
      sweepMs: timings.sweepMs,
    };
    for (const pauseMs of settlePausesMs) {
      try {
        return await store.settle(database, { ...input, now: clock.storeNow() });
      } catch (error) {
        log.warn(
          { delivery: input.id, error },
          'the answer of an attempt could not be written down; trying again',
        );
        await new Promise((resolve) => setTimeout(resolve, pauseMs));
      }
    }
    try {
      return await store.settle(database, { ...input, now: clock.storeNow() });
    } catch (cause) {
      // The sweep will find the row; this wake-up has nothing more to do.
      throw Object.assign(new NoRetryError('the answer of an attempt could not be written down'), { cause });
    }
  }
}

function waitsFor({ provider }: Claimed): Held {
  return { reason: `waits for ${provider}`, runAfter: undefined, delayMs: noProviderMs };
}

/** Calls with a total time limit. An adapter that throws, or does not end, leaves an outcome that nobody knows. */
export async function callWithin(request: {
  readonly limitMs: number;
  readonly stopped: AbortSignal;
  readonly call: (signal: AbortSignal) => Promise<AttemptOutcome>;
}): Promise<AttemptOutcome> {
  const { limitMs, stopped, call } = request;
  const ending = new AbortController();
  const abort = (): void => ending.abort();
  const limit = setTimeout(abort, limitMs);
  stopped.addEventListener('abort', abort, { once: true });
  let grace: NodeJS.Timeout | undefined;
  const overdue = new Promise<AttemptOutcome>((resolve) => {
    ending.signal.addEventListener('abort', () => {
      grace = setTimeout(
        () =>
          resolve({
            kind: 'ambiguous',
            detail: 'the adapter did not end at its time limit',
            unanswered: true,
          }),
        graceMs,
      );
    });
  });
  try {
    const answer = (async () => call(ending.signal))();
    // Wherever it comes from, an exception says nothing about whether the request was sent.
    const known = answer.catch(
      (error: unknown): AttemptOutcome => ({
        kind: 'ambiguous',
        detail: `the adapter threw ${error instanceof Error ? error.name : 'something'}`,
      }),
    );
    return await Promise.race([known, overdue]);
  } finally {
    clearTimeout(limit);
    clearTimeout(grace);
    stopped.removeEventListener('abort', abort);
  }
}
