/**
 * Whether this page is signed in. The key goes to the server once and is kept nowhere here: what stays is a cookie that no
 * script can read.
 */
import { signal } from '@preact/signals';
import { call, whenUnauthorized } from './api.js';

export type Session =
  | { readonly kind: 'unknown' }
  | { readonly kind: 'signed-out' }
  /** `required`: there is something to sign out of. */
  | { readonly kind: 'signed-in'; readonly required: boolean };

interface Answer {
  readonly required: boolean;
  readonly scope?: string;
}

export const session = signal<Session>({ kind: 'unknown' });

whenUnauthorized(() => {
  session.value = { kind: 'signed-out' };
});

function take({ required, scope }: Answer): void {
  session.value = scope === undefined ? { kind: 'signed-out' } : { kind: 'signed-in', required };
}

/** A server that cannot be reached is left to the pages, which say so and keep trying. */
export async function askSession(): Promise<void> {
  try {
    take(await call<Answer>('/v1/session'));
  } catch {
    session.value = { kind: 'signed-in', required: false };
  }
}

/** Throws an ApiProblem for a key that the server does not know. */
export async function signIn(key: string): Promise<void> {
  take(await call<Answer>('/v1/session', { method: 'POST', body: { key } }));
}

export async function signOut(): Promise<void> {
  try {
    await call<Answer>('/v1/session', { method: 'DELETE' });
  } finally {
    // What was read stays in memory otherwise.
    location.reload();
  }
}
