/**
 * Digests: events of one key within a window become one notification that shows each of them once. The window begins
 * with its first event. An event is a notification of its own that ends at once as digested, so that its key is known and
 * the ledger adds up.
 */
import { timeOrderedId } from '../ids.js';
import { invalidInput } from '../errors.js';
import type { JsonValue } from '../queue/index.js';
import { canonicalJson } from './content-hash.js';
import type { Door } from './door.js';
import { parseDurationMs } from './duration.js';
import type { Kinds } from './kinds-in-force.js';
import type { JsonObject, SendOutcome, SendRequest } from './notification.js';
import type { NotifySettings } from './options.js';

export interface DigestRequest extends Omit<SendRequest, 'to' | 'sendAt'> {
  /**
   * Which events belong together. Equal as JSON: "1" and 1 are two keys, and so are "a" and "A", null and "". Left out:
   * the same as null.
   */
  readonly digestKey?: JsonValue | undefined;
}

export interface Digests {
  /** Takes an event; `key` is the event's own, and an event that is known changes nothing. */
  add(kind: string, request: DigestRequest): Promise<SendOutcome>;
  /** Sends those whose window is over; the sweep does. Answers how many. */
  closeDue(): Promise<number>;
}

const closeAtOnceMax = 100;

export function createDigests(
  settings: NotifySettings,
  { kinds, door }: { kinds: Kinds; door: Door },
): Digests {
  const { store, database, clock, log } = settings;

  const definitionOf = (name: string) => {
    const { digest } = kinds.definition(name);
    if (digest === undefined) throw invalidInput('kind', name, 'a kind with a digest');
    return {
      windowMs: parseDurationMs(`kinds.${name}.digest.window`, digest.window, 1),
      templates: digest.templates,
    };
  };

  const close = async (id: string): Promise<boolean> =>
    database.transaction(async (transaction) => {
      const digest = await store.closeDigest(transaction, { id, now: clock.storeNow() });
      if (digest === undefined) return false;
      const events = digest.events.map((text) => JSON.parse(text) as JsonObject);
      const { user, kind } = digest;
      const data = { events, count: events.length, key: JSON.parse(digest.key) as JsonValue };
      const { templates } = definitionOf(kind);
      const request = { user, key: `digest:${id}`, data };
      await door.send(kind, [request], { transaction, origin: 'digest', templates });
      return true;
    });

  return {
    async add(kind, { digestKey = null, ...request }) {
      const { windowMs } = definitionOf(kind);
      return database.transaction(async (transaction) => {
        const [outcome] = await door.send(kind, [request], { transaction, suppressed: 'digested' });
        if (outcome?.kind === 'accepted') {
          await store.joinDigest(transaction, {
            id: timeOrderedId(clock.now()),
            user: request.user,
            kind,
            key: canonicalJson(digestKey),
            event: request.key,
            data: JSON.stringify(request.data),
            windowMs,
            now: clock.storeNow(),
          });
        }
        return outcome as SendOutcome;
      });
    },

    async closeDue() {
      const due = await store.dueDigests(database, { limit: closeAtOnceMax, now: clock.storeNow() });
      let closed = 0;
      for (const id of due) {
        try {
          if (await close(id)) closed += 1;
        } catch (error) {
          log.error({ digest: id, error }, 'a digest could not be sent; the next sweep tries again');
        }
      }
      return closed;
    },
  };
}
