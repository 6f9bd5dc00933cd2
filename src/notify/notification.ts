/**
 * What a notification and its deliveries are: the states with the table of allowed moves, and the shapes in which they
 * enter and leave.
 *
 *   send ─► waiting ─claim─► sending ─provider said so──────────────► sent
 *             ▲                │ ├─ refused for good, attempts used up─► failed
 *             │                │ ├─ deadline passed────────────────────► expired
 *             │                │ └─ unknown, at most once──────────────► ambiguous
 *             └─ not accepted, ┘
 *                or unknown and at least once
 *   waiting ─► expired, suppressed (opted out, canceled, superseded, digested, destination retired)
 *   A receipt may move ambiguous, failed, expired and suppressed forward to sent: the provider knows better.
 */
import type { JsonValue } from '../queue/index.js';

export type JsonObject = { readonly [key: string]: JsonValue };

export const channels = ['email', 'sms', 'push', 'webhook', 'inbox'] as const;
export type Channel = (typeof channels)[number];

export type DeliveryState =
  | 'waiting'
  | 'sending'
  | 'ambiguous'
  | 'failed'
  | 'expired'
  | 'suppressed'
  | 'sent';

export const allowedMoves: Readonly<Record<DeliveryState, readonly DeliveryState[]>> = {
  waiting: ['sending', 'failed', 'expired', 'suppressed', 'sent'],
  sending: ['waiting', 'ambiguous', 'failed', 'expired', 'suppressed', 'sent'],
  ambiguous: ['sent'],
  failed: ['sent'],
  expired: ['sent'],
  suppressed: ['sent'],
  sent: [],
};

/** Where a delivery has got to; the least advanced one of a notification is the notification's state. */
export const stateOrder: Readonly<Record<DeliveryState, number>> = {
  waiting: 0,
  sending: 1,
  ambiguous: 2,
  failed: 3,
  expired: 3,
  suppressed: 3,
  sent: 4,
};

/** Of several deliveries, the state that has got least far. */
export function leastAdvanced(deliveries: readonly { readonly state: DeliveryState }[]): DeliveryState {
  return deliveries.reduce<DeliveryState>(
    (least, { state }) => (stateOrder[state] < stateOrder[least] ? state : least),
    'sent',
  );
}

/** What the provider reported after it took the message; only moves forward. */
export const receiptStatuses = ['none', 'queued', 'sent', 'undelivered', 'delivered'] as const;
export type ReceiptStatus = (typeof receiptStatuses)[number];

export const pushPlatforms = ['fcm', 'apns', 'web'] as const;
export type PushPlatform = (typeof pushPlatforms)[number];

/** Where a delivery goes. Push needs `details.platform`. `details` holds what the channel needs beside the address, such as the keys of web push. */
export interface Destination {
  readonly channel: Channel;
  readonly address: string;
  readonly details?: JsonObject;
}

/** Names the queue of a destination and the providers that can reach it. */
export function routeOf({ channel, details }: Destination): string {
  return channel === 'push' ? `push-${String(details?.['platform'])}` : channel;
}

/** The rendered message of one channel; frozen before the first attempt. */
export type Content = { readonly [field: string]: JsonValue };

export interface SendRequest<Data = JsonObject> {
  readonly user: string;
  /** The business key: the same user, kind and key is the same notification. */
  readonly key: string;
  readonly data: Data;
  /** Default: the user's registered destinations on the channels of the kind. */
  readonly to?: readonly Destination[];
  /** Unix milliseconds or a Date; not before that. Default: now. */
  readonly sendAt?: number | Date;
  /** BCP 47. Default: the user's, else the kind's first. */
  readonly locale?: string;
  /** W3C traceparent, kept with the wake-up. */
  readonly trace?: string;
}

export interface DeliverySummary {
  readonly id: string;
  readonly channel: Channel;
  readonly address: string;
  readonly state: DeliveryState;
}

/**
 * `duplicate`: the key is known, nothing has changed. `conflict`: it is known with other content, nothing has changed.
 * Both carry the id and the present state of the first one.
 */
export interface SendOutcome {
  readonly kind: 'accepted' | 'duplicate' | 'conflict';
  readonly id: string;
  readonly duplicate: boolean;
  /** That of the least advanced delivery. */
  readonly state: DeliveryState;
  readonly deliveries: readonly DeliverySummary[];
}

/** A delivery as it is stored. Times are unix milliseconds of the store's clock. */
export interface Delivery extends DeliverySummary {
  readonly notification: string;
  readonly kind: string;
  readonly user: string;
  /** Why it is in this state, in one short word or sentence without content. */
  readonly reason: string | undefined;
  /** Requests that may have reached a provider. */
  readonly attempts: number;
  readonly provider: string | undefined;
  readonly messageId: string | undefined;
  readonly receipt: ReceiptStatus;
  readonly cost: number | undefined;
  readonly runAfter: number;
  readonly sendingUntil: number | undefined;
  readonly expiresAt: number;
  readonly createdAt: number;
  readonly finishedAt: number | undefined;
}

/** One line of a delivery's history. */
export interface HistoryEntry {
  readonly at: number;
  readonly event: string;
  readonly attempt: number | undefined;
  readonly provider: string | undefined;
  readonly detail: string | undefined;
}

export interface Notification {
  readonly id: string;
  readonly user: string;
  readonly kind: string;
  readonly key: string;
  readonly createdAt: number;
  readonly deliveries: readonly (Delivery & { readonly history: readonly HistoryEntry[] })[];
}

/** Deliveries by state; the sum is what was accepted. `sending` counts as waiting. */
export interface Ledger {
  readonly accepted: number;
  readonly waiting: number;
  readonly sent: number;
  readonly failed: number;
  readonly expired: number;
  readonly suppressed: number;
  readonly ambiguous: number;
}
