/**
 * Text messages through Twilio. It has no idempotency key; our reference goes into the URL of its status callbacks, so
 * that a receipt finds a message whose answer never came.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { Agent } from 'node:https';
import { systemClock, type Clock } from '../../clock.js';
import type { AttemptOutcome, Provider, Receipt } from '../provider.js';
import { httpOutcome, type HttpVerdicts } from './http-outcome.js';
import { sendOnce } from './http-request.js';
import { readJson, text } from './json.js';

export interface TwilioOptions {
  /** Default: twilio. */
  readonly name?: string;
  readonly accountSid: string;
  readonly authToken: string;
  /** A number, or the SID of a messaging service (MG…). */
  readonly from: string;
  /** Where Twilio reports to: the public URL of this provider's receipts. */
  readonly statusUrl?: string;
  /** Default: https://api.twilio.com. */
  readonly url?: string;
  /** Default: 10,000 ms. */
  readonly timeoutMs?: number;
  readonly rate?: Provider['rate'];
  /** Overrides by status, or `status code`. */
  readonly verdicts?: HttpVerdicts;
  readonly clock?: Clock;
}

const verdictsDefault: HttpVerdicts = {
  '429 20429': 'not-accepted',
  '400 21611': 'not-accepted',
  '429 21611': 'not-accepted',
  '400 21610': 'retire',
};
const statusOf: Readonly<Record<string, Receipt['status']>> = {
  queued: 'queued',
  accepted: 'queued',
  scheduled: 'queued',
  sending: 'queued',
  sent: 'sent',
  delivered: 'delivered',
  read: 'delivered',
  undelivered: 'undelivered',
  failed: 'undelivered',
};
/** Twilio's own bounds of ValidityPeriod, in seconds. */
const validityMax = 36_000;
const optedOut = '21610';

export function createTwilioProvider(options: TwilioOptions): Provider {
  const {
    name = 'twilio',
    accountSid,
    authToken,
    from,
    timeoutMs = 10_000,
    rate,
    clock = systemClock,
  } = options;
  const url = new URL(
    `/2010-04-01/Accounts/${accountSid}/Messages.json`,
    options.url ?? 'https://api.twilio.com',
  );
  const agent = url.protocol === 'https:' ? new Agent({ keepAlive: true }) : undefined;
  const verdicts = { ...verdictsDefault, ...options.verdicts };

  return {
    name,
    channel: 'sms',
    timeoutMs,
    rate,
    async stop() {
      agent?.destroy();
    },
    async attempt({ reference, destination, content, timeLeftMs }, { signal }): Promise<AttemptOutcome> {
      const form = new URLSearchParams({
        To: destination.address,
        Body: String(content['text']),
        ValidityPeriod: String(Math.min(validityMax, Math.max(1, Math.ceil(timeLeftMs / 1_000)))),
        ...(from.startsWith('MG') ? { MessagingServiceSid: from } : { From: from }),
      });
      if (options.statusUrl !== undefined)
        form.set('StatusCallback', withReference(options.statusUrl, reference));
      const result = await sendOnce({
        url,
        agent,
        signal,
        body: form.toString(),
        headers: {
          authorization: `Basic ${Buffer.from(`${accountSid}:${authToken}`).toString('base64')}`,
          'content-type': 'application/x-www-form-urlencoded',
        },
      });
      const body = result.kind === 'answer' ? readJson(result.body) : undefined;
      if (result.kind === 'answer' && result.status >= 200 && result.status < 300) {
        const messageId = result.complete ? text(body?.['sid']) : undefined;
        if (messageId === undefined)
          return { kind: 'ambiguous', detail: `http ${result.status} without a sid` };
        return { kind: 'sent', messageId, cost: costOf(body?.['price']), detail: `http ${result.status}` };
      }
      return httpOutcome(result, { verdicts, code: text(body?.['code']), now: clock.now() });
    },

    parseReceipts({ url: called, headers, body }) {
      const form = new URLSearchParams(Buffer.from(body).toString('utf8'));
      if (!isSigned(authToken, called, form, headers['x-twilio-signature']))
        return { kind: 'signature-invalid' };
      const status = statusOf[form.get('MessageStatus') ?? ''];
      const messageId = form.get('MessageSid') ?? undefined;
      if (status === undefined || messageId === undefined) return { kind: 'receipts', receipts: [] };
      const code = form.get('ErrorCode') ?? undefined;
      const receipt: Receipt = {
        messageId,
        status,
        reference: new URL(called).searchParams.get('reference') ?? undefined,
        cost: costOf(form.get('Price')),
        detail: `twilio ${form.get('MessageStatus')}${code === undefined ? '' : ` ${code}`}`,
        retire: code === optedOut ? 'opted out' : undefined,
      };
      return { kind: 'receipts', receipts: [receipt] };
    },
  };
}

function withReference(statusUrl: string, reference: string): string {
  const url = new URL(statusUrl);
  url.searchParams.set('reference', reference);
  return url.href;
}

/** Prices are negative: what the account was charged. */
function costOf(price: unknown): number | undefined {
  const cost = Math.abs(Number(price ?? Number.NaN));
  return Number.isFinite(cost) ? cost : undefined;
}

/** Over the public URL and all fields in order of their names, unknown ones included. */
function isSigned(authToken: string, url: string, form: URLSearchParams, given: string | undefined): boolean {
  const fields = [...form.entries()].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  const signed = url + fields.map(([name, value]) => name + value).join('');
  const expected = Buffer.from(createHmac('sha1', authToken).update(signed).digest('base64'));
  const bytes = Buffer.from(given ?? '');
  return bytes.byteLength === expected.byteLength && timingSafeEqual(bytes, expected);
}
