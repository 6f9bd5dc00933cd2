/**
 * The other side of the demo's notifications: a small server on loopback that takes text messages and e-mails the way
 * two well-known providers do, sends nothing anywhere, and misbehaves a little by a seeded draw. Now and then its e-mail
 * side falls silent for a while, so that the circuit breaker has something to do. Receipts for text messages come back
 * signed. Memory is bounded.
 */
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';

export interface Counterpart {
  readonly url: string;
  /** Ends its receipts and its connections. May be called twice. */
  stop(): Promise<void>;
}

export interface CounterpartOptions {
  /** Signs the receipts. */
  readonly authToken: string;
  /** From 0 to 1: draws the faults. */
  readonly random: () => number;
}

/** Of all requests. What is silent is ambiguous: of those, every second one has been taken. */
const shares = { silent: 0.02, throttled: 0.02, broken: 0.01, refused: 0.01 };
/** Of every four minutes, the last twenty seconds. */
const silence = { everyMs: 240_000, forMs: 20_000 };
const rememberedMax = 1_000;
const bodyBytesMax = 64 * 1024;
const receiptMs = 400;

type Fault = keyof typeof shares | 'none';

function draw(random: () => number): Fault {
  let drawn = random();
  for (const [fault, share] of Object.entries(shares) as [Fault, number][]) {
    if (drawn < share) return fault;
    drawn -= share;
  }
  return 'none';
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request) {
    bytes += (chunk as Buffer).byteLength;
    if (bytes > bodyBytesMax) throw new Error('a body larger than the demo ever sends');
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks).toString();
}

function answer(response: ServerResponse, status: number, body: object, headers: object = {}): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(JSON.stringify(body));
}

export async function startCounterpart({ authToken, random }: CounterpartOptions): Promise<Counterpart> {
  const emails = new Map<string, string>();
  const timers = new Set<NodeJS.Timeout>();
  const startedAtMs = performance.now();
  let taken = 0;

  const isSilent = (): boolean =>
    (performance.now() - startedAtMs) % silence.everyMs > silence.everyMs - silence.forMs;

  const receiptLater = (statusUrl: string | null, sid: string): void => {
    if (statusUrl === null) return;
    const timer = setTimeout(() => {
      timers.delete(timer);
      void sendReceipt({ statusUrl, sid, authToken, status: random() < 0.97 ? 'delivered' : 'undelivered' });
    }, receiptMs);
    timers.add(timer);
  };

  const takeText = (body: string): { sid: string; status: string } => {
    taken += 1;
    const sid = `SM${taken}-${process.pid}-${Date.now().toString(36)}`;
    receiptLater(new URLSearchParams(body).get('StatusCallback'), sid);
    return { sid, status: 'queued' };
  };
  const takeEmail = (key: string): { id: string } => {
    const known = emails.get(key);
    if (known !== undefined) return { id: known };
    taken += 1;
    const id = `email-${taken}-${process.pid}`;
    emails.set(key, id);
    if (emails.size > rememberedMax) emails.delete(emails.keys().next().value as string);
    return { id };
  };

  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = await bodyOf(request);
    const isEmail = request.url === '/emails';
    const take = () =>
      isEmail ? takeEmail(String(request.headers['idempotency-key'] ?? '')) : takeText(body);
    switch (isEmail && isSilent() ? 'silent' : draw(random)) {
      case 'silent':
        if (random() < 0.5) take();
        return;
      case 'throttled':
        return answer(response, 429, { code: 20429, name: 'rate_limit_exceeded' }, { 'retry-after': '1' });
      case 'broken':
        return answer(response, 500, { code: 20500, name: 'application_error' });
      case 'refused':
        return answer(response, 400, { code: 21211, name: 'validation_error' });
      case 'none':
        return answer(response, isEmail ? 200 : 201, take());
    }
  };

  const sockets = new Set<Socket>();
  const server = createServer((request, response) => {
    handle(request, response).catch(() => response.destroy());
  });
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async stop() {
      for (const timer of timers) clearTimeout(timer);
      if (!server.listening) return;
      const closed = once(server, 'close');
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

async function sendReceipt(receipt: {
  readonly statusUrl: string;
  readonly sid: string;
  readonly status: string;
  readonly authToken: string;
}): Promise<void> {
  const fields = { MessageSid: receipt.sid, MessageStatus: receipt.status };
  const signed = `${receipt.statusUrl}MessageSid${receipt.sid}MessageStatus${receipt.status}`;
  const signature = createHmac('sha1', receipt.authToken).update(signed).digest('base64');
  await fetch(receipt.statusUrl, {
    method: 'POST',
    headers: { 'x-twilio-signature': signature },
    body: new URLSearchParams(fields),
    signal: AbortSignal.timeout(2_000),
  }).catch(() => {
    // a receipt that is lost is what happens out there too
  });
}
