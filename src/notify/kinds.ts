/**
 * Kinds of notifications: what is promised about each, decided once and in one place. `defineKinds` checks every
 * definition and keeps the type of its data, so that `send('otp', { data })` knows what it takes.
 */
import { invalidInput } from '../errors.js';
import { parseDurationMs, type Duration } from './duration.js';
import { parseLimits, type LimitPolicy, type SendLimit } from './limits.js';
import { channels, type Channel, type JsonObject } from './notification.js';
import type { TemplateFields, Templates } from './templates.js';

/**
 * - at-least-once: when nobody knows whether an attempt arrived, it is made again. No loss, perhaps a duplicate.
 * - at-most-once: it is not. No duplicate, perhaps a loss.
 */
export type Guarantee = 'at-least-once' | 'at-most-once';

/** Urgent kinds are picked first, may take the reserved share of a provider's rate, and pass quiet hours. */
export type Priority = 'urgent' | 'normal' | 'bulk';

/** What the table of kinds holds: the part of a definition by which every worker decides, and an operator may change. */
export interface KindPolicy {
  readonly name: string;
  readonly delivery: Guarantee;
  readonly deadlineMs: number;
  readonly attemptsMax: number;
  readonly retryAfterMs: number;
  readonly retryAfterMaxMs: number;
  readonly priority: Priority;
  /** Slots of the whole pool that only this kind may use. */
  readonly floor: number;
  /** Cannot be switched off by the user. */
  readonly required: boolean;
  /** The content is erased when the delivery ends. */
  readonly secret: boolean;
  /** After an unknown outcome another provider may be tried, knowing that it may be a duplicate. */
  readonly changeProvider: boolean;
  readonly keyKeptMs: number;
  readonly limits: readonly LimitPolicy[];
}

export interface KindDefinition<Data = JsonObject> {
  readonly delivery: Guarantee;
  /** In order of preference; each gets a delivery of its own. */
  readonly channels: readonly Channel[];
  /** Not sent after that, counted from `send` (or `sendAt`). Default: 24 h. */
  readonly deadline?: Duration;
  /** Requests that may have reached a provider. Default: 5; at-most-once: always 1. */
  readonly attemptsMax?: number;
  /** Pause after an unknown outcome; doubles with each. Default: 5 s. */
  readonly retryAfter?: Duration;
  /** Longest pause. Default: 10 min. */
  readonly retryAfterMax?: Duration;
  /** Default: normal for at-least-once, bulk for at-most-once. */
  readonly priority?: Priority;
  /** Slots kept for this kind, of the pool that `createNotify` is told of. Default: 0. */
  readonly floor?: number;
  /** Default: false. */
  readonly required?: boolean;
  /** For codes and passwords: content is erased at the end, and never shown. Default: false. */
  readonly secret?: boolean;
  /** Default: false. */
  readonly changeProvider?: boolean;
  /** How long a key is known. Default: 30 days; not shorter than the deadline. */
  readonly keyKept?: Duration;
  /**
   * How many one user, or one address, is sent within a window: more are refused at the door (`send-limited`), and end as
   * suppressed in a campaign. What a digest sends is not counted. Default: none.
   */
  readonly limits?: readonly SendLimit[];
  /** Checks the data and gives it its type. Default: any JSON object. */
  readonly data?: (input: unknown) => Data;
  /** A newer notification of the same user and purpose takes the place of those that wait. */
  readonly purpose?: (data: Data) => string;
  /** Events that `digest` collects for so long become one notification of their own text. */
  readonly digest?: { readonly window: Duration; readonly templates: Templates };
  /** Text of each channel; {@link Templates}. A webhook without one gets the data itself. */
  readonly templates?: Templates;
  /** The same for other languages; a channel that a locale leaves out falls back to `templates`. */
  readonly locales?: Readonly<Record<string, Templates>>;
}

/** Any definition, whatever its data. */
// The parameter of `data` and `purpose` is contravariant: `never` is what all of them accept.
export type AnyKind = Omit<KindDefinition, 'data' | 'purpose'> & {
  readonly data?: (input: unknown) => unknown;
  readonly purpose?: (data: never) => string;
};
export type KindTable = Readonly<Record<string, AnyKind>>;

