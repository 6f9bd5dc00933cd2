/**
 * Push to Apple devices over HTTP/2, on one connection, without the libraries that repeat by themselves. A token is
 * retired only when Apple's time for it is later than our registration of it.
 */
import { createSign } from 'node:crypto';
import { connect, constants, type ClientHttp2Session, type ClientHttp2Stream } from 'node:http2';
import { systemClock, type Clock } from '../../clock.js';
import type { AttemptOutcome, AttemptRequest, Provider } from '../provider.js';
import { parseRetryAfter } from './http-outcome.js';
import { readJson, text } from './json.js';

export interface ApnsOptions {
  /** Default: apns. */
  readonly name?: string;
  readonly teamId: string;
  readonly keyId: string;
  /** The .p8 file's text. */
  readonly key: string;
  /** The bundle id. */
  readonly topic: string;
  /** Default: https://api.push.apple.com; development builds need the sandbox's. */
  readonly url?: string;
  /** Default: 10,000 ms. */
  readonly timeoutMs?: number;
  readonly rate?: Provider['rate'];
  readonly clock?: Clock;
  /** Certificate authority in PEM, for a counterpart with its own. */
  readonly ca?: string;
  /** Overrides by reason (`BadDeviceToken`) or status. */
  readonly verdicts?: Readonly<Record<string, ApnsVerdict>>;
}

export type ApnsVerdict =
  | 'not-accepted'
  | 'refused'
  | 'ambiguous'
  | 'configuration'
  | 'retire'
  | 'retire-if-older';

const verdictsDefault: Readonly<Record<string, ApnsVerdict>> = {
  BadDeviceToken: 'retire',
  DeviceTokenNotForTopic: 'retire',
  Unregistered: 'retire-if-older',
  ExpiredToken: 'retire-if-older',
  ExpiredProviderToken: 'not-accepted',
  TooManyRequests: 'not-accepted',
  TooManyProviderTokenUpdates: 'not-accepted',
  '400': 'refused',
  '403': 'configuration',
  '405': 'refused',
  '410': 'retire-if-older',
  '413': 'refused',
  '429': 'not-accepted',
  '500': 'ambiguous',
  '503': 'ambiguous',
};
/** Apple refuses a token younger than 20 minutes that is changed, and one older than an hour. */
const tokenMs = 45 * 60_000;

type Answer =
  | { readonly kind: 'not-written'; readonly reason: string }
  | { readonly kind: 'no-answer'; readonly reason: string }
  | {
      readonly kind: 'answer';
      readonly status: number;
      readonly id?: string;
      readonly retryAfter?: string;
      readonly body: string;
    };

export function createApnsProvider(options: ApnsOptions): Provider {
  const { name = 'apns', timeoutMs = 10_000, rate, clock = systemClock, topic } = options;
  const origin = options.url ?? 'https://api.push.apple.com';
  const verdicts = { ...verdictsDefault, ...options.verdicts };
  let session: ClientHttp2Session | undefined;
  let token: { readonly value: string; readonly at: number } | undefined;

  const providerToken = (): string => {
    if (token === undefined || clock.now() - token.at > tokenMs) {
      token = { value: signToken(options, clock.now()), at: clock.now() };
    }
    return token.value;
  };

  const connected = (signal: AbortSignal): Promise<ClientHttp2Session> => {
    if (session !== undefined && !session.closed && !session.destroyed) return Promise.resolve(session);
    return connectTo(origin, options.ca, signal).then((made) => (session = made));
  };

  return {
    name,
    channel: 'push',
    platform: 'apns',
    timeoutMs,
    rate,
    async attempt(request, { signal }): Promise<AttemptOutcome> {
      let open: ClientHttp2Session;
      try {
        open = await connected(signal);
      } catch (error) {
        return {
          kind: 'not-accepted',
          detail: `not connected: ${(error as Error).message}`,
          unanswered: true,
        };
      }
      const { headers, body } = requestOf(request, topic, clock.now());
      const answer = await exchange(
        open,
        { ...headers, authorization: `bearer ${providerToken()}` },
        body,
        signal,
      );
      if (answer.kind === 'answer' && answer.status === 403) token = undefined;
      return outcomeOf(answer, verdicts, clock.now());
    },
    async stop() {
      session?.destroy();
      session = undefined;
    },
  };
}

function requestOf(
  { destination, content, reference, timeLeftMs }: AttemptRequest,
  topic: string,
  now: number,
) {
  const url = content['url'];
  return {
    body: JSON.stringify({
      aps: { alert: { title: content['title'], body: content['body'] } },
      reference,
      ...(typeof url === 'string' && { url }),
    }),
    headers: {
      ':method': 'POST',
      ':path': `/3/device/${encodeURIComponent(destination.address)}`,
      'apns-topic': topic,
      'apns-push-type': 'alert',
      'apns-expiration': String(Math.ceil((now + timeLeftMs) / 1_000)),
    },
  };
}

