/**
 * E-mail through Resend's API. Its idempotency key is our reference: a repeat within 24 hours with the same bytes is
 * answered with the first result, so that even an attempt whose outcome nobody knows cannot make a duplicate there.
 */
import { Agent } from 'node:https';
import { systemClock, type Clock } from '../../clock.js';
import type { AttemptOutcome, Provider, Receipt } from '../provider.js';
import { httpOutcome, type HttpVerdicts } from './http-outcome.js';
import { sendOnce } from './http-request.js';
import { readJson, text } from './json.js';
import { verifyWebhook } from './webhook-signature.js';

export interface ResendOptions {
  /** Default: resend. */
  readonly name?: string;
  readonly apiKey: string;
  /** `address` or `Name <address>`. */
  readonly from: string;
  /** `whsec_…` of the event webhook; receipts are refused without one. */
  readonly webhookSecrets?: readonly string[];
  /** Default: https://api.resend.com. */
  readonly url?: string;
  /** Default: 10,000 ms. */
  readonly timeoutMs?: number;
  readonly rate?: Provider['rate'];
  /** Overrides by status, or `status code`. */
  readonly verdicts?: HttpVerdicts;
  readonly clock?: Clock;
}

const verdictsDefault: HttpVerdicts = {
  '409 concurrent_idempotent_requests': 'not-accepted',
  '409 invalid_idempotent_request': 'refused',
};
const statusOf: Readonly<Record<string, Receipt['status']>> = {
  'email.sent': 'sent',
  'email.delivered': 'delivered',
  'email.delivery_delayed': 'queued',
  'email.bounced': 'undelivered',
  'email.failed': 'undelivered',
  'email.complained': 'delivered',
};
const retires = new Set(['email.bounced', 'email.complained']);

export function createResendProvider(options: ResendOptions): Provider {
  const { name = 'resend', apiKey, from, timeoutMs = 10_000, rate, clock = systemClock } = options;
  const url = new URL('/emails', options.url ?? 'https://api.resend.com');
  const agent = url.protocol === 'https:' ? new Agent({ keepAlive: true }) : undefined;
  const verdicts = { ...verdictsDefault, ...options.verdicts };

  return {
    name,
    channel: 'email',
    timeoutMs,
    rate,
    async stop() {
      agent?.destroy();
    },
    async attempt({ reference, destination, content }, { signal }): Promise<AttemptOutcome> {
      const unsubscribe = content['unsubscribeUrl'] as string | undefined;
      const result = await sendOnce({
        url,
        agent,
        signal,
        headers: {
          authorization: `Bearer ${apiKey}`,
          'content-type': 'application/json',
          'idempotency-key': reference,
        },
        body: JSON.stringify({
          from,
          to: [destination.address],
          subject: content['subject'],
          text: content['text'],
          html: content['html'],
          tags: [{ name: 'reference', value: reference }],
          ...(unsubscribe !== undefined && {
            headers: {
              'List-Unsubscribe': `<${unsubscribe}>`,
              'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click',
            },
          }),
        }),
      });
      const body = result.kind === 'answer' ? readJson(result.body) : undefined;
      if (result.kind === 'answer' && result.status >= 200 && result.status < 300) {
        const messageId = result.complete ? text(body?.['id']) : undefined;
        return messageId === undefined
          ? { kind: 'ambiguous', detail: `http ${result.status} without an id` }
          : { kind: 'sent', messageId, detail: `http ${result.status}` };
      }
      const code = text(body?.['name']);
      return httpOutcome(result, { verdicts, code, now: clock.now() });
    },

    parseReceipts({ headers, body }) {
      const valid = verifyWebhook({
        headers,
        body,
        secrets: options.webhookSecrets ?? [],
        nowSeconds: Math.floor(clock.now() / 1_000),
        prefix: 'svix-id' in headers ? 'svix' : 'webhook',
      });
      if (!valid) return { kind: 'signature-invalid' };
      const event = readJson(Buffer.from(body).toString('utf8'));
      const type = text(event?.['type']) ?? '';
      const data = event?.['data'] as Record<string, unknown> | undefined;
      const status = statusOf[type];
      const messageId = text(data?.['email_id']);
      if (status === undefined || messageId === undefined) return { kind: 'receipts', receipts: [] };
      return {
        kind: 'receipts',
        receipts: [
          {
            messageId,
            reference: referenceOf(data?.['tags']),
            status,
            detail: type,
            retire: retires.has(type) && isPermanent(data) ? type : undefined,
          },
        ],
      };
    },
  };
}

/** The tag that every request carries: it finds the delivery whose answer never came. Told as an object or as a list. */
function referenceOf(tags: unknown): string | undefined {
  if (!Array.isArray(tags)) return text((tags as Record<string, unknown> | undefined)?.['reference']);
  const own = tags.find((tag: Record<string, unknown> | null) => tag?.['name'] === 'reference');
  return text((own as Record<string, unknown> | undefined)?.['value']);
}

/** A full mailbox may have room tomorrow. */
function isPermanent(data: Record<string, unknown> | undefined): boolean {
  const bounce = data?.['bounce'] as Record<string, unknown> | undefined;
  return bounce === undefined || bounce['type'] === undefined || bounce['type'] === 'Permanent';
}
