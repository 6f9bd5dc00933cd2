/** What users are and want: where they can be reached, their language, time zone and quiet hours, and what they switch off. */
import { invalidInput } from '../errors.js';
import { parseDestination, parseLine } from './destination.js';
import { notifyError } from './errors.js';
import type { Kinds } from './kinds-in-force.js';
import { channels, type Channel, type Destination } from './notification.js';
import type { NotifySettings } from './options.js';
import type { Person, Preference } from './people-store.js';
import { parseLocalTime, parseTimeZone } from './quiet-hours.js';
import type { Subscription, Unsubscribe } from './unsubscribe.js';

export interface UserSettings {
  /** BCP 47. */
  readonly locale?: string | undefined;
  /** IANA name, such as Europe/Berlin. Default: UTC. */
  readonly timeZone?: string | undefined;
  /** Local times; what is not urgent is held until they end. Default: none. */
  readonly quietHours?: { readonly from: string; readonly until: string } | undefined;
}

export interface People {
  put(user: string, settings: UserSettings): Promise<void>;
  get(user: string): Promise<Person | undefined>;
  /** Registers where a user can be reached; registered again, it is alive again. */
  putDestination(user: string, destination: Destination): Promise<void>;
  deleteDestination(user: string, destination: Pick<Destination, 'channel' | 'address'>): Promise<boolean>;
  /** Puts an address on the suppression list: bounced, complained, opted out. */
  retire(destination: Pick<Destination, 'channel' | 'address'>, reason: string): Promise<void>;
  /** `*` means all. Switching off ends what waits. Throws `kind-required` for a kind that cannot be switched off. */
  prefer(user: string, preference: Preference): Promise<{ readonly suppressed: readonly string[] }>;
  /** Every kind and channel, and whether it is on. */
  preferences(
    user: string,
  ): Promise<{ kind: string; channel: Channel; enabled: boolean; required: boolean }[]>;
  /** What an unsubscribe link is about, without doing it: for the page that its GET shows. Throws `token-invalid`. */
  subscription(token: string): Subscription;
  /** The one-click POST of RFC 8058. Throws `token-invalid`. May be repeated. */
  unsubscribe(token: string): Promise<Subscription>;
  /** Removes everything of a user but the suppression list. */
  erase(user: string): Promise<void>;
}

export function createPeople(
  settings: NotifySettings,
  { kinds, unsubscribe }: { kinds: Kinds; unsubscribe: Unsubscribe | undefined },
): People {
  const { store, database, clock } = settings;
  const now = (): number | undefined => clock.storeNow();

  const assertMayBeOff = async (kind: string): Promise<void> => {
    if (kind === '*') return;
    const { policy } = await kinds.get(database, kind);
    if (policy.required)
      throw notifyError('kind-required', `the kind "${kind}" cannot be switched off`, { ids: { kind } });
  };

  const prefer: People['prefer'] = async (user, { kind, channel, enabled }) => {
    parseLine('user', user, 200);
    if (channel !== '*' && !channels.includes(channel))
      throw invalidInput('channel', channel, `*, or one of ${channels.join(', ')}`);
    if (kind !== '*') kinds.definition(kind);
    if (!enabled) await assertMayBeOff(kind);
    const suppressed = await database.transaction(async (transaction) => {
      await store.putPreference(transaction, { user, kind, channel, enabled, now: now() });
      return store.suppressSwitchedOff(transaction, { user, now: now() });
    });
    return { suppressed };
  };

  const subscription = (token: string): Subscription => {
    if (unsubscribe === undefined)
      throw notifyError(
        'token-invalid',
        'no unsubscribe link was ever made: the option unsubscribe is not set',
      );
    return unsubscribe.read(token);
  };

  return {
    async put(user, { locale, timeZone, quietHours }) {
      const quiet = quietHours && {
        from: parseLocalTime('quietHours.from', quietHours.from),
        until: parseLocalTime('quietHours.until', quietHours.until),
      };
      if (timeZone !== undefined) parseTimeZone('timeZone', timeZone);
      await store.putUser(database, {
        user: parseLine('user', user, 200),
        locale,
        timeZone,
        quiet,
        now: now(),
      });
    },

    async get(user) {
      return (await store.persons(database, [user])).get(user);
    },

    async putDestination(user, destination) {
      parseDestination('destination', destination);
      await store.putDestination(database, { user: parseLine('user', user, 200), destination, now: now() });
    },

    deleteDestination: (user, { channel, address }) =>
      store.deleteDestination(database, { user, channel, address }),

    async retire({ channel, address }, reason) {
      await store.retire(database, {
        channel,
        address,
        reason: parseLine('reason', reason, 200),
        now: now(),
      });
    },

    prefer,

    async preferences(user) {
      const wishes = await store.preferences(database, user);
      const policies = [...(await kinds.all(database)).values()];
      return policies.flatMap(({ name: kind, required }) =>
        channels.map((channel) => ({
          kind,
          channel,
          required,
          enabled: required || isOn(wishes, kind, channel),
        })),
      );
    },

    subscription,

    async unsubscribe(token) {
      const read = subscription(token);
      const { user, kind, channel } = read;
      await prefer(user, { kind, channel, enabled: false });
      return read;
    },

    async erase(user) {
      await database.transaction((transaction) => store.eraseUser(transaction, user));
    },
  };
}

/** The most specific wish decides, and none means on; as the claim asks it in SQL. */
function isOn(wishes: readonly Preference[], kind: string, channel: Channel): boolean {
  for (const wantedKind of [kind, '*']) {
    for (const wantedChannel of [channel, '*']) {
      const wish = wishes.find((one) => one.kind === wantedKind && one.channel === wantedChannel);
      if (wish !== undefined) return wish.enabled;
    }
  }
  return true;
}
