/** What each HTTP adapter says about each answer, and that one attempt is one request whatever happens. */
import { createDecipheriv, createECDH, hkdfSync, randomBytes } from 'node:crypto';
import webPush from 'web-push';
import { afterEach, describe, expect, it } from 'vitest';
import {
  createApnsProvider,
  createFcmProvider,
  createResendProvider,
  createTwilioProvider,
  createWebPushProvider,
  type AttemptOutcome,
  type Content,
  type Destination,
  type Provider,
} from '../../src/notify/index.js';
import {
  faultList,
  startHttpCounterpart,
  startResendCounterpart,
  startTwilioCounterpart,
  type Fault,
  type HttpCounterpart,
} from '../../src/testing/index.js';
import { attempt } from './attempt.js';
import { apnsKey, fcmKey, tls } from './tls.js';
import { within } from '../limits.js';

const open: HttpCounterpart[] = [];
const made: Provider[] = [];
afterEach(async () => {
  for (const provider of made.splice(0)) await provider.stop?.();
  for (const counterpart of open.splice(0)) await counterpart.stop();
});
function keep<T extends HttpCounterpart>(counterpart: T): T {
  open.push(counterpart);
  return counterpart;
}

const browser = createECDH('prime256v1');
browser.generateKeys();
const auth = randomBytes(16);
const details = {
  platform: 'web',
  p256dh: browser.getPublicKey('base64url'),
  auth: auth.toString('base64url'),
};
const account = { project_id: 'p', client_email: 'a@p.example.test', private_key: fcmKey };
const vapid = { subject: 'mailto:ops@example.test', ...webPush.generateVAPIDKeys() };
const push: Content = { title: 'Hello', body: 'World' };

interface Adapter {
  readonly name: string;
  readonly content: Content;
  /** A counterpart with these faults, the provider and where it sends to. */
  open(
    faults: readonly Fault[],
  ): Promise<{ server: HttpCounterpart; provider: Provider; destination: Destination }>;
}

const adapters: Adapter[] = [
  {
    name: 'resend',
    content: { subject: 'Hello', text: 'World' },
    async open(faults) {
      const server = keep(await startResendCounterpart({ faults: faultList(faults) }));
      const provider = createResendProvider({ apiKey: 're_secret', from: 'a@example.test', url: server.url });
      return { server, provider, destination: { channel: 'email', address: 'b@example.test' } };
    },
  },
  {
    name: 'twilio',
    content: { text: 'Hello' },
    async open(faults) {
      const server = keep(await startTwilioCounterpart({ authToken: 'token', faults: faultList(faults) }));
      const provider = createTwilioProvider({
        accountSid: 'AC1',
        authToken: 'token',
        from: '+1',
        url: server.url,
      });
      return { server, provider, destination: { channel: 'sms', address: '+41791234567' } };
    },
  },
  {
    name: 'fcm',
    content: push,
    async open(faults) {
      const tokens = keep(
        await startHttpCounterpart({
          answer: () => ({ status: 200, body: '{"access_token":"t","expires_in":3600}' }),
        }),
      );
      const server = keep(
        await startHttpCounterpart({
          faults: faultList(faults),
          answer: () => ({ status: 200, body: '{"name":"m1"}' }),
        }),
      );
      const provider = createFcmProvider({ account, url: server.url, tokenUrl: tokens.url });
      return {
        server,
        provider,
        destination: { channel: 'push', address: 'token', details: { platform: 'fcm' } },
      };
    },
  },
  {
    name: 'apns',
    content: push,
    async open(faults) {
      const server = keep(await startHttpCounterpart({ http2: true, tls, faults: faultList(faults) }));
      const provider = createApnsProvider({
        teamId: 'T',
        keyId: 'K',
        key: apnsKey,
        topic: 'app',
        url: server.url,
        ca: tls.cert,
      });
      return {
        server,
        provider,
        destination: { channel: 'push', address: 'token', details: { platform: 'apns' } },
      };
    },
  },
  {
    name: 'web push',
    content: push,
    async open(faults) {
      const server = keep(
        await startHttpCounterpart({ tls, faults: faultList(faults), answer: () => ({ status: 201 }) }),
      );
      const provider = createWebPushProvider({ vapid, ca: tls.cert, allow: [`127.0.0.1:${server.port}`] });
      return { server, provider, destination: { channel: 'push', address: `${server.url}/push/1`, details } };
    },
  },
];

async function callOnce(
  adapter: Adapter,
  fault: Fault,
  { limitMs = 400, timeLeftMs = 60_000 } = {},
): Promise<{ outcome: AttemptOutcome; tookMs: number; server: HttpCounterpart }> {
  const { server, provider, destination } = await adapter.open([fault]);
  made.push(provider);
  const result = await attempt(provider, { destination, content: adapter.content, timeLeftMs }, { limitMs });
  return { ...result, server };
}

