/**
 * The port of notifications: what a store does. Inputs have been checked; the caller opens transactions and hands them
 * in. Invariants: every move of a delivery is compare-and-set in one statement by the store's clock; an answer with
 * another attempt's number moves nothing, unless it says that the message was sent; every call may be repeated.
 *
 * `now` is filled by tests only (see clock.ts).
 */
import type { Database, Queryable } from '../database/index.js';
import type { Component } from '../lifecycle.js';
import type { KindPolicy, Priority } from './kinds.js';
import type { CountedSubject } from './limits.js';
import type {
  Content,
  Delivery,
  DeliveryState,
  DeliverySummary,
  Destination,
  HistoryEntry,
  Ledger,
  Notification,
  ReceiptStatus,
} from './notification.js';
import type { CampaignStore, DigestStore, InboxStore, PersonStore, PreferenceStore } from './people-store.js';
import type { AttemptOutcome, Receipt } from './provider.js';

export type Now = number | undefined;

export interface KindStore {
  /** Writes the definitions of the code; rows that an operator has changed stay. */
  putKinds(on: Queryable, input: { policies: readonly KindPolicy[]; now: Now }): Promise<void>;
  /** An operator's change. Answers whether the kind is known. */
  changeKind(on: Queryable, input: { policy: KindPolicy; now: Now }): Promise<boolean>;
  kinds(on: Queryable): Promise<KindPolicy[]>;
}

export interface NewNotification {
  readonly id: string;
  readonly user: string;
  readonly kind: string;
  readonly key: string;
  readonly purpose: string | undefined;
  readonly origin: 'door' | 'digest' | 'campaign';
  readonly salt: string;
  readonly contentHash: string;
  readonly keyKeptMs: number;
}

export interface KnownNotification {
  readonly id: string;
  /** Undefined: erased; nobody can tell any more whether the content is the same. */
  readonly salt: string | undefined;
  readonly contentHash: string;
  readonly deliveries: readonly DeliverySummary[];
}

export interface NewDelivery {
  readonly id: string;
  readonly notification: string;
  readonly user: string;
  readonly kind: string;
  readonly destination: Destination;
  readonly route: string;
  readonly content: Content;
  readonly campaign: string | undefined;
  /** Undefined: now. */
  readonly runAfter: number | undefined;
  readonly deadlineMs: number;
  /** Set: the delivery has ended before it began. */
  readonly suppressed: string | undefined;
}

export interface DoorStore {
  /**
   * Writes the notifications whose key is new, with their deliveries; answers their ids. Waits for a transaction that holds
   * one of the keys, at most `keyWaitMs` where that is given: then it throws, and the transaction has failed.
   */
  accept(
    on: Queryable,
    input: {
      notifications: readonly NewNotification[];
      deliveries: readonly NewDelivery[];
      sweepMs: number;
      keyWaitMs: number | undefined;
      now: Now;
    },
  ): Promise<ReadonlySet<string>>;
  known(
    on: Queryable,
    input: { user: string; kind: string; key: string },
  ): Promise<KnownNotification | undefined>;
}

export interface LimitStore {
  /**
   * Counts notifications whose key is new against their limits, in the transaction that accepts them; answers the places of
   * those that are over one, which are not counted, with the time until they would not be. `all`: one that is over keeps
   * all from being counted, and is the only one answered. Waits for a transaction that counts for the same subject, at most
   * `keyWaitMs` where that is given: then it throws, and the transaction has failed.
   */
  takeSends(
    on: Queryable,
    input: {
      sends: readonly {
        readonly user: string;
        readonly kind: string;
        readonly key: string;
        readonly subjects: readonly CountedSubject[];
      }[];
      all: boolean;
      keyWaitMs: number | undefined;
      now: Now;
    },
  ): Promise<Map<number, number>>;
}

