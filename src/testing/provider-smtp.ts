/**
 * An SMTP server on loopback that can close, fall silent or answer what it likes at every phase of the conversation, and
 * keeps every message whose body it has read. Plain text, no authentication.
 */
import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { drawShare, seededRandom } from './provider-faults.js';

export type SmtpPhase = 'connect' | 'greeting' | 'ehlo' | 'mail' | 'rcpt' | 'data' | 'body';

/** What happens at a phase: before its reply, for `body` after the final dot. */
export interface SmtpFault {
  readonly at: SmtpPhase;
  readonly does: 'close' | 'reset' | 'silent' | 'drip' | { readonly reply: string };
}

export interface SmtpFaultScript {
  /** The fault of the next connection. */
  next(): SmtpFault | undefined;
}

/** Draws each fault with its share of all connections; the same seed gives the same script. */
export function smtpFaultShares(input: {
  readonly seed: number;
  readonly shares: readonly (readonly [share: number, fault: SmtpFault])[];
}): SmtpFaultScript {
  const random = seededRandom(input.seed);
  return { next: () => drawShare(input.shares, random()) };
}

export interface SmtpMessage {
  readonly from: string;
  readonly to: readonly string[];
  /** Headers and body as they came, dots unstuffed. */
  readonly raw: string;
  /** Whether it was answered with 250. */
  taken: boolean;
}

export interface SmtpCounterpart {
  readonly port: number;
  /** Bodies that were read to their final dot, taken or not. */
  readonly messages: readonly SmtpMessage[];
  connections(): { readonly total: number; readonly open: number };
  /** The fault of each next connection: in order and then none, or as a script draws them. */
  script(
    faults: readonly (SmtpFault | undefined)[] | SmtpFaultScript,
    options?: { readonly repeat?: boolean },
  ): void;
  stop(): Promise<void>;
}

export async function startSmtpCounterpart(): Promise<SmtpCounterpart> {
  const messages: SmtpMessage[] = [];
  const sockets = new Set<Socket>();
  let script: SmtpFaultScript = { next: () => undefined };
  let total = 0;

  const server = createServer((socket) => {
    total += 1;
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
    converse(socket, script.next(), messages);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');

  return {
    port: (server.address() as AddressInfo).port,
    messages,
    connections: () => ({ total, open: sockets.size }),
    script(next, { repeat = false } = {}) {
      if (!Array.isArray(next)) {
        script = next as SmtpFaultScript;
        return;
      }
      const faults = [...(next as readonly (SmtpFault | undefined)[])];
      script = { next: () => (repeat ? faults[0] : faults.shift()) };
    },
    async stop() {
      const closed = once(server, 'close');
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

function converse(socket: Socket, fault: SmtpFault | undefined, messages: SmtpMessage[]): void {
  /** True: the fault has happened, and the conversation goes no further. */
  const fails = (phase: SmtpPhase): boolean => {
    if (fault?.at !== phase) return false;
    misbehave(socket, fault.does);
    return typeof fault.does === 'string';
  };
  const say = (phase: SmtpPhase, reply: string): void => {
    if (fault?.at === phase && typeof fault.does === 'object') {
      socket.write(`${fault.does.reply}\r\n`);
      if (fault.does.reply.startsWith('421')) socket.end();
    } else if (!fails(phase)) socket.write(`${reply}\r\n`);
  };

  if (fails('connect')) return;
  say('greeting', '220 counterpart ESMTP');
  let from = '';
  let to: string[] = [];
  let body: string | undefined;
  let unread = '';

  socket.on('data', (bytes) => {
    unread += bytes.toString('latin1');
    for (;;) {
      if (body !== undefined) {
        const end = `\r\n${unread}`.indexOf('\r\n.\r\n');
        if (end < 0) return;
        body = unread.slice(0, end);
        unread = unread.slice(end + 3);
        const message: SmtpMessage = { from, to, raw: body.replace(/^\.\./gm, '.'), taken: false };
        messages.push(message);
        body = undefined;
        message.taken = fault?.at !== 'body';
        say('body', '250 2.0.0 taken');
        continue;
      }
      const end = unread.indexOf('\r\n');
      if (end < 0) return;
      const line = unread.slice(0, end);
      unread = unread.slice(end + 2);
      const command = line.slice(0, 4).toUpperCase();
      if (command === 'EHLO') say('ehlo', '250-counterpart\r\n250 8BITMIME');
      else if (command === 'MAIL') {
        from = /<(.*?)>/.exec(line)?.[1] ?? '';
        to = [];
        say('mail', '250 2.1.0 ok');
      } else if (command === 'RCPT') {
        to = [...to, /<(.*?)>/.exec(line)?.[1] ?? ''];
        say('rcpt', '250 2.1.5 ok');
      } else if (command === 'DATA') {
        if (fault?.at === 'data') say('data', '');
        else {
          body = '';
          socket.write('354 go on\r\n');
        }
      } else if (command === 'QUIT') socket.end('221 bye\r\n');
      else socket.write('250 ok\r\n');
    }
  });
}

function misbehave(socket: Socket, does: SmtpFault['does']): void {
  if (does === 'close') socket.end();
  else if (does === 'reset') socket.resetAndDestroy();
  else if (does === 'drip') {
    const drip = setInterval(() => socket.write('2'), 1_000);
    socket.on('close', () => clearInterval(drip));
  }
}
