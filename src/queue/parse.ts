/**
 * The edge of the queue: everything a caller hands in is checked here, alike for every store, and refused by name. What
 * one store could not keep byte for byte (NUL and lone surrogates, which Postgres loses without a word) is refused
 * everywhere; JSON text carries them escaped and passes.
 */
import { HeadgateError, invalidInput } from '../errors.js';
import { randomToken } from '../ids.js';
import { queueError } from './errors.js';
import {
  allowedMoves,
  type JsonValue,
  type MessageState,
  type Metadata,
  type NewMessage,
} from './message.js';
import type { DequeueOptions, ListOptions } from './queue.js';
import type { DequeueRequest, MessageChange, MessageToStore, QueueConfiguration } from './store.js';

/** A hundred years: longer delays and leases are a mistake in the unit. */
const durationMsMax = 3_155_760_000_000;
const idBytesMax = 512;
const queueBytesMax = 200;
const metadataPairsMax = 16;
const metadataKeyBytesMax = 128;
/** An exclusivity value is an index key, and those end at 2,704 bytes. */
const metadataValueBytesMax = 1_024;
const traceBytesMax = 512;
const errorBytesMax = 8_192;
const attemptsMaxMax = 2_147_483_647;

const loneSurrogate = /\p{Surrogate}/u;

function parseText(field: string, value: unknown, bytesMin: number, bytesMax: number): string {
  const expected = `a string of ${bytesMin} to ${bytesMax} bytes without NUL and lone surrogates`;
  if (typeof value !== 'string' || value.length < bytesMin || value.length > bytesMax)
    throw invalidInput(field, value, expected);
  if (value.includes('\0') || loneSurrogate.test(value)) throw invalidInput(field, value, expected);
  if (value.length * 3 > bytesMax && Buffer.byteLength(value) > bytesMax)
    throw invalidInput(field, value, expected);
  return value;
}

function parseInteger(field: string, value: unknown, min: number, max: number): number {
  if (!Number.isSafeInteger(value) || (value as number) < min || (value as number) > max) {
    throw invalidInput(field, value, `a whole number from ${min} to ${max}`);
  }
  return (value as number) + 0;
}

/** What a caller may have got wrong in a language without types: a list that is none, options that are none. */
export function parseList<T>(field: string, value: readonly T[]): readonly T[] {
  if (!Array.isArray(value)) throw invalidInput(field, value, 'an array');
  return value;
}

export function parseObject<T extends object>(field: string, value: T, expected = 'an object'): T {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw invalidInput(field, value, expected);
  return value;
}

const optional = <T>(value: unknown, parse: (value: unknown) => T): T | undefined =>
  value === undefined ? undefined : parse(value);

export const parseQueueName = (value: unknown): string => parseText('queue', value, 1, queueBytesMax);
export const parseId = (value: unknown): string => parseText('id', value, 1, idBytesMax);
export const parseLeaseMs = (value: unknown): number => parseInteger('leaseMs', value, 1, durationMsMax);
export const parseDelayMs = (field: string, value: unknown): number =>
  parseInteger(field, value, 0, durationMsMax);
export const parseCount = (field: string, value: unknown, max: number): number =>
  parseInteger(field, value, 1, max);
export const parseWaitMs = (value: unknown): number => parseInteger('waitMs', value, 0, durationMsMax);
export const parsePriority = (value: unknown): number =>
  parseInteger('priority', value, Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER);

export function parseRequestId(value: unknown): string {
  if (typeof value !== 'string' || !/^[\w-]{1,64}$/.test(value))
    throw invalidInput('requestId', value, '1 to 64 characters of A-Z a-z 0-9 _ -');
  return value;
}

/** A token that cannot be one of ours is lost, not wrong: the holder of nothing gets `lease-lost`. */
export function parseLeaseToken(value: unknown): string {
  return parseText('leaseToken', value, 1, 512);
}

export function parseMetadata(field: string, value: unknown): Metadata {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw invalidInput(field, value, 'an object of strings');
  const pairs = Object.entries(value);
  if (pairs.length > metadataPairsMax)
    throw invalidInput(field, pairs.length, `at most ${metadataPairsMax} pairs`);
  for (const [key, text] of pairs) {
    parseText(`${field} key`, key, 1, metadataKeyBytesMax);
    parseText(`${field}.${key}`, text, 0, metadataValueBytesMax);
  }
  return Object.fromEntries(pairs) as Metadata;
}