function connectTo(origin: string, ca: string | undefined, signal: AbortSignal): Promise<ClientHttp2Session> {
  return new Promise((resolve, reject) => {
    const session = connect(origin, ca === undefined ? {} : { ca });
    const abort = (): void => session.destroy(new Error('timeout'));
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort, { once: true });
    // Stays for the life of the session: an error that nobody hears would end the process.
    session.on('error', (error: NodeJS.ErrnoException) => reject(new Error(error.code ?? error.message)));
    session.on('close', () => reject(new Error('closed')));
    session.once('connect', () => {
      signal.removeEventListener('abort', abort);
      session.unref();
      resolve(session);
    });
  });
}

function exchange(
  session: ClientHttp2Session,
  headers: Record<string, string>,
  body: string,
  signal: AbortSignal,
): Promise<Answer> {
  return new Promise((resolve) => {
    let stream: ClientHttp2Stream;
    try {
      stream = session.request(headers);
    } catch (error) {
      return resolve({ kind: 'not-written', reason: (error as NodeJS.ErrnoException).code ?? 'closed' });
    }
    let status: number | undefined;
    let id: string | undefined;
    let retryAfter: string | undefined;
    let received = '';
    const abort = (): void =>
      void stream.destroy(Object.assign(new Error('out of time'), { code: 'timeout' }));
    const end = (answer: Answer): void => {
      signal.removeEventListener('abort', abort);
      resolve(answer);
    };
    const ended = (reason: string): void => {
      // A stream that was refused was not looked at.
      if (stream.rstCode === constants.NGHTTP2_REFUSED_STREAM) return end({ kind: 'not-written', reason });
      if (status === undefined) return end({ kind: 'no-answer', reason });
      end({
        kind: 'answer',
        status,
        body: received,
        ...(id !== undefined && { id }),
        ...(retryAfter !== undefined && { retryAfter }),
      });
    };
    signal.addEventListener('abort', abort, { once: true });
    if (signal.aborted) abort();
    stream.on('response', (answer) => {
      status = Number(answer[':status']);
      id = answer['apns-id'] as string | undefined;
      retryAfter = answer['retry-after'];
    });
    stream.setEncoding('utf8');
    stream.on('data', (chunk: string) => (received = (received + chunk).slice(0, 4_096)));
    stream.on('error', (error: NodeJS.ErrnoException) => ended(error.code ?? 'error'));
    stream.on('close', () => ended('closed'));
    stream.end(body);
  });
}

function outcomeOf(
  answer: Answer,
  verdicts: Readonly<Record<string, ApnsVerdict>>,
  now: number,
): AttemptOutcome {
  if (answer.kind === 'not-written')
    return { kind: 'not-accepted', detail: `not written: ${answer.reason}`, unanswered: true };
  if (answer.kind === 'no-answer')
    return { kind: 'ambiguous', detail: `no answer: ${answer.reason}`, unanswered: true };
  if (answer.status === 200) return { kind: 'sent', messageId: answer.id, detail: 'http 200' };
  const body = readJson(answer.body);
  const reason = text(body?.['reason']);
  const detail = `apns ${answer.status}${reason === undefined ? '' : ` ${reason}`}`;
  const verdict =
    (reason === undefined ? undefined : verdicts[reason]) ??
    verdicts[String(answer.status)] ??
    (answer.status >= 500 ? 'ambiguous' : 'refused');
  const retryAfterMs = parseRetryAfter(answer.retryAfter, now);
  switch (verdict) {
    case 'not-accepted':
      return { kind: 'not-accepted', detail, retryAfterMs };
    case 'ambiguous':
      return { kind: 'ambiguous', detail, retryAfterMs };
    case 'configuration':
      return { kind: 'refused', detail, configuration: true };
    case 'retire':
      return { kind: 'refused', detail, retire: { reason: detail } };
    case 'retire-if-older': {
      const before = Number(body?.['timestamp']);
      return Number.isSafeInteger(before)
        ? { kind: 'refused', detail, retire: { reason: detail, before } }
        : { kind: 'refused', detail };
    }
    case 'refused':
      return { kind: 'refused', detail };
  }
}

function signToken({ teamId, keyId, key }: ApnsOptions, now: number): string {
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  const signed = `${part({ alg: 'ES256', kid: keyId })}.${part({ iss: teamId, iat: Math.floor(now / 1_000) })}`;
  const signature = createSign('SHA256').update(signed).sign({ key, dsaEncoding: 'ieee-p1363' }, 'base64url');
  return `${signed}.${signature}`;
}
