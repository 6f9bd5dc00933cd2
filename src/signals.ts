/**
 * "Tell the other processes": small hints on named topics over LISTEN/NOTIFY, or within this process. Hints only: a
 * signal may be lost, doubled or late, so whoever subscribes also polls, only less often.
 */
import type { Database } from './database/database.js';
import { invalidInput } from './errors.js';
import { type Log, silentLog } from './log.js';

export interface Signals {
  /** Sends `payload` to every subscriber of `topic`, those of this process included. At most 7,000 bytes of UTF-8. */
  publish(topic: string, payload: string): Promise<void>;
  /**
   * Calls `handler` with each payload, and with an empty one when something may have been missed. Resolves when
   * subscribed; the answer ends it.
   */
  subscribe(topic: string, handler: (payload: string) => void): Promise<() => Promise<void>>;
}

/** NOTIFY refuses 8,000 bytes and more; the rest is room for what the driver adds. */
const payloadBytesMax = 7_000;
const topicPattern = /^[a-z_][a-z0-9_]{0,62}$/;

/** Signals over LISTEN/NOTIFY of a database, to every process on it. */
export function createDatabaseSignals(database: Database): Signals {
  return {
    async publish(topic, payload) {
      assertSignal(topic, payload);
      await database.query('select pg_notify($1, $2)', [topic, payload]);
    },
    async subscribe(topic, handler) {
      assertTopic(topic);
      return database.listen(topic, handler);
    },
  };
}

/** Signals within this process, for stores in memory; handlers run after `publish` has returned. */
export function createLocalSignals({ log = silentLog }: { log?: Log } = {}): Signals {
  const subscribers = new Map<string, Set<(payload: string) => void>>();
  const deliver = (topic: string, payload: string): void => {
    for (const handler of subscribers.get(topic) ?? []) {
      try {
        handler(payload);
      } catch (error) {
        log.error({ topic, error }, 'a signal handler failed');
      }
    }
  };
  return {
    async publish(topic, payload) {
      assertSignal(topic, payload);
      setImmediate(deliver, topic, payload);
    },
    async subscribe(topic, handler) {
      assertTopic(topic);
      const own = (payload: string): void => handler(payload);
      const handlers = subscribers.get(topic) ?? new Set();
      subscribers.set(topic, handlers.add(own));
      return async () => {
        handlers.delete(own);
        if (handlers.size === 0 && subscribers.get(topic) === handlers) subscribers.delete(topic);
      };
    },
  };
}

function assertTopic(topic: string): void {
  if (topicPattern.test(topic)) return;
  throw invalidInput(
    'topic',
    topic,
    'up to 63 lower-case letters, digits and underscores, not beginning with a digit',
  );
}

function assertSignal(topic: string, payload: string): void {
  assertTopic(topic);
  const bytes = Buffer.byteLength(payload);
  if (bytes > payloadBytesMax)
    throw invalidInput('payload', bytes, `at most ${payloadBytesMax} bytes of UTF-8`);
}
