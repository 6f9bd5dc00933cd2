/** Standard Webhooks 1.0.0: signs what we send and checks what providers that follow it send to us. */
import { createHmac, timingSafeEqual } from 'node:crypto';

const toleranceSeconds = 300;

const keyOf = (secret: string): Buffer =>
  secret.startsWith('whsec_') ? Buffer.from(secret.slice(6), 'base64') : Buffer.from(secret);

const signatureOf = (secret: string, id: string, seconds: number, body: string | Uint8Array): string =>
  `v1,${createHmac('sha256', keyOf(secret)).update(`${id}.${seconds}.`).update(body).digest('base64')}`;

/** One signature for each secret, so that a consumer can change from one to the other. */
export function signWebhook(request: {
  readonly id: string;
  readonly seconds: number;
  readonly body: string | Uint8Array;
  readonly secrets: readonly string[];
}): Record<string, string> {
  const { id, seconds, body, secrets } = request;
  return {
    'webhook-id': id,
    'webhook-timestamp': String(seconds),
    'webhook-signature': secrets.map((secret) => signatureOf(secret, id, seconds, body)).join(' '),
  };
}

/** Whether one of the signatures is of one of the secrets, over these exact bytes, at most 5 minutes ago. */
export function verifyWebhook(request: {
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body: Uint8Array;
  readonly secrets: readonly string[];
  readonly nowSeconds: number;
  /** Some providers name the three headers differently. Default: webhook. */
  readonly prefix?: string;
}): boolean {
  const { headers, body, secrets, nowSeconds, prefix = 'webhook' } = request;
  const id = headers[`${prefix}-id`];
  const seconds = Number(headers[`${prefix}-timestamp`]);
  const given = headers[`${prefix}-signature`]?.split(' ') ?? [];
  if (!id || id.includes('.') || !Number.isSafeInteger(seconds)) return false;
  if (Math.abs(nowSeconds - seconds) > toleranceSeconds) return false;
  return secrets.some((secret) => {
    const expected = Buffer.from(signatureOf(secret, id, seconds, body));
    return given.some((one) => {
      const bytes = Buffer.from(one);
      return bytes.byteLength === expected.byteLength && timingSafeEqual(bytes, expected);
    });
  });
}
