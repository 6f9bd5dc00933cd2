/**
 * Sessions of pages that signed in with an API key: a cookie that no script can read, signed with the hash of that key.
 * Guarantees: it never holds the key, it ends by itself, it ends with its key, and every server process with the same
 * keys understands it.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { ApiKey } from './auth.js';

export const sessionCookie = 'headgate_session';
/** A working day; signing in again costs one paste. */
export const sessionSeconds = 12 * 3_600;

const sign = (body: string, key: ApiKey): Buffer =>
  createHmac('sha256', key.secretHash).update(`session ${body}`).digest();

/** The value of the cookie. */
export function sessionOf(key: ApiKey, nowMs = Date.now()): string {
  const body = String(Math.floor(nowMs / 1_000) + sessionSeconds);
  return `${body}.${sign(body, key).toString('base64url')}`;
}

/** The configured key whose session the Cookie header carries; undefined when there is none, or it has ended. */
export function sessionKey(
  header: string | undefined,
  keys: readonly ApiKey[],
  nowMs = Date.now(),
): ApiKey | undefined {
  const value = header
    ?.split(';')
    .map((pair) => pair.trim())
    .find((pair) => pair.startsWith(`${sessionCookie}=`))
    ?.slice(sessionCookie.length + 1);
  const [body = '', signature = ''] = value?.split('.') ?? [];
  if (!/^\d{1,12}$/.test(body) || Number(body) * 1_000 <= nowMs) return undefined;
  const given = Buffer.from(signature, 'base64url');
  return keys.find((key) => {
    const expected = sign(body, key);
    return given.byteLength === expected.byteLength && timingSafeEqual(given, expected);
  });
}

/** The Set-Cookie header; an empty value ends the session. `secure`: the page came over TLS. */
export function sessionHeader(value: string, { secure }: { readonly secure: boolean }): string {
  const parts = [
    `${sessionCookie}=${value}`,
    'Path=/',
    'HttpOnly',
    'SameSite=Strict',
    `Max-Age=${value === '' ? 0 : sessionSeconds}`,
  ];
  return [...parts, ...(secure ? ['Secure'] : [])].join('; ');
}
