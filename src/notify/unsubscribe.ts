/**
 * One-click unsubscribe (RFC 8058): a link that only this installation can make, for one user, kind and channel. Answer
 * its POST by `people.unsubscribe(token)`; a GET shows a page and changes nothing, because scanners follow links.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { notifyError } from './errors.js';
import type { Channel } from './notification.js';

export interface UnsubscribeOptions {
  /** The public URL; the token is added as `token`. */
  readonly url: string;
  /** Signs the tokens, which do not end: keep it. At least 16 characters. */
  readonly secret: string;
}

export interface Subscription {
  readonly user: string;
  readonly kind: string;
  readonly channel: Channel;
}

export interface Unsubscribe {
  url(subscription: Subscription): string;
  /** Throws `token-invalid` for a token that was not made here. */
  read(token: string): Subscription;
}

export function createUnsubscribe({ url, secret }: UnsubscribeOptions): Unsubscribe {
  const sign = (body: string): string => createHmac('sha256', secret).update(body).digest('base64url');
  return {
    url({ user, kind, channel }) {
      const body = Buffer.from(JSON.stringify([user, kind, channel])).toString('base64url');
      const link = new URL(url);
      link.searchParams.set('token', `${body}.${sign(body)}`);
      return link.href;
    },
    read(token) {
      const [body = '', signature = ''] = String(token).split('.');
      const [given, expected] = [Buffer.from(signature), Buffer.from(sign(body))];
      if (given.byteLength !== expected.byteLength || !timingSafeEqual(given, expected))
        throw notifyError('token-invalid', 'the unsubscribe token is not valid');
      const [user, kind, channel] = JSON.parse(Buffer.from(body, 'base64url').toString()) as [
        string,
        string,
        Channel,
      ];
      return { user, kind, channel };
    },
  };
}
