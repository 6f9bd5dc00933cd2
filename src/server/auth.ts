/**
 * Who may call. Without keys the server answers on loopback only and only to requests that name it by a loopback Host
 * (and Origin, where a browser sends one), so that a web page cannot reach it by a rebound name. With keys every /v1
 * request needs one whose scope covers it, as a bearer or by the session of a page that signed in with it; keys are kept
 * as hashes and compared in constant time.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import { invalidInput } from '../errors.js';
import { serverError } from './problem.js';
import { sessionKey } from './session.js';

/** `admin` may do everything, `write` all but operating, `read` only reads, `read:own` only what belongs to one owner. */
export type Scope = 'admin' | 'write' | 'read' | 'read:own';

export interface ApiKey {
  readonly scope: Scope;
  readonly secretHash: Buffer;
  /** For `read:own`: the account or user whose things may be read. */
  readonly owner?: string;
}

const scopes: readonly string[] = ['admin', 'write', 'read'] satisfies Scope[];
const rank: Readonly<Record<Scope, number>> = { 'read:own': -1, read: 0, write: 1, admin: 2 };
const hash = (secret: string) => createHash('sha256').update(secret).digest();

/**
 * Parses `scope:secret,scope:secret` (HEADGATE_API_KEYS), where a scope is admin, write, read, or `read:own=OWNER` with the
 * owner percent-encoded; a secret has at least 16 characters.
 */
export function parseApiKeys(text: string): ApiKey[] {
  return text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '')
    .map((part, index) => parseApiKey(part, `HEADGATE_API_KEYS[${index}]`));
}

function parseApiKey(part: string, field: string): ApiKey {
  const own = /^read:own=([^:]+):(.*)$/.exec(part);
  const colon = part.indexOf(':');
  const scope = own ? 'read:own' : part.slice(0, Math.max(colon, 0));
  const secret = own ? (own[2] as string) : part.slice(colon + 1);
  if (!own && !scopes.includes(scope))
    throw invalidInput(
      field,
      scope,
      `scope:secret with one of the scopes ${scopes.join(', ')}, read:own=OWNER`,
    );
  if (secret.length < 16) throw invalidInput(field, '(a secret)', 'a secret of at least 16 characters');
  const key = { scope: scope as Scope, secretHash: hash(secret) };
  return own ? { ...key, owner: ownerOf(own[1] as string, field) } : key;
}

function ownerOf(text: string, field: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw invalidInput(field, text, 'an owner that is percent-encoded');
  }
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

const isRead = ({ method }: FastifyRequest): boolean => method === 'GET' || method === 'HEAD';

function neededScope(request: FastifyRequest): Scope {
  if (request.routeOptions.config.admin === true) return 'admin';
  return isRead(request) ? 'read' : 'write';
}

/** The configured key that has this secret. */
export function keyOf(secret: string, keys: readonly ApiKey[]): ApiKey | undefined {
  const given = hash(secret);
  return keys.filter((key) => timingSafeEqual(key.secretHash, given))[0];
}

/**
 * The key that a request is made with. A session counts for reads, and for changes only with an Origin, which browsers
 * send with every change and `checkOrigin` has compared: a form of another site gets nothing done.
 */
export function requestKey(request: FastifyRequest, keys: readonly ApiKey[]): ApiKey | undefined {
  if (request.headers.authorization !== undefined) {
    const [scheme, secret] = request.headers.authorization.split(' ');
    return scheme?.toLowerCase() === 'bearer' && secret ? keyOf(secret, keys) : undefined;
  }
  const key = sessionKey(request.headers.cookie, keys);
  if (key !== undefined && !isRead(request) && request.headers.origin === undefined)
    throw serverError('forbidden', 'a change with a session comes from a page, and this has no Origin', {
      field: 'origin',
    });
  return key;
}

/** What belongs to one account or user, by its path. */
function ownerOfRoute({ params }: FastifyRequest): string | undefined {
  const { account, user } = (params ?? {}) as { account?: string; user?: string };
  return account ?? user;
}

/** Checks that the key of a request covers what it asks for. */
export function checkAccess(request: FastifyRequest, keys: readonly ApiKey[]): void {
  const matching = requestKey(request, keys);
  if (!matching)
    throw serverError('unauthorized', 'an API key is needed: Authorization: Bearer KEY', {
      field: 'authorization',
    });
  const needed = neededScope(request);
  if (matching.scope === 'read:own' && needed === 'read' && ownerOfRoute(request) === matching.owner) return;
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
    /**
     * Needs no key: `open` is for requests from outside that prove themselves in another way, `page` is for our own pages
     * before they have signed in.
     */
    access?: 'open' | 'page';
  }
}
