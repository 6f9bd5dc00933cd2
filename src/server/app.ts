/**
 * The HTTP server: validation, errors, access and documents in one place; the routes are plug-ins that speak to the
 * parts only. Guarantees that /health answers from the first moment, that /v1 answers `not-ready` until the parts
 * stand, and that stop() ends within its deadline whatever clients hold open.
 */
import { Ajv } from 'ajv';
import formats from 'ajv-formats';
import Fastify, { type FastifyInstance, type FastifyRequest } from 'fastify';
import type { Component } from '../lifecycle.js';
import { silentLog, type Log } from '../log.js';
import { invalidInput } from '../errors.js';
import { checkAccess, checkOrigin, isLoopbackHost, type ApiKey } from './auth.js';
import { createLive, type Live } from './live.js';
import { createPrometheus } from './metrics.js';
import { registerErrorsPage, type ErrorTables } from './errors-page.js';
import { registerDocument } from './openapi.js';
import { problemHandler, serverError } from './problem.js';
import { registerDashboard } from './dashboard.js';
import { routes } from './routes/index.js';
import { problemSchema } from './schemas.js';
import type { ServerParts } from './parts.js';

export interface ServerOptions {
  readonly parts: ServerParts;
  /** Default 4400; 0 takes a free one. */
  readonly port?: number;
  /** Default 127.0.0.1; another address needs API keys. */
  readonly host?: string;
  readonly apiKeys?: readonly ApiKey[];
  /** Folder of the built dashboard; without it the server has no page. */
  readonly dashboardFolder?: string;
  /** Codes of the stores that the parts run on, by name, for the page of errors. */
  readonly storeErrors?: ErrorTables;
  readonly log?: Log;
}

export interface Server extends Component {
  /** `http://127.0.0.1:4400`, once started. */
  address(): string;
}

const bodyBytesMax = 1024 * 1024;
/** 200 characters, each at most 12 bytes when percent-encoded. */
const paramCharactersMax = 200 * 12;

/** Bodies are taken as they are; what stands in the URL is text and is read as the number it says. */
function useValidators(app: FastifyInstance): void {
  const options = {
    allErrors: false,
    useDefaults: true,
    removeAdditional: false,
    verbose: true,
    strict: false,
  } as const;
  const ofBody = new Ajv({ ...options, coerceTypes: false });
  const ofUrl = new Ajv({ ...options, coerceTypes: true });
  for (const ajv of [ofBody, ofUrl]) (formats as unknown as (ajv: Ajv) => void)(ajv);
  app.setValidatorCompiler(({ schema, httpPart }) =>
    (httpPart === 'body' ? ofBody : ofUrl).compile(schema as object),
  );
}

/** A packed body would be told to be no JSON, which leads nobody to the reason. */
function refusePacked({ headers }: FastifyRequest): void {
  const coding = headers['content-encoding'];
  if (coding === undefined || coding === 'identity') return;
  throw serverError('unsupported-media-type', 'the body must not be compressed', {
    field: 'content-encoding',
    value: coding,
    expected: 'no compression of the body',
  });
}

function guard(app: FastifyInstance, { parts, apiKeys = [] }: ServerOptions): void {
  app.addHook('onRequest', async (request) => {
    const { access } = request.routeOptions.config;
    refusePacked(request);
    if (access !== 'open') checkOrigin(request, { loopbackOnly: apiKeys.length === 0 });
    if (!request.url.startsWith('/v1/')) return;
    if (apiKeys.length > 0 && access === undefined) checkAccess(request, apiKeys);
    if (!parts.readiness().serving && request.routeOptions.config.early !== true) {
      throw serverError('not-ready', 'the server is starting; ask /ready');
    }
  });
  app.addHook('onSend', async (_request, reply) => {
    reply.header('x-content-type-options', 'nosniff');
    reply.header('referrer-policy', 'no-referrer');
    reply.header('x-frame-options', 'DENY');
  });
}

function buildApp(options: ServerOptions, live: Live): FastifyInstance {
  const log = options.log ?? silentLog;
  const app = Fastify({
    bodyLimit: bodyBytesMax,
    forceCloseConnections: true,
    // Names like any other, in payloads and metadata: JSON.parse makes plain properties of them.
    onProtoPoisoning: 'ignore',
    onConstructorPoisoning: 'ignore',
    routerOptions: { maxParamLength: paramCharactersMax },
    frameworkErrors: (error, request, reply) => problemHandler(log)(error, request, reply),
  });
  app.removeContentTypeParser('text/plain');
  useValidators(app);
  app.setErrorHandler(problemHandler(log));
  app.setNotFoundHandler((request) => {
    throw serverError('not-found', `there is no ${request.method} ${request.url.split('?')[0]}`);
  });
  guard(app, options);
  app.addSchema(problemSchema);
  registerDocument(app);
  registerErrorsPage(app, options.storeErrors);
  app.register(async (scope) => {
    for (const register of routes)
      await register(scope, { parts: options.parts, live, apiKeys: options.apiKeys ?? [] });
  });
  if (options.dashboardFolder) registerDashboard(app, options.dashboardFolder);
  return app;
}

/**
 * Makes the server over the parts it is given.
 *
 * @throws `invalid-input` for a host that is not loopback without API keys.
 */
export function createServer(options: ServerOptions): Server {
  const { port = 4400, host = '127.0.0.1', apiKeys = [] } = options;
  if (apiKeys.length === 0 && !isLoopbackHost(host)) {
    throw invalidInput(
      'host',
      host,
      'a loopback address, or API keys (HEADGATE_API_KEYS) to guard another one',
    );
  }
  let app: FastifyInstance | undefined;
  let live: Live | undefined;

  return {
    async start() {
      if (app) return;
      live = createLive();
      app = buildApp(options, live);
      try {
        await app.listen({ port, host });
      } catch (error) {
        app = undefined;
        throw (error as NodeJS.ErrnoException).code === 'EADDRINUSE'
          ? invalidInput('port', port, 'a free port (another program listens on this one)')
          : error;
      }
    },
    async stop() {
      const stopping = app;
      app = undefined;
      live?.close();
      await stopping?.close();
    },
    address() {
      const bound = app?.addresses()[0];
      if (!bound || typeof bound === 'string')
        throw serverError('not-ready', 'the server has not been started');
      return `http://${bound.family === 'IPv6' ? `[${bound.address}]` : bound.address}:${bound.port}`;
    },
  };
}

/** The OpenAPI document as /openapi.json serves it, made without starting anything. */
export async function openApiDocument(): Promise<object> {
  const never = (): never => {
    throw serverError('not-ready', 'only the document is served here');
  };
  const parts: ServerParts = {
    queue: never,
    feed: never,
    notify: never,
    notifyPublicUrl: () => undefined,
    prometheus: createPrometheus({ processMetrics: false }),
    readiness: () => ({ serving: false, ready: false, stage: 'document', progress: undefined }),
    durability: () => '',
  };
  const app = buildApp({ parts }, createLive());
  await app.ready();
  const document = app.swagger();
  await app.close();
  return document;
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The route answers while the server is still starting. */
    early?: boolean;
  }
}
