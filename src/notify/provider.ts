/**
 * The port of a provider: one call of `attempt` is at most one request on the wire, ends within its time limit, and its
 * answer says what is known about the message. An adapter never repeats, never sleeps, and never logs content.
 */
import type { Log } from '../log.js';
import type { Channel, Content, Destination, PushPlatform, ReceiptStatus } from './notification.js';

export interface AttemptRequest {
  /** Our id of the delivery: the same in every attempt; goes into the request, so that receipts can name it. */
  readonly reference: string;
  /** Counts up with every request of this delivery. */
  readonly attempt: number;
  readonly kind: string;
  readonly destination: Destination;
  readonly content: Content;
  /** When the notification was accepted, unix milliseconds: for bytes that must be the same in every attempt. */
  readonly createdAt: number;
  /** What is left of the deadline; the time to live that the provider is given. */
  readonly timeLeftMs: number;
}

export interface AttemptContext {
  /** Fires at the total time limit, and when the process stops. The adapter ends at once and closes its socket. */
  readonly signal: AbortSignal;
}

/**
 * What is known after an attempt.
 * - sent: the provider said so.
 * - refused: for good; the same message would be refused again. `retire`: the destination itself is dead.
 * - not-accepted: certainly not sent (no connection, throttled, refused before the message was taken); spends no attempt.
 * - ambiguous: the request may have arrived and nobody knows.
 * `configuration`: our credentials or settings are at fault, not the message; the provider is stopped and says so.
 */
export type AttemptOutcome =
  | {
      readonly kind: 'sent';
      readonly messageId?: string | undefined;
      readonly cost?: number | undefined;
      readonly detail?: string | undefined;
    }
  | {
      readonly kind: 'refused';
      readonly detail: string;
      /** Set to a reason: the destination is dead. `before`: only if it was registered before this time (unix ms). */
      readonly retire?: { readonly reason: string; readonly before?: number } | undefined;
      readonly configuration?: boolean | undefined;
    }
  | {
      readonly kind: 'not-accepted';
      readonly detail: string;
      /** Nothing is tried with this provider before that. */
      readonly retryAfterMs?: number | undefined;
      readonly configuration?: boolean | undefined;
      /** There was no conversation at all; counts for the circuit breaker like an answer that is missing. */
      readonly unanswered?: boolean | undefined;
    }
  | {
      readonly kind: 'ambiguous';
      readonly detail: string;
      readonly retryAfterMs?: number | undefined;
      /** Nothing came back at all; several of these in a row open the circuit breaker. */
      readonly unanswered?: boolean | undefined;
    };

/** What a provider reports about a message that it took earlier. */
export interface Receipt {
  /** The provider's own id of the message. */
  readonly messageId?: string | undefined;
  /** Our reference, where the provider gives it back. */
  readonly reference?: string | undefined;
  readonly status: Exclude<ReceiptStatus, 'none'>;
  readonly cost?: number | undefined;
  readonly detail?: string | undefined;
  /** The destination is dead or has opted out. */
  readonly retire?: string | undefined;
}

/** A request that a provider makes to us, as it came in. */
export interface ReceiptRequest {
  /** The public URL that the provider called. */
  readonly url: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  /** The exact bytes. */
  readonly body: Uint8Array;
}

export type ParsedReceipts =
  | { readonly kind: 'receipts'; readonly receipts: readonly Receipt[] }
  /** Not by the provider: answered 401. */
  | { readonly kind: 'signature-invalid' };

export interface ProviderHooks {
  /** For providers that report over their own connection. */
  receive(receipt: Receipt): Promise<void>;
  readonly log: Log;
}

export interface Provider {
  /** Few-valued: labels metrics, and names the provider in the history. */
  readonly name: string;
  readonly channel: Channel;
  /** Push only: whose tokens it takes. */
  readonly platform?: PushPlatform | undefined;
  /**
   * False when each destination is a service of its own (webhooks): one that fails says nothing about the others, so
   * there is no circuit breaker. Default: true.
   */
  readonly oneService?: boolean | undefined;
  /** Total time of one attempt in milliseconds. Default: that of the engine. */
  readonly timeoutMs?: number | undefined;
  /** At most so many calls a second over all processes, and how many of them only urgent kinds may take. */
  readonly rate?: { readonly perSecond: number; readonly reserved?: number } | undefined;
  attempt(request: AttemptRequest, context: AttemptContext): Promise<AttemptOutcome>;
  /** Reads a request of the provider; only for those that report over HTTP. */
  parseReceipts?(request: ReceiptRequest): ParsedReceipts | Promise<ParsedReceipts>;
  start?(hooks: ProviderHooks): Promise<void>;
  stop?(): Promise<void>;
}