describe.each(adapters)('$name', (adapter) => {
  const common: [Fault, string][] = [
    [{ kind: 'none' }, 'sent'],
    [{ kind: 'answer', status: 500 }, 'ambiguous'],
    [{ kind: 'answer', status: 503 }, 'ambiguous'],
    [{ kind: 'answer', status: 429, headers: { 'retry-after': '7' } }, 'not-accepted'],
    [{ kind: 'answer', status: 400 }, 'refused'],
    [{ kind: 'answer', status: 403 }, 'refused'],
    [{ kind: 'cut' }, 'ambiguous'],
    [{ kind: 'silent' }, 'ambiguous'],
  ];
  it.each(common)('N18, N44: %j is %s, in one request', async (fault, expected) => {
    const { outcome, server } = await callOnce(adapter, fault, { limitMs: 1_500 });
    expect(outcome.kind).toBe(expected);
    expect(server.requests).toHaveLength(1);
  });

  it('N40, N44: what a 429 asks for is handed on, and not slept away', async () => {
    const fault: Fault = { kind: 'answer', status: 429, headers: { 'retry-after': '7' } };
    const { outcome, tookMs } = await callOnce(adapter, fault, { limitMs: 4_000 });
    expect(outcome).toMatchObject({ kind: 'not-accepted', retryAfterMs: 7_000 });
    expect(tookMs).toBeLessThan(within(3_000));
  });

  it('N47: one byte a second for ever ends at the total time, with its socket', async () => {
    const { outcome, tookMs, server } = await callOnce(adapter, { kind: 'drip' }, { limitMs: 1_300 });
    expect(['ambiguous', 'sent']).toContain(outcome.kind);
    expect(tookMs).toBeLessThan(within(2_300));
    // HTTP/2 ends the stream and keeps the connection for the others.
    for (const provider of made) await provider.stop?.();
    await expect.poll(() => server.connections().open).toBe(0);
  });

  it('a server that nobody listens at was certainly not reached', async () => {
    const { server, provider, destination } = await adapter.open([]);
    await server.stop();
    open.splice(open.indexOf(server), 1);
    const { outcome } = await attempt(
      provider,
      { destination, content: adapter.content },
      { limitMs: 2_000 },
    );
    expect(outcome.kind).toBe('not-accepted');
  });

  it('a secret is in no outcome', async () => {
    for (const fault of [{ kind: 'answer', status: 400, body: '{"message":"482913 re_secret"}' }] as const) {
      const { outcome } = await callOnce(adapter, fault);
      expect(JSON.stringify(outcome)).not.toMatch(/482913|re_secret|token/);
    }
  });
});