/** What became of asking for a delivery in order to send it. */
export type Claim =
  /** It is this caller's: `attempt` fences the answer. */
  | {
      readonly kind: 'claimed';
      readonly attempt: number;
      readonly timeLeftMs: number;
      /** Since it was due. */
      readonly waitedMs: number;
      /** The provider to call: the asked one, the alternative, or the one that the delivery is bound to. */
      readonly provider: string;
      /** Another provider has an open outcome of this delivery: this attempt may be a duplicate, knowingly. */
      readonly knowingDuplicate: boolean;
      readonly delivery: ClaimedDelivery;
    }
  /** Not due, or another holds it: ask again after that time. */
  | { readonly kind: 'later'; readonly afterMs: number }
  /** It has ended, now or before. */
  | {
      readonly kind: 'ended';
      readonly state: DeliveryState;
      readonly kindName: string;
      readonly moved: boolean;
    }
  | { readonly kind: 'unknown' };

export interface ClaimedDelivery {
  readonly id: string;
  readonly notification: string;
  readonly user: string;
  readonly kind: string;
  readonly destination: Destination;
  readonly content: Content;
  readonly createdAt: number;
  readonly attempts: number;
  readonly priority: Priority;
  /** The user's quiet hours in local minutes of the day, and where that is. */
  readonly quiet: { readonly from: number; readonly until: number } | undefined;
  readonly timeZone: string | undefined;
}

/** What a delivery became by the answer of an attempt. `runAfter` is set while it waits. */
export interface Settled {
  /** False: the row had moved on; the answer is in the history only. */
  readonly moved: boolean;
  readonly state: DeliveryState;
  readonly reason: string | undefined;
  readonly retryInMs: number | undefined;
}

/** Which waiting deliveries are meant: those of a key, of a purpose, or of a kind. */
export interface WaitingSelection {
  readonly user: string;
  readonly kind: string;
  readonly key?: string | undefined;
  readonly purpose?: string | undefined;
  /** Left alone. */
  readonly exceptNotification?: string | undefined;
}

export interface DeliverStore {
  /** Ends what waits, with a reason; what is being sent keeps its outcome. Answers the ids. */
  suppressWaiting(
    on: Queryable,
    input: { selection: WaitingSelection; reason: string; now: Now },
  ): Promise<string[]>;
  claim(
    on: Queryable,
    input: {
      id: string;
      provider: string;
      /** Taken in place of `provider` when that one's last outcome is unknown and the kind allows a change. */
      alternative: string | undefined;
      timeoutMs: number;
      marginMs: number;
      now: Now;
    },
  ): Promise<Claim>;
  /** `jitter` from 0 to 1 spreads retries. */
  settle(
    on: Queryable,
    input: {
      id: string;
      attempt: number;
      provider: string;
      outcome: AttemptOutcome;
      jitter: number;
      /** Another provider can be tried now: what was not accepted waits for nothing. */
      atOnce: boolean;
      sweepMs: number;
      now: Now;
    },
  ): Promise<Settled>;
  /** Gives back what was claimed and not called: waits until `runAfter` (default: now), and the deadline moves along. */
  hold(
    on: Queryable,
    input: {
      id: string;
      attempt: number;
      reason: string;
      runAfter: number | undefined;
      sweepMs: number;
      now: Now;
    },
  ): Promise<boolean>;
  /** Settles what is left in `sending` past its time, as an attempt whose outcome nobody knows. */
  settleLost(
    on: Queryable,
    input: { limit: number; jitter: number; sweepMs: number; now: Now },
  ): Promise<Swept[]>;
  /** Of those that wait: expires what has passed its deadline, and answers what should be woken again. */
  wakeOverdue(on: Queryable, input: { limit: number; sweepMs: number; now: Now }): Promise<Swept[]>;
}

export interface Swept {
  readonly id: string;
  readonly kind: string;
  readonly route: string;
  readonly state: DeliveryState;
  readonly priority: Priority;
  readonly from: DeliveryState;
  /** For those that wait. */
  readonly wakeInMs: number;
  readonly runAfter: number;
}

