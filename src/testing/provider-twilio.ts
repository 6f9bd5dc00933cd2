/** A counterpart like Twilio's Messages API: a SID for every message it takes, and signed status callbacks on demand. */
import { createHmac } from 'node:crypto';
import type { FaultScript } from './provider-faults.js';
import { startHttpCounterpart, type HttpCounterpart } from './provider-http.js';

export interface TwilioMessage {
  readonly sid: string;
  readonly to: string;
  readonly text: string;
  readonly validityPeriod: string;
  readonly statusCallback: string | undefined;
}

export interface TwilioCounterpart extends HttpCounterpart {
  readonly messages: readonly TwilioMessage[];
  /** The request that Twilio would make to report a status. */
  callback(
    message: TwilioMessage,
    fields: Readonly<Record<string, string>>,
  ): { readonly url: string; readonly headers: Readonly<Record<string, string>>; readonly body: Uint8Array };
}

export async function startTwilioCounterpart(options: {
  readonly authToken: string;
  readonly faults?: FaultScript;
}): Promise<TwilioCounterpart> {
  const messages: TwilioMessage[] = [];
  const counterpart = await startHttpCounterpart({
    ...options,
    onTaken({ body }) {
      const form = new URLSearchParams(body.toString());
      messages.push({
        sid: `SM${messages.length + 1}`,
        to: form.get('To') ?? '',
        text: form.get('Body') ?? '',
        validityPeriod: form.get('ValidityPeriod') ?? '',
        statusCallback: form.get('StatusCallback') ?? undefined,
      });
    },
    answer: () => ({
      status: 201,
      body: JSON.stringify({ sid: messages.at(-1)?.sid, status: 'queued', price: null }),
    }),
  });
  return {
    ...counterpart,
    messages,
    callback(message, fields) {
      const url = message.statusCallback ?? 'https://us.example.test/receipts';
      const form: Record<string, string> = { MessageSid: message.sid, ...fields };
      const signed =
        url +
        Object.keys(form)
          .sort()
          .map((name) => name + form[name])
          .join('');
      const signature = createHmac('sha1', options.authToken).update(signed).digest('base64');
      return {
        url,
        headers: { 'x-twilio-signature': signature },
        body: Buffer.from(new URLSearchParams(form).toString()),
      };
    },
  };
}