describe('answers that only one provider gives', () => {
  const [resend, twilio, fcm, apns, web] = adapters as [Adapter, Adapter, Adapter, Adapter, Adapter];

  it('N18: a 200 without an id is not sent', async () => {
    for (const adapter of [resend, twilio, fcm]) {
      for (const body of ['<html>', '{}', '{"id":']) {
        expect((await callOnce(adapter, { kind: 'answer', status: 200, body })).outcome.kind).toBe(
          'ambiguous',
        );
      }
    }
  });

  it('N45: Resend gets the same key and the same bytes, and sends once', async () => {
    const faults: Fault[] = [
      { kind: 'silent', accepts: true },
      { kind: 'answer', status: 409, body: '{"name":"concurrent_idempotent_requests"}' },
    ];
    const { server, provider, destination } = await resend.open(faults);
    const run = async () =>
      (await attempt(provider, { destination, content: resend.content }, { limitMs: 300 })).outcome;
    expect((await run()).kind).toBe('ambiguous');
    expect((await run()).kind).toBe('not-accepted');
    expect(await run()).toMatchObject({ kind: 'sent', messageId: 'email-1' });
    const { sent, otherPayloads } = server as Awaited<ReturnType<typeof startResendCounterpart>>;
    expect([sent.size, otherPayloads()]).toEqual([1, 0]);
  });

  it('N38: of all that FCM refuses, only a dead token retires it', async () => {
    const error = (type: string, message: string, errorCode = 'INVALID_ARGUMENT') =>
      JSON.stringify({
        error: { message, details: [{ '@type': `type.googleapis.com/${type}`, errorCode }] },
      });
    const retires = async (status: number, body: string) => {
      const { outcome } = await callOnce(fcm, { kind: 'answer', status, body });
      return outcome.kind === 'refused' && outcome.retire !== undefined;
    };
    const type = 'google.firebase.fcm.v1.FcmError';
    expect(
      await retires(400, error(type, 'The registration token is not a valid FCM registration token')),
    ).toBe(true);
    expect(await retires(404, error(type, 'x', 'UNREGISTERED'))).toBe(true);
    expect(await retires(400, error('google.rpc.BadRequest', 'Invalid value at message'))).toBe(false);
    expect(await retires(400, error(type, 'Message is too big'))).toBe(false);
    expect(await retires(403, error(type, 'x', 'SENDER_ID_MISMATCH'))).toBe(false);
    const unauthorized = await callOnce(fcm, { kind: 'answer', status: 401 });
    expect(unauthorized.outcome).toMatchObject({ kind: 'refused', configuration: true });
  });

  it('N39: APNs retires as of its own time, and a bad token at once', async () => {
    const answer = async (status: number, body: object) =>
      (await callOnce(apns, { kind: 'answer', status, body: JSON.stringify(body) })).outcome;
    expect(await answer(410, { reason: 'Unregistered', timestamp: 1_700_000_000_000 })).toMatchObject({
      kind: 'refused',
      retire: { before: 1_700_000_000_000 },
    });
    expect(await answer(400, { reason: 'BadDeviceToken' })).toMatchObject({
      retire: { reason: 'apns 400 BadDeviceToken' },
    });
    expect(await answer(413, { reason: 'PayloadTooLarge' })).toEqual({
      kind: 'refused',
      detail: 'apns 413 PayloadTooLarge',
    });
    expect((await answer(403, { reason: 'ExpiredProviderToken' })).kind).toBe('not-accepted');
  });

  it('N37: web push retires on 404 and 410 alone', async () => {
    for (const [status, retired] of [
      [404, true],
      [410, true],
      [413, false],
      [400, false],
    ] as const) {
      const { outcome } = await callOnce(web, { kind: 'answer', status });
      expect(outcome.kind === 'refused' && outcome.retire !== undefined).toBe(retired);
    }
    expect((await callOnce(web, { kind: 'answer', status: 500 })).outcome.kind).toBe('ambiguous');
  });

  it('a browser can read what it is sent', async () => {
    const { server } = await callOnce(web, { kind: 'none' });
    expect(JSON.parse(decrypt(server.requests[0]!.body))).toMatchObject({ title: 'Hello', body: 'World' });
  });

  it('N48: the time that is left is what each provider is given', async () => {
    const left = { timeLeftMs: 8_400 };
    const form = new URLSearchParams(
      (await callOnce(twilio, { kind: 'none' }, left)).server.requests[0]!.body.toString(),
    );
    expect(form.get('ValidityPeriod')).toBe('9');
    const message = (await callOnce(fcm, { kind: 'none' }, left)).server.requests[0]!.body.toString();
    expect(JSON.parse(message)).toMatchObject({ message: { android: { ttl: '9s' } } });
    expect((await callOnce(web, { kind: 'none' }, left)).server.requests[0]!.headers['ttl']).toBe('9');
    const expires = Number(
      (await callOnce(apns, { kind: 'none' }, left)).server.requests[0]!.headers['apns-expiration'],
    );
    expect(Math.abs(expires - (Date.now() / 1_000 + 8.4))).toBeLessThan(3);
  });

  it('N27: Twilio’s receipts are signed over every field, and find our reference', async () => {
    const server = keep(await startTwilioCounterpart({ authToken: 'token' }));
    const provider = createTwilioProvider({
      accountSid: 'AC1',
      authToken: 'token',
      from: '+1',
      url: server.url,
      statusUrl: 'https://us.example.test/receipts',
    });
    await attempt(provider, {
      destination: { channel: 'sms', address: '+41791234567' },
      content: { text: 'x' },
    });
    const request = server.callback(server.messages[0]!, { MessageStatus: 'delivered', NewField: 'unknown' });
    expect(await provider.parseReceipts?.(request)).toMatchObject({
      kind: 'receipts',
      receipts: [{ messageId: 'SM1', reference: 'd-1', status: 'delivered' }],
    });
    const forged = { ...request, body: Buffer.from(`${Buffer.from(request.body).toString()}&More=1`) };
    expect(await provider.parseReceipts?.(forged)).toEqual({ kind: 'signature-invalid' });
    const odd = server.callback(server.messages[0]!, { MessageStatus: 'never-heard-of' });
    expect(await provider.parseReceipts?.(odd)).toEqual({ kind: 'receipts', receipts: [] });
  });
});

/** RFC 8188 and 8291, written from the standard: what a browser does. */
function decrypt(body: Buffer): string {
  const salt = body.subarray(0, 16);
  const senderKey = body.subarray(21, 21 + body[20]!);
  const cipher = body.subarray(21 + body[20]!);
  const info = Buffer.concat([Buffer.from('WebPush: info\0'), browser.getPublicKey(), senderKey]);
  const secret = Buffer.from(hkdfSync('sha256', browser.computeSecret(senderKey), auth, info, 32));
  const key = Buffer.from(hkdfSync('sha256', secret, salt, 'Content-Encoding: aes128gcm\0', 16));
  const nonce = Buffer.from(hkdfSync('sha256', secret, salt, 'Content-Encoding: nonce\0', 12));
  const decipher = createDecipheriv('aes-128-gcm', key, nonce);
  decipher.setAuthTag(cipher.subarray(-16));
  const plain = Buffer.concat([decipher.update(cipher.subarray(0, -16)), decipher.final()]);
  return plain.subarray(0, plain.lastIndexOf(2)).toString();
}
