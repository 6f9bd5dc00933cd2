/** What the API answers about notifications, as far as the pages read it. Times are unix milliseconds of the server. */
import type { CampaignState, DeliveryState } from '../route.js';

export interface Kind {
  readonly name: string;
  readonly channels: readonly string[];
  readonly digest: boolean;
  readonly delivery: string;
  readonly deadlineMs: number;
  readonly priority: string;
  readonly floor: number;
  readonly required: boolean;
  readonly secret: boolean;
  readonly limits: readonly { readonly per: string; readonly count: number; readonly windowMs: number }[];
}

export interface Provider {
  readonly name: string;
  readonly channel: string;
  readonly open: boolean;
  readonly reason?: string;
}

export const endStates = ['sent', 'failed', 'expired', 'suppressed', 'ambiguous'] as const;

/** Deliveries by how they ended. */
export type Ends = Readonly<Record<(typeof endStates)[number], number>>;

export interface Ledger extends Ends {
  readonly accepted: number;
  readonly waiting: number;
}

/** What the overview tells of notifications: counted by the server's process since its start. */
export interface NotifyTotals {
  readonly kinds: number;
  readonly acceptedTotal: number;
  readonly duplicatesTotal: number;
  readonly attempts: {
    readonly sent: number;
    readonly refused: number;
    readonly notAccepted: number;
    readonly ambiguous: number;
  };
  readonly finished: Ends;
  readonly knowingDuplicatesTotal: number;
  readonly receiptsMatchedTotal: number;
  readonly receiptsUnknownTotal: number;
  readonly breakersOpen: number;
}

export interface Campaign {
  readonly id: string;
  readonly kind: string;
  readonly state: CampaignState;
  readonly taken: number;
  readonly createdAt: number;
}

export interface CampaignListPage {
  readonly campaigns: readonly Campaign[];
  readonly next?: string;
}

export interface CampaignProgress extends Campaign, Ends {
  readonly waiting: number;
}

export interface Delivery {
  readonly id: string;
  readonly notification: string;
  readonly kind: string;
  readonly user: string;
  readonly channel: string;
  readonly address: string;
  readonly state: DeliveryState;
  readonly reason?: string;
  readonly attempts: number;
  readonly provider?: string;
  readonly messageId?: string;
  readonly receipt: string;
  readonly cost?: number;
  readonly runAfter: number;
  readonly expiresAt: number;
  readonly createdAt: number;
  readonly finishedAt?: number;
}

export interface DeliveryPage {
  readonly deliveries: readonly Delivery[];
  readonly next?: string;
}

export interface HistoryEntry {
  readonly at: number;
  readonly event: string;
  readonly attempt?: number;
  readonly provider?: string;
  readonly detail?: string;
}

export interface Notification {
  readonly id: string;
  readonly user: string;
  readonly kind: string;
  readonly key: string;
  readonly createdAt: number;
  readonly deliveries: readonly (Delivery & { readonly history: readonly HistoryEntry[] })[];
}
