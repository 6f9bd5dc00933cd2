/** Checks of what callers bring: ids, posts, limits. Each refusal names the field, the value and what was expected. */
import { invalidInput } from '../errors.js';
import type { JsonValue } from '../queue/index.js';
import type { NewPost } from './post.js';

const idCharactersMax = 128;
const textCharactersMax = 10_000;
const dataBytesMax = 32 * 1024;
// A lone half of a surrogate pair: Postgres would store U+FFFD in its place without a word.
const loneSurrogate = /[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/;

export function characterFault(value: string): string | undefined {
  if (value.includes('\0')) return 'no NUL character';
  if (loneSurrogate.test(value)) return 'no lone surrogate';
  return undefined;
}

function boundedString(field: string, value: unknown, charactersMax: number): string {
  const expected = `a string of 1 to ${charactersMax} characters`;
  if (typeof value !== 'string' || value.length === 0) throw invalidInput(field, value, expected);
  // A character is a code point: an emoji counts once.
  if (value.length > charactersMax && [...value].length > charactersMax)
    throw invalidInput(field, value, expected);
  const fault = characterFault(value);
  if (fault !== undefined) throw invalidInput(field, value, `${expected} with ${fault}`);
  return value;
}

/** An account's id: any string of 1 to 128 characters without NUL and lone surrogates. */
export function accountId(field: string, value: unknown): string {
  return boundedString(field, value, idCharactersMax);
}

/** A post's id: decimal digits that fit 63 bits. */
export function postId(field: string, value: unknown): string {
  const expected = 'the id of a post: 19 digits';
  if (typeof value !== 'string' || !/^\d{19}$/.test(value)) throw invalidInput(field, value, expected);
  if (BigInt(value) > 9_223_372_036_854_775_807n) throw invalidInput(field, value, expected);
  return value;
}

export function pageLimit(value: unknown, { fallback, max }: { fallback: number; max: number }): number {
  if (value === undefined) return fallback;
  if (typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= max) return value;
  throw invalidInput('limit', value, `a whole number from 1 to ${max}`);
}

export function postText(value: unknown): string {
  return boundedString('text', value, textCharactersMax);
}

/** The JSON text of `data`. */
export function postData(value: JsonValue): string {
  let json: string | undefined;
  try {
    json = JSON.stringify(value);
  } catch {
    json = undefined;
  }
  if (json === undefined) throw invalidInput('data', value, 'a JSON value');
  if (Buffer.byteLength(json) > dataBytesMax)
    throw invalidInput('data', value, `at most ${dataBytesMax} bytes as JSON`);
  return json;
}

/** A post ready to be stored. */
export interface ParsedPost {
  readonly author: string;
  readonly key: string | null;
  readonly text: string | null;
  readonly data: string | null;
  readonly visibility: 'public' | 'followers';
  readonly repostOf: string | null;
  readonly createdAt: number | null;
}

export function newPost(post: NewPost): ParsedPost {
  if (typeof post !== 'object' || post === null) throw invalidInput('post', post, 'an object');
  const { visibility = 'public', createdAt } = post;
  if (visibility !== 'public' && visibility !== 'followers')
    throw invalidInput('visibility', visibility, 'public or followers');
  if (createdAt !== undefined && !(Number.isSafeInteger(createdAt) && createdAt >= -8_640_000_000_000_000)) {
    throw invalidInput('createdAt', createdAt, 'unix milliseconds');
  }
  const parsed = {
    author: accountId('author', post.author),
    key: post.key === undefined ? null : boundedString('key', post.key, idCharactersMax),
    text: post.text === undefined ? null : postText(post.text),
    data: post.data === undefined ? null : postData(post.data),
    visibility,
    repostOf: post.repostOf === undefined ? null : postId('repostOf', post.repostOf),
    createdAt: createdAt ?? null,
  };
  const hasBody = parsed.text !== null || parsed.data !== null;
  if (parsed.repostOf === null && !hasBody) throw invalidInput('text', post.text, 'text, data or repostOf');
  if (parsed.repostOf !== null && hasBody)
    throw invalidInput('repostOf', post.repostOf, 'neither text nor data beside it');
  if (parsed.repostOf !== null && visibility !== 'public')
    throw invalidInput('visibility', visibility, 'public for a repost');
  return parsed;
}
