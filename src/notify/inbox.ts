/** The inbox of each user: entries, what has been seen and read, and the unread count as it changes. */
import { invalidInput } from '../errors.js';
import { parseLine } from './destination.js';
import type { NotifySettings } from './options.js';
import type { InboxEntry } from './people-store.js';
import { createInboxProvider } from './providers/inbox.js';
import type { Provider } from './provider.js';

export interface Inbox {
  /** Newest first. `before`: the last id of the page before. Default limit 50, at most 200. */
  list(user: string, options?: { before?: string | undefined; limit?: number }): Promise<InboxEntry[]>;
  unread(user: string): Promise<number>;
  /** Those of the ids, or all; answers how many changed. What is read is seen. */
  markSeen(user: string, ids?: readonly string[]): Promise<number>;
  markRead(user: string, ids?: readonly string[]): Promise<number>;
  /** The unread count now and whenever it changes, until the signal fires. */
  live(request: {
    readonly user: string;
    readonly signal: AbortSignal;
  }): AsyncIterable<{ readonly unread: number }>;
}

export const inboxTopic = 'headgate_notify_inbox';
/** A hint may be lost; so often it is asked anyway. */
const pollMs = 5_000;
const limitDefault = 50;
const limitMax = 200;

export function createInbox(settings: NotifySettings): Inbox {
  const { store, database, clock, signals } = settings;

  const mark = async (
    user: string,
    ids: readonly string[] | undefined,
    as: 'seen' | 'read',
  ): Promise<number> => {
    const changed = await store.markInbox(database, { user, ids, as, now: clock.storeNow() });
    if (changed > 0) await signals.publish(inboxTopic, user);
    return changed;
  };

  return {
    list(user, { before, limit = limitDefault } = {}) {
      if (!Number.isSafeInteger(limit) || limit < 1 || limit > limitMax)
        throw invalidInput('limit', limit, `a whole number from 1 to ${limitMax}`);
      return store.inbox(database, { user: parseLine('user', user, 200), before, limit });
    },
    unread: (user) => store.unread(database, user),
    markSeen: (user, ids) => mark(user, ids, 'seen'),
    markRead: (user, ids) => mark(user, ids, 'read'),

    async *live({ user, signal }) {
      let wake = (): void => {};
      const end = await signals.subscribe(inboxTopic, (payload) => {
        if (payload === user || payload === '') wake();
      });
      const abort = (): void => wake();
      signal.addEventListener('abort', abort);
      try {
        let last = -1;
        while (!signal.aborted) {
          const changed = new Promise<void>((resolve) => (wake = resolve));
          const unread = await store.unread(database, user);
          if (unread !== last) {
            last = unread;
            yield { unread };
          }
          const timer = setTimeout(() => wake(), pollMs);
          if (!signal.aborted) await changed;
          clearTimeout(timer);
        }
      } finally {
        signal.removeEventListener('abort', abort);
        await end();
      }
    },
  };
}

/** The provider of the inbox, which every engine has. */
export function inboxProviderOf(
  settings: Pick<NotifySettings, 'store' | 'database' | 'clock' | 'signals'>,
): Provider {
  const { store, database, clock, signals } = settings;
  return createInboxProvider({
    async write(entry) {
      await store.putInbox(database, { ...entry, now: clock.storeNow() });
      await signals.publish(inboxTopic, entry.user).catch(() => {});
    },
  });
}
