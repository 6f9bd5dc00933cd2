/**
 * Server-sent events: one bounded set of open streams. A stream that does not take what it is sent is ended instead of
 * buffered, and all end when the server stops.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';

export interface Stream {
  /** False once the client has gone. */
  readonly open: boolean;
  send(event: string, data: unknown): void;
  onClose(listener: () => void): void;
}

export interface Live {
  /** Takes the reply over and opens a stream on it. */
  open(request: FastifyRequest, reply: FastifyReply): Stream;
  close(): void;
}

/** What may wait in one connection; an overview is about 2 KB, so this is over a minute of silence. */
const bufferedBytesMax = 256 * 1024;
/** Proxies cut connections that say nothing for a minute. */
const keepAliveMs = 20_000;

export function createLive(): Live {
  const closers = new Set<() => void>();
  return {
    open(request, reply) {
      reply.hijack();
      const socket = reply.raw;
      socket.writeHead(200, {
        'content-type': 'text/event-stream; charset=utf-8',
        'cache-control': 'no-store',
        'x-content-type-options': 'nosniff',
        connection: 'keep-alive',
      });
      socket.write('retry: 1000\n\n');
      const listeners: (() => void)[] = [];
      let open = true;
      const end = (): void => {
        if (!open) return;
        open = false;
        clearInterval(keepAlive);
        closers.delete(end);
        for (const listener of listeners) listener();
        socket.destroy();
      };
      const write = (text: string): void => {
        if (!open) return;
        if (socket.writableLength > bufferedBytesMax) end();
        else socket.write(text);
      };
      const keepAlive = setInterval(() => write(': alive\n\n'), keepAliveMs);
      closers.add(end);
      request.raw.on('close', end);
      socket.on('error', end);
      return {
        get open() {
          return open;
        },
        send: (event, data) => write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`),
        onClose: (listener) => (open ? void listeners.push(listener) : listener()),
      };
    },
    close() {
      for (const end of closers) end();
    },
  };
}
