/**
 * A push service for browsers on loopback (https): gives out subscriptions, decrypts what it takes (RFC 8291) and forgets
 * subscriptions on demand; misbehaves by its script.
 */
import { createDecipheriv, createECDH, hkdfSync, randomBytes } from 'node:crypto';
import { loopbackCertificate } from './loopback-certificate.js';
import type { FaultScript } from './provider-faults.js';
import { startHttpCounterpart, type HttpCounterpart, type ReceivedRequest } from './provider-http.js';

export interface PushSubscription {
  /** The https endpoint: a destination's address. */
  readonly endpoint: string;
  /** As a browser gives them, base64url: part of a destination's details. */
  readonly keys: { readonly p256dh: string; readonly auth: string };
}

export interface PushedMessage {
  readonly endpoint: string;
  /** Decrypted. */
  readonly text: string;
  /** Seconds, as the TTL header said. */
  readonly ttl: number;
  readonly topic: string | undefined;
}

export interface PushCounterpart extends HttpCounterpart {
  /** The certificate authority to trust, PEM. */
  readonly ca: string;
  /** What was taken, in order. */
  readonly messages: readonly PushedMessage[];
  subscribe(): PushSubscription;
  /** The browser has gone: 410 from now on. */
  unsubscribe(subscription: PushSubscription): void;
}

interface Known {
  readonly endpoint: string;
  readonly decrypt: (body: Buffer) => string;
  live: boolean;
}

/** What Mozilla's service takes at most. */
const payloadBytesMax = 4_096;

export async function startPushCounterpart(
  options: { readonly faults?: FaultScript } = {},
): Promise<PushCounterpart> {
  const known = new Map<string, Known>();
  const messages: PushedMessage[] = [];
  const knownOf = ({ path }: ReceivedRequest): Known | undefined => {
    const subscription = known.get(path);
    return subscription?.live ? subscription : undefined;
  };
  const counterpart = await startHttpCounterpart({
    ...options,
    tls: loopbackCertificate,
    onTaken(request) {
      const { headers, body } = request;
      const subscription = knownOf(request);
      if (subscription === undefined || refusal(request) !== undefined) return;
      messages.push({
        endpoint: subscription.endpoint,
        text: subscription.decrypt(body),
        ttl: Number(headers['ttl']),
        topic: headers['topic'],
      });
    },
    answer(request) {
      if (knownOf(request) === undefined) return { status: 410 };
      return refusal(request) ?? { status: 201, headers: { location: `${request.path}/taken` }, body: '' };
    },
  });
  return {
    ...counterpart,
    ca: loopbackCertificate.cert,
    messages,
    subscribe() {
      const path = `/push/${randomBytes(8).toString('hex')}`;
      const browser = createECDH('prime256v1');
      const publicKey = browser.generateKeys();
      const auth = randomBytes(16);
      const endpoint = `${counterpart.url}${path}`;
      const decrypt = (body: Buffer): string => decryptPush(body, { browser, publicKey, auth });
      known.set(path, { endpoint, decrypt, live: true });
      return {
        endpoint,
        keys: { p256dh: publicKey.toString('base64url'), auth: auth.toString('base64url') },
      };
    },
    unsubscribe({ endpoint }) {
      const subscription = known.get(new URL(endpoint).pathname);
      if (subscription) subscription.live = false;
    },
  };
}

/** What a service refuses whatever the subscription. */
function refusal({ headers, body }: ReceivedRequest): { status: number; body?: string } | undefined {
  if (!/^\d+$/.test(headers['ttl'] ?? '')) return { status: 400, body: '{"errno":112}' };
  if (!/^vapid /i.test(headers['authorization'] ?? '')) return { status: 401, body: '{"errno":109}' };
  if (body.length > payloadBytesMax) return { status: 413, body: '{"errno":104}' };
  return undefined;
}

/** One record of aes128gcm (RFC 8188) with the keys of RFC 8291. */
function decryptPush(
  body: Buffer,
  keys: { browser: ReturnType<typeof createECDH>; publicKey: Buffer; auth: Buffer },
): string {
  const salt = body.subarray(0, 16);
  const idLength = body.readUInt8(20);
  const sender = body.subarray(21, 21 + idLength);
  const record = body.subarray(21 + idLength);
  const derive = (from: Uint8Array, with_: Uint8Array, info: Uint8Array, length: number): Buffer =>
    Buffer.from(hkdfSync('sha256', from, with_, info, length));
  const about = Buffer.concat([Buffer.from('WebPush: info\0'), keys.publicKey, sender]);
  const secret = derive(keys.browser.computeSecret(sender), keys.auth, about, 32);
  const key = derive(secret, salt, Buffer.from('Content-Encoding: aes128gcm\0'), 16);
  const nonce = derive(secret, salt, Buffer.from('Content-Encoding: nonce\0'), 12);
  const cipher = createDecipheriv('aes-128-gcm', key, nonce);
  cipher.setAuthTag(record.subarray(-16));
  const plain = Buffer.concat([cipher.update(record.subarray(0, -16)), cipher.final()]);
  // Padding: zeros behind a 2.
  return plain.subarray(0, plain.lastIndexOf(2)).toString();
}
