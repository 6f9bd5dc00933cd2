/**
 * Push to browsers (RFC 8030, 8291, 8292). The library encrypts and signs; the request is our own, with a total time limit
 * and the time to live that is left. The endpoint is given by a browser, so it is checked like any foreign URL.
 */
import { systemClock, type Clock } from '../../clock.js';
import { groundError } from '../../errors.js';
import type { AttemptOutcome, AttemptRequest, Provider } from '../provider.js';
import { httpOutcome, type HttpVerdicts } from './http-outcome.js';
import { sendOnce } from './http-request.js';
import { createTargetCheck } from './webhook-target.js';

export interface WebPushOptions {
  /** Default: web-push. */
  readonly name?: string;
  readonly vapid: {
    /** mailto: or https: of whom the push service may turn to. */
    readonly subject: string;
    readonly publicKey: string;
    readonly privateKey: string;
  };
  /** Default: 10,000 ms. */
  readonly timeoutMs?: number;
  /** Longest time to live that is asked for, in seconds. Default: 2,592,000, the most that all services take. */
  readonly ttlMaxSeconds?: number;
  readonly verdicts?: HttpVerdicts;
  readonly rate?: Provider['rate'];
  readonly clock?: Clock;
  /** Certificate authority in PEM, and hosts inside the network: for a push service of one's own. */
  readonly ca?: string;
  readonly allow?: readonly string[];
}

const verdictsDefault: HttpVerdicts = { '404': 'retire', '410': 'retire' };
const payloadBytesMax = 3_800;

export function createWebPushProvider(options: WebPushOptions): Provider {
  const {
    name = 'web-push',
    vapid,
    timeoutMs = 10_000,
    ttlMaxSeconds = 2_592_000,
    rate,
    clock = systemClock,
  } = options;
  const targets = createTargetCheck(options.allow);
  const verdicts = { ...verdictsDefault, ...options.verdicts };

  return {
    name,
    channel: 'push',
    platform: 'web',
    // Each browser has its own vendor's service behind it.
    oneService: false,
    timeoutMs,
    rate,
    async attempt(request, { signal }): Promise<AttemptOutcome> {
      const url = new URL(request.destination.address);
      if (url.protocol !== 'https:' || targets.refuses(url))
        return { kind: 'refused', detail: 'target not allowed' };
      const payload = payloadOf(request);
      if (Buffer.byteLength(payload) > payloadBytesMax)
        return { kind: 'refused', detail: 'payload too large' };
      const ttl = Math.min(ttlMaxSeconds, Math.max(1, Math.ceil(request.timeLeftMs / 1_000)));
      const details = await encrypt(request, payload, { vapid, ttl });
      if (details === undefined)
        return { kind: 'refused', detail: 'the keys of the subscription are not valid' };
      const result = await sendOnce({
        url,
        signal,
        ca: options.ca,
        lookup: targets.lookupFor(url),
        headers: details.headers,
        body: details.body,
      });
      if (result.kind === 'not-written' && result.reason === 'target-refused')
        return { kind: 'refused', detail: 'target not allowed' };
      if (result.kind === 'answer' && result.status >= 200 && result.status < 300)
        return { kind: 'sent', messageId: result.headers.location, detail: `http ${result.status}` };
      return httpOutcome(result, { verdicts, now: clock.now() });
    },
  };
}

function payloadOf({ content, reference }: AttemptRequest): string {
  return JSON.stringify({ title: content['title'], body: content['body'], url: content['url'], reference });
}

async function encrypt(
  { destination }: AttemptRequest,
  payload: string,
  { vapid, ttl }: { vapid: WebPushOptions['vapid']; ttl: number },
): Promise<{ headers: Record<string, string>; body: Uint8Array } | undefined> {
  const library = await import('web-push').catch((cause: unknown) => {
    throw groundError('driver-missing', 'web push needs web-push: npm install web-push', { cause });
  });
  const { p256dh, auth } = destination.details as { p256dh: string; auth: string };
  try {
    const { headers, body } = library.default.generateRequestDetails(
      { endpoint: destination.address, keys: { p256dh, auth } },
      payload,
      { vapidDetails: vapid, TTL: ttl, contentEncoding: 'aes128gcm' },
    );
    const named = Object.entries(headers).map(
      ([header, value]) => [header.toLowerCase(), String(value)] as const,
    );
    return { headers: Object.fromEntries(named.filter(([header]) => header !== 'content-length')), body };
  } catch {
    return undefined;
  }
}
