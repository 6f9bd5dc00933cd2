/**
 * The part of the port that is about people: who they are, what they want, their digests, campaigns and inbox. The same
 * invariants as store.ts: single statements by the store's clock, and every call may be repeated.
 */
import type { Queryable } from '../database/index.js';
import type { Channel, Destination } from './notification.js';
import type { Now } from './store.js';

/** What is known of a user when something is to be sent. */
export interface Person {
  readonly locale: string | undefined;
  readonly timeZone: string | undefined;
  /** Local minutes of the day. */
  readonly quiet: { readonly from: number; readonly until: number } | undefined;
  readonly destinations: readonly RegisteredDestination[];
}

export interface RegisteredDestination extends Destination {
  readonly registeredAt: number;
  /** Why it is not called any more. */
  readonly retired: string | undefined;
}

export interface PersonStore {
  /** One for each user that anything is known of. */
  persons(on: Queryable, users: readonly string[]): Promise<Map<string, Person>>;
  putUser(
    on: Queryable,
    input: {
      user: string;
      locale: string | undefined;
      timeZone: string | undefined;
      quiet: { from: number; until: number } | undefined;
      now: Now;
    },
  ): Promise<void>;
  putDestination(on: Queryable, input: { user: string; destination: Destination; now: Now }): Promise<void>;
  deleteDestination(
    on: Queryable,
    input: { user: string; channel: string; address: string },
  ): Promise<boolean>;
  retire(on: Queryable, input: { channel: string; address: string; reason: string; now: Now }): Promise<void>;
  /** Removes everything of a user but the suppression list, which names addresses. */
  eraseUser(on: Queryable, user: string): Promise<void>;
}

/** `*` means all. */
export interface Preference {
  readonly kind: string;
  readonly channel: Channel | '*';
  readonly enabled: boolean;
}

export interface PreferenceStore {
  putPreference(on: Queryable, input: Preference & { user: string; now: Now }): Promise<void>;
  preferences(on: Queryable, user: string): Promise<Preference[]>;
  /** Ends what waits and is switched off by now. Answers the ids. */
  suppressSwitchedOff(on: Queryable, input: { user: string; now: Now }): Promise<string[]>;
}

export interface DigestStore {
  /** Joins the open digest of user, kind and key, or opens one. Holds it until the transaction ends. */
  joinDigest(
    on: Queryable,
    input: {
      id: string;
      user: string;
      kind: string;
      key: string;
      event: string;
      data: string;
      windowMs: number;
      now: Now;
    },
  ): Promise<string>;
  /** Digests whose window is over. */
  dueDigests(on: Queryable, input: { limit: number; now: Now }): Promise<string[]>;
  /** Closes it; undefined when somebody else has. The events in the order in which they came. */
  closeDigest(
    on: Queryable,
    input: { id: string; now: Now },
  ): Promise<{ user: string; kind: string; key: string; events: string[] } | undefined>;
}

export const campaignStates = ['running', 'paused', 'canceled', 'streamed'] as const;
export type CampaignState = (typeof campaignStates)[number];

/** A line of the list. What became of the recipients is counted for one campaign at a time: it may have millions. */
export interface CampaignSummary {
  readonly id: string;
  readonly kind: string;
  /** `streamed`: every recipient has been taken. */
  readonly state: CampaignState;
  /** Recipients that were accepted; never goes back. */
  readonly taken: number;
  /** Unix milliseconds of the store's clock. */
  readonly createdAt: number;
}

export interface CampaignProgress extends CampaignSummary {
  readonly waiting: number;
  readonly sent: number;
  readonly failed: number;
  readonly expired: number;
  readonly suppressed: number;
  readonly ambiguous: number;
}

export interface CampaignStore {
  putCampaign(on: Queryable, input: { id: string; kind: string; now: Now }): Promise<void>;
  /** Adds to the recipients taken; answers the state of the campaign, locked until the transaction ends. */
  takeRecipients(
    on: Queryable,
    input: { id: string; count: number; now: Now },
  ): Promise<CampaignState | undefined>;
  /** Moves from one of `from`; answers whether it did. */
  moveCampaign(
    on: Queryable,
    input: { id: string; from: readonly CampaignState[]; to: CampaignState; now: Now },
  ): Promise<boolean>;
  campaign(on: Queryable, id: string): Promise<CampaignProgress | undefined>;
  /** Newest first. `before` is the id that the page before ended with. */
  campaigns(
    on: Queryable,
    input: { state: CampaignState | undefined; before: string | undefined; limit: number },
  ): Promise<CampaignSummary[]>;
  /** One bounded step of ending what waits of a canceled campaign; answers how many. */
  suppressCampaign(on: Queryable, input: { id: string; limit: number; now: Now }): Promise<number>;
}

export interface InboxEntry {
  readonly id: string;
  readonly kind: string;
  readonly title: string;
  readonly body: string;
  readonly url: string | undefined;
  readonly createdAt: number;
  readonly seenAt: number | undefined;
  readonly readAt: number | undefined;
}

export interface InboxStore {
  /** Writes the entry of a delivery unless it is there, or the delivery has been erased. */
  putInbox(
    on: Queryable,
    input: {
      id: string;
      user: string;
      kind: string;
      title: string;
      body: string;
      url: string | undefined;
      now: Now;
    },
  ): Promise<void>;
  /** Newest first; `before` is the id that the page before ended with. */
  inbox(
    on: Queryable,
    input: { user: string; before: string | undefined; limit: number },
  ): Promise<InboxEntry[]>;
  unread(on: Queryable, user: string): Promise<number>;
  /** Marks those of the ids, or all when undefined; answers how many changed. */
  markInbox(
    on: Queryable,
    input: { user: string; ids: readonly string[] | undefined; as: 'seen' | 'read'; now: Now },
  ): Promise<number>;
}
