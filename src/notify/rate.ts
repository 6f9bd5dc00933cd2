/**
 * The rate of each provider, shared by all workers. Tokens are taken from the shared row in chunks of at most 200 ms of
 * rate, and those that are not used within that time are thrown away: a crash loses a chunk, and the rate is never
 * exceeded. Urgent kinds may take the reserved share.
 */
import type { NotifySettings } from './options.js';
import type { Provider } from './provider.js';

const chunkMs = 200;

interface Chunk {
  tokens: number;
  readonly endsAtMs: number;
}

export class RateLimiter {
  readonly #settings: NotifySettings;
  readonly #chunks = new Map<string, Chunk>();
  /** Tokens of messages that were dequeued and whose handler has not begun. */
  readonly #granted = new Map<string, number>();

  constructor(settings: NotifySettings) {
    this.#settings = settings;
  }

  /** How many messages for this provider may be dequeued now; when none, how long to wait. */
  async grant(
    provider: Provider,
    request: { readonly count: number; readonly urgent: boolean },
  ): Promise<{ granted: number; waitMs: number }> {
    const { rate, name } = provider;
    if (rate === undefined) return { granted: request.count, waitMs: 0 };
    const held = this.#takeHeld(name, request.count);
    if (held > 0) return { granted: held, waitMs: 0 };
    const wanted = Math.max(1, Math.min(request.count, Math.floor((rate.perSecond * chunkMs) / 1_000)));
    const { store, database, clock } = this.#settings;
    return store.takeTokens(database, {
      name,
      wanted,
      urgent: request.urgent,
      perSecond: rate.perSecond,
      reserved: rate.reserved ?? 0,
      capacityMs: chunkMs,
      now: clock.storeNow(),
    });
  }

  /** So many of the granted messages were there; the other tokens serve for a moment more. */
  used(provider: Provider, result: { readonly granted: number; readonly used: number }): void {
    if (provider.rate === undefined) return;
    const { name } = provider;
    this.#granted.set(name, (this.#granted.get(name) ?? 0) + result.used);
    const left = result.granted - result.used;
    if (left <= 0) return;
    const endsAtMs = this.#settings.clock.monotonicMs() + chunkMs;
    const chunk = this.#chunks.get(name);
    this.#chunks.set(name, {
      tokens: left + (chunk && chunk.endsAtMs > endsAtMs - chunkMs ? chunk.tokens : 0),
      endsAtMs,
    });
  }

  /** A token for one call: the one of its dequeue, or another. Answers how long to wait when there is none. */
  async spend(provider: Provider, urgent: boolean): Promise<number> {
    if (provider.rate === undefined) return 0;
    const granted = this.#granted.get(provider.name) ?? 0;
    if (granted > 0) {
      this.#granted.set(provider.name, granted - 1);
      return 0;
    }
    const { granted: own, waitMs } = await this.grant(provider, { count: 1, urgent });
    return own > 0 ? 0 : Math.max(1, waitMs);
  }

  #takeHeld(name: string, count: number): number {
    const chunk = this.#chunks.get(name);
    if (chunk === undefined || chunk.endsAtMs <= this.#settings.clock.monotonicMs()) return 0;
    const taken = Math.min(chunk.tokens, count);
    chunk.tokens -= taken;
    return taken;
  }
}
