/**
 * Follows and posts out of files: edge lists, CSV and JSON lines. A line that cannot be used is handed to `onBadLine`
 * with its number and what was expected, and the next one is read; whoever is told decides when it is enough.
 */
import { HeadgateError, invalidInput } from '../errors.js';
import { type Line, readLines } from './import-lines.js';
import type { NewPost } from './post.js';
import { accountId, newPost } from './validate.js';

/**
 * edges: two ids separated by tab, space or comma, `#` begins a comment. csv: two fields, quoted where they hold commas;
 * a first line `follower,followee` is a header. jsonl: `["ada","ben"]` or `{"follower":"ada","followee":"ben"}` a line.
 */
export type FollowFormat = 'edges' | 'csv' | 'jsonl';

export const followFormats: readonly FollowFormat[] = ['edges', 'csv', 'jsonl'];

export interface BadLine {
  /** From 1. */
  readonly line: number;
  /** What is wrong with it. */
  readonly fault: string;
}

/** May throw to end the reading. */
export type OnBadLine = (bad: BadLine) => void;

type Pair = readonly [follower: string, followee: string];

/** Pairs of [follower, followee], ready for `feed.importFollows`. */
export async function* readFollows(
  source: AsyncIterable<Uint8Array | string>,
  { format, onBadLine }: { readonly format: FollowFormat; readonly onBadLine: OnBadLine },
): AsyncGenerator<Pair> {
  const parse = pairParsers[format];
  for await (const lines of readLines(source)) {
    for (const line of lines) {
      const pair = parsed(line, onBadLine, parse);
      if (pair) yield pair;
    }
  }
}

/**
 * Posts, ready for `feed.importPosts`: one JSON object a line with `author`, `key` (or `repostOf`), and as a rule
 * `text` and `createdAt`.
 */
export async function* readPosts(
  source: AsyncIterable<Uint8Array | string>,
  { onBadLine }: { readonly onBadLine: OnBadLine },
): AsyncGenerator<NewPost> {
  for await (const lines of readLines(source)) {
    for (const line of lines) {
      const post = parsed(line, onBadLine, parsePost);
      if (post) yield post;
    }
  }
}

/** Undefined for a line that holds nothing, and for a bad one. */
function parsed<T>(
  { number, text, fault }: Line,
  onBadLine: OnBadLine,
  parse: (text: string, number: number) => T | undefined,
): T | undefined {
  if (text === undefined) {
    onBadLine({ line: number, fault: fault ?? 'cannot be read' });
    return undefined;
  }
  if (text.trim() === '') return undefined;
  try {
    return parse(text, number);
  } catch (error) {
    if (!(error instanceof HeadgateError)) throw error;
    onBadLine({ line: number, fault: error.message });
    return undefined;
  }
}

const pairParsers: Readonly<Record<FollowFormat, (text: string, number: number) => Pair | undefined>> = {
  edges(text) {
    const line = text.trim();
    if (line.startsWith('#')) return undefined;
    return pairOf(line.split(/[\t ,]+/), line);
  },
  csv(text, number) {
    const fields = csvFields(text);
    const isHeader = number === 1 && fields[0]?.toLowerCase() === 'follower';
    return isHeader ? undefined : pairOf(fields, text);
  },
  jsonl(text) {
    const value = jsonOf(text);
    if (Array.isArray(value)) return pairOf(value, text);
    const { follower, followee } = (value ?? {}) as Readonly<Record<string, unknown>>;
    return pairOf([follower, followee], text);
  },
};

function pairOf(values: readonly unknown[], line: string): Pair {
  const [follower, followee] = values;
  if (values.length !== 2 || follower === undefined || followee === undefined) {
    throw invalidInput('line', line.slice(0, 200), 'a follower and a followee');
  }
  return [accountId('follower', follower), accountId('followee', followee)];
}

/** Fields of one line; a quoted one may hold commas, and quotes as two. */
function csvFields(line: string): string[] {
  const fields: string[] = [];
  for (let at = 0; at <= line.length; at += 1) {
    if (line[at] !== '"') {
      const end = line.indexOf(',', at);
      fields.push(line.slice(at, end < 0 ? undefined : end).trim());
      at = end < 0 ? line.length : end;
      continue;
    }
    const { field, end } = quotedField(line, at);
    fields.push(field);
    at = end;
  }
  return fields;
}

function quotedField(line: string, start: number): { field: string; end: number } {
  let field = '';
  for (let at = start + 1; at < line.length; at += 1) {
    if (line[at] !== '"') field += line[at];
    else if (line[at + 1] === '"') {
      field += '"';
      at += 1;
    } else if (at + 1 === line.length || line[at + 1] === ',') return { field, end: at + 1 };
    else break;
  }
  throw invalidInput('line', line.slice(0, 200), 'a quoted field that ends before a comma or the line’s end');
}

const postFields: readonly string[] = [
  'author',
  'key',
  'text',
  'data',
  'visibility',
  'repostOf',
  'createdAt',
];

function parsePost(text: string): NewPost {
  const value = jsonOf(text);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw invalidInput('line', text.slice(0, 200), 'a JSON object');
  }
  const unknown = Object.keys(value).find((name) => !postFields.includes(name));
  if (unknown !== undefined) throw invalidInput(unknown, undefined, `one of ${postFields.join(', ')}`);
  const post = value as NewPost;
  const { key, repostOf } = newPost(post);
  if (key === null && repostOf === null) {
    throw invalidInput('key', undefined, 'a key: importing again must find the same post');
  }
  return post;
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw invalidInput('line', text.slice(0, 200), 'JSON');
  }
}
