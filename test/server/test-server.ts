/** A whole server for tests: the newest PostgreSQL of the run, real workers, a free port, plain calls. */
import type { NotifyConfiguration } from '../../src/cli/notify/load.js';
import { wire } from '../../src/cli/wire.js';
import { silentLog } from '../../src/log.js';
import { createPrometheus, createServer, type ServerOptions } from '../../src/server/index.js';
import { testServers } from '../database/test-databases.js';

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  // oxlint-disable-next-line typescript/no-explicit-any -- answers are looked at by tests only
  readonly body: any;
}

export interface TestServer {
  readonly address: string;
  call(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>;
  /** Sends the body as it is. */
  raw(method: string, path: string, body?: string, headers?: Record<string, string>): Promise<Answer>;
  stop(): Promise<void>;
}

export async function startTestServer(
  options: Partial<Pick<ServerOptions, 'apiKeys'>> & { readonly notify?: NotifyConfiguration } = {},
): Promise<TestServer> {
  const database = testServers().at(-1);
  if (!database) throw new Error('no PostgreSQL was found for the tests');
  const prometheus = createPrometheus({ processMetrics: false });
  const parts = await wire(
    { databaseUrl: await database.url(), dataFolder: '' },
    { log: silentLog, metrics: prometheus.backend, notify: options.notify },
  );
  await parts.workers.start();
  const server = createServer({
    ...(options.apiKeys === undefined ? {} : { apiKeys: options.apiKeys }),
    port: 0,
    parts: {
      queue: () => parts.queue,
      feed: () => parts.feed,
      notify: () => parts.notify,
      notifyPublicUrl: () => parts.notifyPublicUrl,
      prometheus,
      readiness: () => ({ serving: true, ready: true, stage: 'ready', progress: undefined }),
      durability: () => parts.durability,
    },
  });
  await server.start();
  const address = server.address();

  const raw: TestServer['raw'] = async (method, path, body, headers = {}) => {
    const response = await fetch(`${address}${path}`, {
      method,
      headers,
      ...(body === undefined ? {} : { body }),
    });
    const text = await response.text();
    const isJson = (response.headers.get('content-type') ?? '').includes('json');
    return { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : text };
  };
  return {
    address,
    raw,
    call: (method, path, body, headers = {}) =>
      body === undefined
        ? raw(method, path, undefined, headers)
        : raw(method, path, JSON.stringify(body), { 'content-type': 'application/json', ...headers }),
    async stop() {
      await server.stop();
      await parts.stop();
    },
  };
}
