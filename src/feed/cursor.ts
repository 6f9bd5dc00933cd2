/**
 * Cursors: opaque strings made of a position in one kind of list. A cursor is a position and never a rank, so it stays
 * valid for ever; one of another list, with a changed character or made up is refused by name and never gives a silent page.
 */
import { createHash } from 'node:crypto';
import { feedError } from './errors.js';

export type CursorKind = 'home' | 'ranked' | 'posts' | 'accounts';

const letters: Readonly<Record<CursorKind, string>> = { home: 'h', ranked: 'r', posts: 'p', accounts: 'a' };

/** What positions look like: a sum is no signature, anybody can make one. */
const shapes: Readonly<Record<CursorKind, RegExp>> = {
  home: /^\d{1,19}$/,
  ranked: /^\d{1,19}\.\d{1,9}$/,
  posts: /^\d{1,19}$/,
  accounts: /^\d{1,19}$/,
};
const largestBigint = 9_223_372_036_854_775_807n;

function isPosition(kind: CursorKind, position: string): boolean {
  return shapes[kind].test(position) && position.split('.').every((part) => BigInt(part) <= largestBigint);
}

function checksum(text: string): string {
  return createHash('sha256').update(text).digest('base64url').slice(0, 6);
}

/** `position` holds the kind's own fields joined by dots: a post id, or account numbers and times. */
export function encodeCursor(kind: CursorKind, position: string): string {
  const text = `${letters[kind]}${position}`;
  return Buffer.from(`${text}~${checksum(text)}`).toString('base64url');
}

/** Throws `cursor-invalid` naming `field`. */
export function decodeCursor(kind: CursorKind, field: string, cursor: unknown): string {
  const refuse = (why: string) =>
    feedError('cursor-invalid', `${field}: ${why}`, {
      field,
      value: cursor,
      expected: `a cursor of this list`,
    });
  if (typeof cursor !== 'string') throw refuse('a cursor is a string');
  const decoded = Buffer.from(cursor, 'base64url');
  // Base64 ignores what does not belong; only the one spelling that was given out is taken.
  if (decoded.toString('base64url') !== cursor) throw refuse('this cursor has been changed');
  const [text = '', sum] = decoded.toString('latin1').split('~');
  if (sum !== checksum(text)) throw refuse('this cursor has been changed');
  if (text[0] !== letters[kind]) throw refuse('this cursor belongs to another list');
  const position = text.slice(1);
  if (!isPosition(kind, position)) throw refuse('this cursor stands nowhere');
  return position;
}
