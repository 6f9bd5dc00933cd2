/**
 * One HTTP request and what is known of it: never repeated, never redirected, ended at once by its signal, and exact about
 * whether any of it can have been sent. `fetch` cannot tell a connection that failed from an answer that is missing.
 */
import { type Agent as HttpAgent, type IncomingMessage, request as httpRequest } from 'node:http';
import { type Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import type { LookupFunction } from 'node:net';

export interface HttpRequest {
  readonly method?: 'POST' | 'GET';
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array;
  readonly signal: AbortSignal;
  readonly agent?: HttpAgent | HttpsAgent | undefined;
  readonly lookup?: LookupFunction | undefined;
  /** Certificate authority in PEM, for services with their own. */
  readonly ca?: string | undefined;
}

export type HttpResult =
  /** No byte can have reached the server. */
  | { readonly kind: 'not-written'; readonly reason: string }
  /** It may have arrived; no status came back. */
  | { readonly kind: 'no-answer'; readonly reason: string }
  | {
      readonly kind: 'answer';
      readonly status: number;
      readonly headers: IncomingMessage['headers'];
      readonly body: string;
      /** False: the body broke off, or was longer than is read. */
      readonly complete: boolean;
    };

const bodyBytesMax = 65_536;

export function sendOnce(request: HttpRequest): Promise<HttpResult> {
  const { url, signal } = request;
  if (signal.aborted) return Promise.resolve({ kind: 'not-written', reason: 'no time left' });
  return new Promise((resolve) => {
    const body = typeof request.body === 'string' ? Buffer.from(request.body) : request.body;
    let written = false;
    let answered = false;
    const options = {
      method: request.method ?? 'POST',
      headers: { 'content-length': String(body.byteLength), ...request.headers },
      ...(request.agent === undefined ? { agent: false as const } : { agent: request.agent }),
      ...(request.lookup && { lookup: request.lookup }),
      ...(request.ca !== undefined && { ca: request.ca }),
    };
    const outgoing = url.protocol === 'https:' ? httpsRequest(url, options) : httpRequest(url, options);
    const end = (result: HttpResult): void => {
      signal.removeEventListener('abort', abort);
      resolve(result);
    };
    const abort = (): void => {
      outgoing.destroy(Object.assign(new Error('out of time'), { code: 'timeout' }));
    };
    signal.addEventListener('abort', abort, { once: true });
    outgoing.on('socket', (socket) => {
      // A connection that is used again writes at once; a new one is never ready before this event.
      if (outgoing.reusedSocket) written = true;
      else socket.once(url.protocol === 'https:' ? 'secureConnect' : 'connect', () => (written = true));
    });
    outgoing.on('error', (error: NodeJS.ErrnoException) => {
      // Once there is a status, the end of the body says the rest.
      if (answered) return;
      const reason = error.code ?? error.name;
      end(written ? { kind: 'no-answer', reason } : { kind: 'not-written', reason });
    });
    outgoing.on('response', (incoming) => {
      answered = true;
      readAnswer(incoming, end);
    });
    outgoing.end(body);
  });
}

function readAnswer(incoming: IncomingMessage, end: (result: HttpResult) => void): void {
  const chunks: Buffer[] = [];
  let bytes = 0;
  const answer = (complete: boolean): void =>
    end({
      kind: 'answer',
      status: incoming.statusCode ?? 0,
      headers: incoming.headers,
      body: Buffer.concat(chunks).toString('utf8'),
      complete,
    });
  incoming.on('data', (chunk: Buffer) => {
    bytes += chunk.byteLength;
    if (bytes <= bodyBytesMax) chunks.push(chunk);
    else {
      answer(false);
      incoming.destroy();
    }
  });
  incoming.on('end', () => answer(incoming.complete));
  incoming.on('error', () => answer(false));
  incoming.on('close', () => answer(false));
}