export function parseJson(
  field: 'payload' | 'result',
  value: JsonValue | undefined,
  bytesMax: number,
): string {
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch (cause) {
    throw queueErrorForJson(field, value, cause);
  }
  if (text === undefined) throw queueErrorForJson(field, value, undefined);
  if (text.includes('null') && holdsNoNumber(value))
    throw invalidInput(field, 'NaN or Infinity', 'a JSON value, whose numbers are finite');
  const bytes = text.length * 3 <= bytesMax ? 0 : Buffer.byteLength(text);
  if (bytes > bytesMax) {
    throw queueError(
      'payload-too-large',
      `${field}: expected at most ${bytesMax} bytes of JSON, got ${bytes}`,
      {
        field,
        value: bytes,
        expected: `at most ${bytesMax} bytes of JSON`,
      },
    );
  }
  return text;
}

/** JSON has no NaN and no Infinity, and writes null in their place: what comes back would be something else. */
function holdsNoNumber(value: JsonValue | undefined): boolean {
  let holds = false;
  JSON.stringify(value, (_, part: unknown) => {
    if (typeof part === 'number' && !Number.isFinite(part)) holds = true;
    return part;
  });
  return holds;
}

function queueErrorForJson(field: string, value: unknown, cause: unknown): HeadgateError {
  const reason = cause instanceof Error ? cause.message : typeof value;
  return invalidInput(field, reason, 'a JSON value');
}

/** An error text always gets in: what cannot be stored is replaced, what is too long is cut. */
export function parseErrorText(value: unknown): string {
  const text = textOf(value);
  const start = text
    .slice(0, errorBytesMax)
    .replaceAll('\0', '\uFFFD')
    .replaceAll(/\p{Surrogate}/gu, '\uFFFD');
  if (text.length <= errorBytesMax && Buffer.byteLength(start) <= errorBytesMax) return start;
  return `${Buffer.from(start)
    .subarray(0, errorBytesMax)
    .toString()
    .replace(/\uFFFD$/, '')}…`;
}

/** Whatever was thrown: it may have no text, or one that throws. */
function textOf(value: unknown): string {
  try {
    if (value instanceof Error) return String(value.stack ?? value.message);
    return typeof value === 'object' && value !== null ? (JSON.stringify(value) ?? '') : String(value);
  } catch {
    return Object.prototype.toString.call(value);
  }
}

export function parseMessage(
  message: NewMessage,
  newId: () => string,
  payloadBytesMax: number,
): MessageToStore {
  parseObject('message', message, 'an object with a payload');
  return {
    id: message.id === undefined ? newId() : parseId(message.id),
    payload: parseJson('payload', message.payload, payloadBytesMax),
    metadata: message.metadata === undefined ? {} : parseMetadata('metadata', message.metadata),
    priority: optional(message.priority, parsePriority),
    delayMs: optional(message.delayMs, (value) => parseDelayMs('delayMs', value)),
    attemptsMax: optional(message.attemptsMax, (value) =>
      parseInteger('attemptsMax', value, 1, attemptsMaxMax),
    ),
    leaseMs: optional(message.leaseMs, parseLeaseMs),
    uniqueWhileLive:
      optional(message.uniqueWhileLive, (value) => parseBoolean('uniqueWhileLive', value)) ?? false,
    trace: optional(message.trace, (value) => parseText('trace', value, 0, traceBytesMax)),
  };
}

export const parseBoolean = (field: string, value: unknown): boolean => {
  if (typeof value !== 'boolean') throw invalidInput(field, value, 'true or false');
  return value;
};

function parseType(value: unknown): QueueConfiguration['type'] {
  const type = value as { kind?: unknown; key?: unknown } | null | undefined;
  if (type?.kind === 'simple') return { kind: 'simple' };
  if (type?.kind === 'exclusive')
    return { kind: 'exclusive', key: parseText('type.key', type.key, 1, metadataKeyBytesMax) };
  throw invalidInput('type', value, '{ kind: "simple" } or { kind: "exclusive", key }');
}

function parseRetention(value: unknown): QueueConfiguration['retentionMs'] {
  const retention = (value ?? {}) as Record<string, unknown>;
  const of = (state: string) => parseDelayMs(`retentionMs.${state}`, retention[state]);
  return { completed: of('completed'), canceled: of('canceled'), errored: of('errored') };
}