/** The data of a kind: what its check answers, else any JSON object. */
export type DataOf<Kind extends AnyKind> = Kind extends { readonly data: (input: unknown) => infer Data }
  ? Data
  : JsonObject;

const namePattern = /^[a-z][a-z0-9-]{0,39}$/;
const dayMs = 86_400_000;

/**
 * @example
 * const kinds = defineKinds({
 *   otp: { delivery: 'at-least-once', channels: ['sms'], deadline: '15s', attemptsMax: 3, retryAfter: '2s',
 *          priority: 'urgent', floor: 60, secret: true, templates: { sms: { text: 'Your code is {{ code }}' } } },
 * });
 */
export function defineKinds<const Table extends KindTable>(table: Table): Table {
  for (const [name, kind] of Object.entries(table)) {
    if (!namePattern.test(name))
      throw invalidInput('kinds', name, 'a name of lower-case letters, digits and dashes');
    policyOf(name, kind);
    checkChannels(name, kind);
  }
  return Object.freeze(table);
}

function checkChannels(name: string, kind: AnyKind): void {
  const known = (channel: string): boolean => (channels as readonly string[]).includes(channel);
  if (!Array.isArray(kind.channels) || kind.channels.length === 0 || !kind.channels.every(known)) {
    throw invalidInput(`kinds.${name}.channels`, kind.channels, `at least one of ${channels.join(', ')}`);
  }
  for (const channel of kind.channels as readonly Channel[]) {
    if (channel !== 'webhook' && kind.templates?.[channel] === undefined) {
      throw invalidInput(`kinds.${name}.templates.${channel}`, undefined, 'the text of this channel');
    }
  }
  for (const templates of [kind.templates ?? {}, ...Object.values(kind.locales ?? {})]) {
    for (const [channel, fields] of Object.entries(templates) as [string, TemplateFields][]) {
      if (!known(channel) || typeof fields !== 'object')
        throw invalidInput(`kinds.${name}.templates`, channel, `one of ${channels.join(', ')}`);
    }
  }
}

/** Fills in the defaults; refuses by name. */
export function policyOf(name: string, kind: AnyKind): KindPolicy {
  const field = `kinds.${name}`;
  if (kind.delivery !== 'at-least-once' && kind.delivery !== 'at-most-once') {
    throw invalidInput(`${field}.delivery`, kind.delivery, 'at-least-once or at-most-once');
  }
  const atMostOnce = kind.delivery === 'at-most-once';
  if (atMostOnce && (kind.attemptsMax ?? 1) !== 1)
    throw invalidInput(`${field}.attemptsMax`, kind.attemptsMax, '1 for a kind that is sent at most once');
  const priority = kind.priority ?? (atMostOnce ? 'bulk' : 'normal');
  if (!['urgent', 'normal', 'bulk'].includes(priority))
    throw invalidInput(`${field}.priority`, priority, 'urgent, normal or bulk');
  const deadlineMs = parseDurationMs(`${field}.deadline`, kind.deadline ?? dayMs, 1);
  return {
    name,
    delivery: kind.delivery,
    deadlineMs,
    attemptsMax: atMostOnce ? 1 : wholeNumber(`${field}.attemptsMax`, kind.attemptsMax ?? 5, 1, 100),
    retryAfterMs: parseDurationMs(`${field}.retryAfter`, kind.retryAfter ?? 5_000),
    retryAfterMaxMs: parseDurationMs(`${field}.retryAfterMax`, kind.retryAfterMax ?? 600_000),
    priority,
    floor: wholeNumber(`${field}.floor`, kind.floor ?? 0, 0, 100_000),
    required: kind.required ?? false,
    secret: kind.secret ?? false,
    changeProvider: kind.changeProvider ?? false,
    keyKeptMs: Math.max(deadlineMs, parseDurationMs(`${field}.keyKept`, kind.keyKept ?? 30 * dayMs, 1)),
    limits: parseLimits(`${field}.limits`, kind.limits ?? []),
  };
}

function wholeNumber(field: string, value: number, min: number, max: number): number {
  if (Number.isSafeInteger(value) && value >= min && value <= max) return value;
  throw invalidInput(field, value, `a whole number from ${min} to ${max}`);
}
