/**
 * A provider over HTTP on loopback that counts what it was asked and what it took, and misbehaves by its script. Plain,
 * with TLS, or HTTP/2; what it answers when it does its job is given.
 */
import { once } from 'node:events';
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http';
import {
  createSecureServer as createHttp2Server,
  type Http2ServerRequest,
  type Http2ServerResponse,
} from 'node:http2';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo, Server, Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { accepts, faultList, type Fault, type FaultScript } from './provider-faults.js';

export interface ReceivedRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body: Buffer;
  /** On the monotonic clock. */
  readonly atMs: number;
}

export interface HttpAnswer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

export interface HttpCounterpartOptions {
  readonly faults?: FaultScript;
  /** What it answers when it does its job. Default: 200 and `{}`. */
  readonly answer?: (request: ReceivedRequest) => HttpAnswer | Promise<HttpAnswer>;
  /** Called with each message that is taken, before it is answered or not. */
  readonly onTaken?: (request: ReceivedRequest, fault: Fault) => void;
  /** Names the message of a request: what counts as a duplicate. Default: the whole body. */
  readonly identify?: (request: ReceivedRequest) => string;
  /** Key and certificate in PEM. */
  readonly tls?: { readonly key: string; readonly cert: string };
  /** HTTP/2 over TLS. */
  readonly http2?: boolean;
}

export interface HttpCounterpart {
  readonly url: string;
  readonly port: number;
  readonly requests: readonly ReceivedRequest[];
  /** How often each message was taken. */
  readonly taken: ReadonlyMap<string, number>;
  /** Connections that were ever opened, and those that are open. */
  connections(): { readonly total: number; readonly open: number };
  stop(): Promise<void>;
}

type Incoming = IncomingMessage | Http2ServerRequest;
type Outgoing = ServerResponse | Http2ServerResponse;

export async function startHttpCounterpart(options: HttpCounterpartOptions = {}): Promise<HttpCounterpart> {
  const { faults = faultList([]), tls, http2 = false } = options;
  const answer = options.answer ?? (() => ({ status: 200, body: '{}' }));
  const identify = options.identify ?? (({ body }: ReceivedRequest) => body.toString());
  const requests: ReceivedRequest[] = [];
  const taken = new Map<string, number>();
  const sockets = new Set<Socket>();
  let total = 0;

  const handle = async (incoming: Incoming, outgoing: Outgoing): Promise<void> => {
    const request = await readRequest(incoming);
    requests.push(request);
    const fault = faults.next();
    if (accepts(fault)) {
      const name = identify(request);
      taken.set(name, (taken.get(name) ?? 0) + 1);
      options.onTaken?.(request, fault);
    }
    await behave(fault, outgoing, () => Promise.resolve(answer(request)));
  };
  const onRequest = (incoming: Incoming, outgoing: Outgoing): void => {
    handle(incoming, outgoing).catch(() => cut(outgoing));
  };

  const server: Server = http2
    ? createHttp2Server({ ...tls, allowHTTP1: false }, onRequest)
    : tls
      ? createHttpsServer(tls, onRequest)
      : createHttpServer(onRequest);
  server.on('connection', (socket: Socket) => {
    total += 1;
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;

  return {
    url: `${tls ? 'https' : 'http'}://127.0.0.1:${port}`,
    port,
    requests,
    taken,
    connections: () => ({ total, open: sockets.size }),
    async stop() {
      const closed = once(server, 'close');
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

async function readRequest(incoming: Incoming): Promise<ReceivedRequest> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk as Buffer);
  return {
    method: incoming.method ?? '',
    path: incoming.url ?? '',
    headers: Object.fromEntries(
      Object.entries(incoming.headers).map(([name, value]) => [
        name,
        Array.isArray(value) ? value.join(', ') : value,
      ]),
    ),
    body: Buffer.concat(chunks),
    atMs: performance.now(),
  };
}

async function behave(fault: Fault, outgoing: Outgoing, job: () => Promise<HttpAnswer>): Promise<void> {
  switch (fault.kind) {
    case 'silent':
      return;
    case 'cut':
      return cut(outgoing);
    case 'answer':
      return write(outgoing, fault);
    case 'drip': {
      outgoing.writeHead(200, { 'content-type': 'application/json' });
      const drip = setInterval(() => (outgoing as ServerResponse).write(' '), 1_000);
      outgoing.on('close', () => clearInterval(drip));
      return;
    }
    case 'late':
      await new Promise((resolve) => setTimeout(resolve, fault.delayMs));
      return write(outgoing, await job());
    case 'none':
      return write(outgoing, await job());
  }
}

function cut(outgoing: Outgoing): void {
  if ('stream' in outgoing) outgoing.stream.session?.destroy();
  // A TLS socket cannot be reset.
  else if (outgoing.socket instanceof TLSSocket) outgoing.socket.destroy();
  else outgoing.socket?.resetAndDestroy();
}

function write(outgoing: Outgoing, { status, headers, body = '' }: HttpAnswer): void {
  outgoing.writeHead(status, { 'content-type': 'application/json', ...headers });
  outgoing.end(body);
}
