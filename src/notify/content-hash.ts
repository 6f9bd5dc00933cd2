/** Tells a repeat from a conflict: the same data and destinations give the same hash, whatever the order of their keys. */
import { createHash } from 'node:crypto';

/** JSON with the keys of every object in order. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );
}

/** The salt is the notification's own: without it the hash of a short secret could be tried out. */
export function contentHash(salt: string, content: unknown): string {
  return createHash('sha256').update(salt).update('\0').update(canonicalJson(content)).digest('base64url');
}
