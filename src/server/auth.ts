/**
 * Who may call. Without keys the server answers on loopback only and only to requests that name it by a loopback Host
 * (and Origin, where a browser sends one), so that a web page cannot reach it by a rebound name. With keys every /v1
 * request needs one whose scope covers it; keys are kept as hashes and compared in constant time.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import { invalidInput } from '../errors.js';
import { serverError } from './problem.js';

/** `admin` may do everything, `write` all but operating, `read` only reads. */
export type Scope = 'admin' | 'write' | 'read';

export interface ApiKey {
  readonly scope: Scope;
  readonly secretHash: Buffer;
}

const scopes: readonly string[] = ['admin', 'write', 'read'] satisfies Scope[];
const rank: Readonly<Record<Scope, number>> = { read: 0, write: 1, admin: 2 };
const hash = (secret: string) => createHash('sha256').update(secret).digest();

/** Parses `scope:secret,scope:secret` (HEADGATE_API_KEYS); a secret has at least 16 characters. */
export function parseApiKeys(text: string): ApiKey[] {
  return text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '')
    .map((part, index) => {
      const colon = part.indexOf(':');
      const scope = part.slice(0, Math.max(colon, 0));
      const secret = part.slice(colon + 1);
      const field = `HEADGATE_API_KEYS[${index}]`;
      if (!scopes.includes(scope))
        throw invalidInput(field, scope, `scope:secret with one of the scopes ${scopes.join(', ')}`);
      if (secret.length < 16) throw invalidInput(field, '(a secret)', 'a secret of at least 16 characters');
      return { scope: scope as Scope, secretHash: hash(secret) };
    });
}

export function isLoopbackHost(host: string): boolean {
  return host === 'localhost' || host === '::1' || host === '[::1]' || /^127(\.\d{1,3}){3}$/.test(host);
}

function nameOf(hostAndPort: string): string {
  return hostAndPort.replace(/:\d+$/, '').toLowerCase();
}

/** Refuses a request that did not mean this server: a foreign Host, or an Origin of another site. */
export function checkOrigin(request: FastifyRequest, { loopbackOnly }: { loopbackOnly: boolean }): void {
  const host = request.headers.host ?? '';
  if (loopbackOnly && !isLoopbackHost(nameOf(host))) {
    throw serverError('forbidden', 'this server answers to loopback names only', {
      field: 'host',
      value: host,
      expected: 'localhost or 127.0.0.1',
    });
  }
  const origin = request.headers.origin;
  if (origin === undefined) return;
  const originHost = URL.canParse(origin) ? new URL(origin).host : '';
  if (originHost.toLowerCase() !== host.toLowerCase()) {
    throw serverError('forbidden', 'a page of another origin may not call this server', {
      field: 'origin',
      value: origin,
      expected: `the origin of ${host}`,
    });
  }
}

function neededScope(request: FastifyRequest): Scope {
  const isRead = request.method === 'GET' || request.method === 'HEAD';
  const isOperating = request.routeOptions.config.admin === true;
  if (isOperating) return 'admin';
  return isRead ? 'read' : 'write';
}

/** Checks the bearer key of a request against the configured ones. */
export function checkKey(request: FastifyRequest, keys: readonly ApiKey[]): void {
  const [scheme, secret] = (request.headers.authorization ?? '').split(' ');
  const given = scheme?.toLowerCase() === 'bearer' && secret ? hash(secret) : undefined;
  const matching = given && keys.filter((key) => timingSafeEqual(key.secretHash, given))[0];
  if (!matching)
    throw serverError('unauthorized', 'an API key is needed: Authorization: Bearer KEY', {
      field: 'authorization',
    });
  const needed = neededScope(request);
  if (rank[matching.scope] < rank[needed]) {
    throw serverError('forbidden', `this key has the scope ${matching.scope}, the route needs ${needed}`, {
      field: 'authorization',
    });
  }
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The route is for operators: it needs a key of scope admin. */
    admin?: boolean;
  }
}