function parseRateLimit(value: unknown): QueueConfiguration['rateLimit'] {
  if (value === undefined || value === null) return undefined;
  const limit = value as Record<string, unknown>;
  return {
    count: parseInteger('rateLimit.count', limit['count'], 1, 1_000_000_000),
    perMs: parseInteger('rateLimit.perMs', limit['perMs'], 1, 86_400_000),
  };
}

function parseHistory(value: unknown): QueueConfiguration['history'] {
  if (value !== 'message' && value !== 'batch' && value !== 'off')
    throw invalidInput('history', value, 'one of message, batch, off');
  return value;
}

type Parsers = { readonly [Name in keyof QueueConfiguration]: (value: unknown) => QueueConfiguration[Name] };

const configurationParsers: Parsers = {
  type: parseType,
  leaseMs: parseLeaseMs,
  delayMs: (value) => parseDelayMs('delayMs', value),
  attemptsMax: (value) => parseInteger('attemptsMax', value, 1, attemptsMaxMax),
  retentionMs: parseRetention,
  enqueueBlocked: (value) => parseBoolean('enqueueBlocked', value),
  dequeueBlocked: (value) => parseBoolean('dequeueBlocked', value),
  rateLimit: parseRateLimit,
  history: parseHistory,
};

/** Keeps the fields that are named, `rateLimit: undefined` (no limit) included. */
export function parseConfiguration(change: Partial<QueueConfiguration>): Partial<QueueConfiguration> {
  const entries = Object.entries(parseObject('configuration', change)).map(([name, value]) => {
    if (!Object.hasOwn(configurationParsers, name))
      throw invalidInput(name, value, `one of ${Object.keys(configurationParsers).join(', ')}`);
    return [name, configurationParsers[name as keyof Parsers](value)] as const;
  });
  return Object.fromEntries(entries) as Partial<QueueConfiguration>;
}

export function parseChange(
  change: {
    readonly id: string;
    readonly priority?: number;
    readonly visibleAt?: number;
    readonly payload?: JsonValue;
  },
  payloadBytesMax: number,
): MessageChange {
  parseObject('change', change);
  return {
    id: parseId(change.id),
    priority: optional(change.priority, parsePriority),
    visibleAt: optional(change.visibleAt, (value) =>
      parseInteger('visibleAt', value, 0, Number.MAX_SAFE_INTEGER),
    ),
    payload: change.payload === undefined ? undefined : parseJson('payload', change.payload, payloadBytesMax),
  };
}

export function parseState(value: unknown): MessageState {
  if (typeof value !== 'string' || !Object.hasOwn(allowedMoves, value)) {
    throw invalidInput('state', value, `one of ${Object.keys(allowedMoves).join(', ')}`);
  }
  return value as MessageState;
}

export const parseWorker = (value: unknown): string => parseText('worker', value, 1, 200);
export const parseCursor = (value: unknown): string => parseText('after', value, 1, 1_024);

export function parseListOptions(options: ListOptions) {
  const { state, where = {}, after, limit = 100, newestFirst = false } = parseObject('options', options);
  const name = parseState(state);
  if (parseBoolean('newestFirst', newestFirst) && allowedMoves[name].includes('canceled')) {
    const expected = 'an ended state beside it: live messages come in the order in which they go on';
    throw invalidInput('newestFirst', newestFirst, expected);
  }
  return {
    state: name,
    where: parseMetadata('where', where),
    after: after === undefined ? undefined : parseCursor(after),
    limit: parseCount('limit', limit, 1_000),
    newestFirst,
  };
}

export const parseRecurringName = (value: unknown): string => parseText('name', value, 1, 200);

export function parseDequeue(
  queueName: string,
  options: DequeueOptions,
  countMax: number,
): Omit<DequeueRequest, 'now'> {
  const { count = 1, where = {}, leaseMs, requestId, worker } = parseObject('options', options);
  return {
    queue: parseQueueName(queueName),
    count: parseCount('count', count, countMax),
    where: parseMetadata('where', where),
    leaseMs: optional(leaseMs, parseLeaseMs),
    requestId: requestId === undefined ? randomToken() : parseRequestId(requestId),
    worker: optional(worker, parseWorker),
  };
}
