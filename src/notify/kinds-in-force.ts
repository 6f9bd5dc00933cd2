/**
 * The kinds by which this process decides: definitions from the code, policies from the table, which is read again when
 * they are older than `kindsMs`. What they promise is decided by the table in every statement; this is for the door.
 */
import type { Queryable } from '../database/index.js';
import { notifyError } from './errors.js';
import type { AnyKind, KindPolicy } from './kinds.js';
import type { NotifySettings } from './options.js';

export class Kinds {
  readonly #settings: NotifySettings;
  #policies = new Map<string, KindPolicy>();
  #readAtMs = Number.NEGATIVE_INFINITY;

  constructor(settings: NotifySettings) {
    this.#settings = settings;
  }

  definition(name: string): AnyKind {
    const kind = Object.hasOwn(this.#settings.kinds, name) ? this.#settings.kinds[name] : undefined;
    if (kind === undefined)
      throw notifyError('kind-unknown', `no kind "${name}" is defined`, { ids: { kind: name } });
    return kind;
  }

  async get(on: Queryable, name: string): Promise<{ kind: AnyKind; policy: KindPolicy }> {
    const kind = this.definition(name);
    const policies = await this.all(on);
    const policy = policies.get(name);
    if (policy === undefined)
      throw notifyError('kind-unknown', `the kind "${name}" is not in the table yet: start first`);
    return { kind, policy };
  }

  async all(on: Queryable): Promise<ReadonlyMap<string, KindPolicy>> {
    const nowMs = this.#settings.clock.monotonicMs();
    if (nowMs - this.#readAtMs >= this.#settings.timings.kindsMs) {
      const policies = await this.#settings.store.kinds(on);
      this.#policies = new Map(policies.map((policy) => [policy.name, policy]));
      this.#readAtMs = nowMs;
    }
    return this.#policies;
  }

  forget(): void {
    this.#readAtMs = Number.NEGATIVE_INFINITY;
  }
}
