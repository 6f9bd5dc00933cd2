/**
 * Lease tokens: the lease that stands in the row (`requestId.nonce`, of a whole dequeue) and the message's seq, so that
 * a holder's message is found by its primary key. The nonce is random: no store that lost something gives it out again.
 */
import { randomToken } from '../../ids.js';

export const newNonce = (): string => randomToken().slice(0, 12);

export const leaseToken = (lease: string, seq: string): string => `${lease}.${seq}`;

/** Undefined for what cannot be a token of ours. */
export function parseLeaseToken(token: string): { readonly lease: string; readonly seq: string } | undefined {
  if (!/^[\w-]+\.[\w-]+\.[1-9]\d{0,18}$/.test(token)) return undefined;
  const end = token.lastIndexOf('.');
  return { lease: token.slice(0, end), seq: token.slice(end + 1) };
}
