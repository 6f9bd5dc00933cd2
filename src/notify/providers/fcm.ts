/**
 * Push to Android (and others) through FCM HTTP v1, without its SDK, which repeats a message up to four times by itself.
 * Only what FCM says about the token retires the token; a mistake in our payload never does.
 */
import { createSign } from 'node:crypto';
import { Agent } from 'node:https';
import { systemClock, type Clock } from '../../clock.js';
import type { AttemptOutcome, AttemptRequest, Provider } from '../provider.js';
import { httpOutcome, type HttpVerdicts } from './http-outcome.js';
import { sendOnce } from './http-request.js';
import { readJson, text } from './json.js';

export interface FcmOptions {
  /** Default: fcm. */
  readonly name?: string;
  /** The service account's own file, parsed. */
  readonly account: {
    readonly project_id: string;
    readonly client_email: string;
    readonly private_key: string;
  };
  /** Default: https://fcm.googleapis.com. */
  readonly url?: string;
  /** Default: https://oauth2.googleapis.com/token. */
  readonly tokenUrl?: string;
  /** Default: 10,000 ms. */
  readonly timeoutMs?: number;
  readonly rate?: Provider['rate'];
  readonly verdicts?: HttpVerdicts;
  readonly clock?: Clock;
}

const verdictsDefault: HttpVerdicts = {
  '404 UNREGISTERED': 'retire',
  '400 TOKEN': 'retire',
  '401': 'configuration',
  '403': 'configuration',
  // The token belongs to another project: not dead, not ours.
  '403 SENDER_ID_MISMATCH': 'refused',
  '404': 'refused',
};
const ttlMaxSeconds = 2_419_200;
/** Tokens last an hour; renewed in time. */
const renewMs = 300_000;

export function createFcmProvider(options: FcmOptions): Provider {
  const { name = 'fcm', account, timeoutMs = 10_000, rate, clock = systemClock } = options;
  const base = options.url ?? 'https://fcm.googleapis.com';
  const url = new URL(`/v1/projects/${account.project_id}/messages:send`, base);
  const agent = url.protocol === 'https:' ? new Agent({ keepAlive: true }) : undefined;
  const verdicts = { ...verdictsDefault, ...options.verdicts };
  const tokenUrl = new URL(options.tokenUrl ?? 'https://oauth2.googleapis.com/token');
  let token: { readonly value: string; readonly endsAt: number } | undefined;

  const accessToken = async (signal: AbortSignal): Promise<string | AttemptOutcome> => {
    if (token !== undefined && token.endsAt - renewMs > clock.now()) return token.value;
    const result = await sendOnce({
      url: tokenUrl,
      signal,
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams({
        grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer',
        assertion: assertion(account, tokenUrl.href, clock.now()),
      }).toString(),
    });
    const body = result.kind === 'answer' ? readJson(result.body) : undefined;
    const value = body?.['access_token'];
    if (result.kind !== 'answer' || typeof value !== 'string') {
      const isRefused = result.kind === 'answer' && result.status >= 400 && result.status < 500;
      return {
        kind: 'not-accepted',
        detail: 'fcm gave no access token',
        configuration: isRefused,
        unanswered: !isRefused,
      };
    }
    token = { value, endsAt: clock.now() + Number(body?.['expires_in'] ?? 3_600) * 1_000 };
    return value;
  };

  return {
    name,
    channel: 'push',
    platform: 'fcm',
    timeoutMs,
    rate,
    async stop() {
      agent?.destroy();
    },
    async attempt(request, { signal }): Promise<AttemptOutcome> {
      const access = await accessToken(signal);
      if (typeof access !== 'string') return access;
      const result = await sendOnce({
        url,
        agent,
        signal,
        headers: { authorization: `Bearer ${access}`, 'content-type': 'application/json' },
        body: JSON.stringify({ message: messageOf(request) }),
      });
      const body = result.kind === 'answer' ? readJson(result.body) : undefined;
      if (result.kind === 'answer' && result.status >= 200 && result.status < 300) {
        const messageId = result.complete ? text(body?.['name']) : undefined;
        if (messageId === undefined)
          return { kind: 'ambiguous', detail: `http ${result.status} without a name` };
        return { kind: 'sent', messageId, detail: `http ${result.status}` };
      }
      if (result.kind === 'answer' && result.status === 401) token = undefined;
      return httpOutcome(result, { verdicts, code: codeOf(body), now: clock.now() });
    },
  };
}

function messageOf({ destination, content, reference, timeLeftMs }: AttemptRequest) {
  const seconds = Math.min(ttlMaxSeconds, Math.max(1, Math.ceil(timeLeftMs / 1_000)));
  const url = content['url'];
  return {
    token: destination.address,
    notification: { title: content['title'], body: content['body'] },
    data: { reference, ...(typeof url === 'string' && { url }) },
    android: { ttl: `${seconds}s` },
  };
}

/** FcmError's own code; `TOKEN` when a 400 is about the registration token and not about our payload. */
function codeOf(body: Record<string, unknown> | undefined): string | undefined {
  const error = body?.['error'] as
    | { message?: unknown; details?: readonly Record<string, unknown>[] }
    | undefined;
  const details = Array.isArray(error?.details) ? error.details : [];
  const isAbout = (type: string) => details.find((detail) => String(detail['@type']).endsWith(type));
  if (isAbout('google.rpc.BadRequest')) return 'PAYLOAD';
  const code = text(isAbout('FcmError')?.['errorCode']);
  const isToken = code === 'INVALID_ARGUMENT' && /registration token/i.test(String(error?.message));
  return isToken ? 'TOKEN' : code;
}

function assertion(account: FcmOptions['account'], audience: string, now: number): string {
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  const seconds = Math.floor(now / 1_000);
  const claims = {
    iss: account.client_email,
    scope: 'https://www.googleapis.com/auth/firebase.messaging',
    aud: audience,
    iat: seconds,
    exp: seconds + 3_600,
  };
  const signed = `${part({ alg: 'RS256', typ: 'JWT' })}.${part(claims)}`;
  return `${signed}.${createSign('RSA-SHA256').update(signed).sign(account.private_key, 'base64url')}`;
}