export interface ReceiptStore {
  /** Answers the delivery that it belongs to, if any. */
  receive(
    on: Queryable,
    input: { provider: string; receipt: Receipt; now: Now },
  ): Promise<{ delivery: string; state: DeliveryState; receipt: ReceiptStatus; moved: boolean } | undefined>;
  /** Joins receipts of the last `windowMs` whose delivery has turned up since. Answers how many. */
  joinReceipts(database: Database, input: { limit: number; windowMs: number; now: Now }): Promise<number>;
}

/** What one worker has seen of a provider since its last report. */
export interface ProviderReport {
  readonly calls: number;
  readonly errors: number;
  /** At the end of the report, in a row. */
  readonly unanswered: number;
  /** Whether any call was answered before those. */
  readonly answered: boolean;
  /** Our credentials or settings were refused. */
  readonly configuration: string | undefined;
  /** It asked to be left alone for so long. */
  readonly pausedMs: number | undefined;
}

export interface BreakerLimits {
  readonly errors: number;
  readonly share: number;
  readonly windowMs: number;
  readonly unanswered: number;
  readonly coolDownMs: number;
}

/** Times from now in milliseconds, negative once past; undefined: not set. */
export interface ProviderState {
  readonly name: string;
  readonly openInMs: number | undefined;
  readonly probeInMs: number | undefined;
  readonly pausedInMs: number | undefined;
  readonly reason: string | undefined;
}

export interface ProviderStore {
  putProviders(on: Queryable, input: { names: readonly string[] }): Promise<void>;
  providerStates(on: Queryable, input: { now: Now }): Promise<ProviderState[]>;
  reportProvider(
    on: Queryable,
    input: { name: string; report: ProviderReport; limits: BreakerLimits; now: Now },
  ): Promise<(ProviderState & { justOpened: boolean; justClosed: boolean }) | undefined>;
  /** True for one caller a cool-down, once an open breaker's time is over. */
  takeProbe(on: Queryable, input: { name: string; probeMs: number; now: Now }): Promise<boolean>;
  /** Up to `wanted` tokens; urgent callers may take the reserved ones too. `waitMs`: until there may be another. */
  takeTokens(
    on: Queryable,
    input: {
      name: string;
      wanted: number;
      urgent: boolean;
      perSecond: number;
      reserved: number;
      capacityMs: number;
      now: Now;
    },
  ): Promise<{ granted: number; waitMs: number }>;
}

export interface DeliveryFilter {
  readonly user: string | undefined;
  readonly kind: string | undefined;
  readonly state: DeliveryState | undefined;
  readonly before: string | undefined;
  readonly limit: number;
}

export interface ReadStore {
  notification(on: Queryable, id: string): Promise<Notification | undefined>;
  delivery(on: Queryable, id: string): Promise<Delivery | undefined>;
  /** Newest first; undefined fields do not filter. `before` is the id that the page before ended with. */
  deliveries(on: Queryable, input: DeliveryFilter): Promise<Delivery[]>;
  history(on: Queryable, delivery: string): Promise<HistoryEntry[]>;
  ledger(on: Queryable, input: { kind: string | undefined }): Promise<Ledger>;
}

export interface HousekeepingStore {
  /** One bounded step: notifications past their key's time, old receipts. Answers how many rows went. */
  purge(on: Queryable, input: { limit: number; receiptsKeptMs: number; now: Now }): Promise<number>;
}

export interface NotifyStore
  extends Component,
    KindStore,
    DoorStore,
    LimitStore,
    PersonStore,
    PreferenceStore,
    DigestStore,
    CampaignStore,
    InboxStore,
    DeliverStore,
    ProviderStore,
    ReceiptStore,
    ReadStore,
    HousekeepingStore {
  readonly name: string;
}
