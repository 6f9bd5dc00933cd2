/** Which provider of a route an attempt goes to: the first in order that may be called. */
import { routeOfProvider, type NotifySettings } from './options.js';
import type { AttemptOutcome, Provider } from './provider.js';

export interface Choice {
  readonly first: Provider;
  /** The next one that may be called, for kinds that may change after an unknown outcome. */
  readonly second: Provider | undefined;
}

export class ProviderSelection {
  readonly #byRoute = new Map<string, Provider[]>();

  constructor({ providers }: NotifySettings) {
    for (const provider of providers) {
      const route = routeOfProvider(provider);
      this.#byRoute.set(route, [...(this.#byRoute.get(route) ?? []), provider]);
    }
  }

  /** Every route that a provider serves. */
  get routes(): readonly string[] {
    return [...this.#byRoute.keys()];
  }

  choose(route: string): Choice | undefined {
    const [first, second] = this.#callable(route);
    return first && { first, second };
  }

  /** The provider of that name, if it may be called. */
  named(name: string, route: string): Provider | undefined {
    return this.#callable(route).find((provider) => provider.name === name);
  }

  /** Whether a provider other than this may be called. */
  hasOther(route: string, name: string): boolean {
    return this.#callable(route).some((provider) => provider.name !== name);
  }

  report(_name: string, _outcome: AttemptOutcome): void {}

  #callable(route: string): Provider[] {
    return this.#byRoute.get(route) ?? [];
  }
}
