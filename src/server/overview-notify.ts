/** What the overview tells of notifications: what this process has accepted, attempted and ended since its start. */
import type { NotifyMetric } from '../notify/index.js';
import type { ServerParts } from './parts.js';

export interface NotifyOverview {
  /** Kinds that this process can send; 0: notifications are not configured. */
  readonly kinds: number;
  readonly acceptedTotal: number;
  readonly duplicatesTotal: number;
  /** Calls of providers, by what was known afterwards. */
  readonly attempts: {
    readonly sent: number;
    readonly refused: number;
    readonly notAccepted: number;
    readonly ambiguous: number;
  };
  /** Deliveries that ended, by state. */
  readonly finished: {
    readonly sent: number;
    readonly failed: number;
    readonly expired: number;
    readonly suppressed: number;
    readonly ambiguous: number;
  };
  /** Attempts after an unknown outcome outside the first provider's protection. */
  readonly knowingDuplicatesTotal: number;
  readonly receiptsMatchedTotal: number;
  readonly receiptsUnknownTotal: number;
  /** Providers that are left alone. */
  readonly breakersOpen: number;
}

export async function readNotify({ notify, prometheus }: ServerParts): Promise<NotifyOverview> {
  const sum = (name: NotifyMetric, labels: Record<string, string> = {}) => prometheus.sum(name, labels);
  const attempts = (outcome: string) => sum('headgate_notify_attempts_total', { outcome });
  const finished = (state: string) => sum('headgate_notify_finished_total', { state });
  const receipts = (outcome: string) => sum('headgate_notify_receipts_total', { outcome });
  return {
    kinds: Object.keys(notify().definitions()).length,
    acceptedTotal: await sum('headgate_notify_deliveries_total'),
    duplicatesTotal: await sum('headgate_notify_sends_total', { outcome: 'duplicate' }),
    attempts: {
      sent: await attempts('sent'),
      refused: await attempts('refused'),
      notAccepted: await attempts('not-accepted'),
      ambiguous: await attempts('ambiguous'),
    },
    finished: {
      sent: await finished('sent'),
      failed: await finished('failed'),
      expired: await finished('expired'),
      suppressed: await finished('suppressed'),
      ambiguous: await finished('ambiguous'),
    },
    knowingDuplicatesTotal: await sum('headgate_notify_knowing_duplicates_total'),
    receiptsMatchedTotal: await receipts('matched'),
    receiptsUnknownTotal: await receipts('unknown'),
    breakersOpen: await sum('headgate_notify_breaker_open'),
  };
}
