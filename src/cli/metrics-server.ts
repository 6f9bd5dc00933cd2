/**
 * /metrics and /health of a process that serves nothing else. Guarantees that it answers from the first moment, whatever
 * the database does, that both are read only, and that it closes at once.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { invalidInput } from '../errors.js';
import type { Component } from '../lifecycle.js';
import type { Prometheus } from '../server/index.js';
import { version } from '../version.js';
import type { MetricsConfig } from './config.js';

export interface MetricsServer extends Component {
  /** `http://127.0.0.1:9400`, once started. */
  address(): string;
}

/** What `/health` of `headgate serve` tells of these. */
export interface Health {
  readonly durability: string;
  /** Undefined: in a table of the database, or not known yet. */
  readonly timelines: { readonly store: string; readonly away: boolean } | undefined;
}

export function createMetricsServer(
  { port, host }: MetricsConfig,
  { prometheus, health }: { readonly prometheus: Prometheus; readonly health: () => Health },
): MetricsServer {
  const server = createServer((request, response) => void respond(request, response));

  async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const isRead = request.method === 'GET' || request.method === 'HEAD';
    const { status, type, text } = await answer(isRead ? request.url?.split('?')[0] : undefined).catch(
      () => ({ status: 500, type: 'text/plain', text: 'the metrics could not be read\n' }),
    );
    response.writeHead(status, { 'content-type': type, 'x-content-type-options': 'nosniff' });
    response.end(request.method === 'HEAD' ? undefined : text);
  }

  async function answer(path: string | undefined) {
    if (path === '/metrics')
      return { status: 200, type: prometheus.contentType, text: await prometheus.text() };
    if (path === '/health') {
      const text = JSON.stringify({ status: 'ok', version, ...health() });
      return { status: 200, type: 'application/json; charset=utf-8', text };
    }
    return { status: 404, type: 'text/plain', text: 'GET /metrics or /health\n' };
  }

  return {
    start: () =>
      new Promise((resolve, reject) => {
        server.once('error', (error: NodeJS.ErrnoException) => {
          reject(
            error.code === 'EADDRINUSE'
              ? invalidInput('--metrics-port', port, 'a free port (another program listens on this one)')
              : error,
          );
        });
        server.listen(port, host, resolve);
      }),
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
    address() {
      const bound = server.address() as AddressInfo;
      return `http://${bound.family === 'IPv6' ? `[${bound.address}]` : bound.address}:${bound.port}`;
    },
  };
}
