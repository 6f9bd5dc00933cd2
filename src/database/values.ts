/**
 * How values travel between JavaScript and Postgres: one table for both drivers, so that a statement answers alike on
 * PGlite and on a server. Parameters go in as text; what cannot be stored is refused here, before the database sees it.
 */
import { invalidInput } from '../errors.js';

/** The protocol counts them in 16 bits, and drivers cut the rest off without a word. */
const valuesMax = 65_535;

export type EncodedValue = string | null;

/** Encodes `$1`, `$2`, …; throws `invalid-input` naming the parameter. JSON goes in as text, hence no objects. */
export function encodeValues(values: readonly unknown[]): EncodedValue[] {
  if (values.length > valuesMax) throw invalidInput('values', values.length, `at most ${valuesMax} values`);
  return values.map((value, index) => encodeValue(value, `$${index + 1}`));
}

function encodeValue(value: unknown, field: string): EncodedValue {
  if (value === null || value === undefined) return null;
  switch (typeof value) {
    case 'string':
      return encodeText(value, field);
    case 'number':
    case 'bigint':
    case 'boolean':
      return String(value);
    default:
  }
  if (value instanceof Date) {
    if (Number.isNaN(value.getTime())) throw invalidInput(field, String(value), 'a valid date');
    return value.toISOString();
  }
  if (value instanceof Uint8Array) return encodeBytes(value);
  if (Array.isArray(value)) return encodeArray(value, field);
  throw invalidInput(
    field,
    value,
    'text, number, bigint, boolean, Date, Uint8Array, null or an array of these (JSON as text)',
  );
}

/** In every Node since 20, but in the types of ES2024 only. */
type WellFormed = string & { isWellFormed(): boolean };

// Postgres text holds neither NUL nor half a surrogate pair; a driver would store U+FFFD in place of the latter without
// a word, and the row would never be found again under the text that was given.
const isStorable = (value: string): boolean => !value.includes('\0') && (value as WellFormed).isWellFormed();

function encodeText(value: string, field: string): string {
  if (value.includes('\0')) throw invalidInput(field, value, 'text without NUL characters');
  if (!(value as WellFormed).isWellFormed())
    throw invalidInput(field, value, 'well-formed text (no lone surrogates)');
  return value;
}

function encodeBytes(value: Uint8Array): string {
  return `\\x${Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('hex')}`;
}

/** Ids, tokens and numbers: storable, and the same with or without quotes. */
const plain = /^[\w.-]+$/;

/** An element's name is made for its error only: arrays of thousands of texts are the hot path of every batch. */
function encodeArray(values: readonly unknown[], field: string): string {
  const elements: string[] = [];
  for (let index = 0; index < values.length; index += 1) {
    const value = values[index];
    const element =
      typeof value === 'string' ? encodeTextElement(value, field, index) : encodeElement(value, field, index);
    elements.push(element);
  }
  return `{${elements.join(',')}}`;
}

function encodeTextElement(value: string, field: string, index: number): string {
  // A bare null of any case would be no text.
  if (plain.test(value) && value.length !== 4) return value;
  return isStorable(value) ? quote(value) : encodeElement(value, field, index);
}

function encodeElement(value: unknown, field: string, index: number): string {
  const elementField = `${field}[${index + 1}]`;
  if (Array.isArray(value)) return encodeArray(value, elementField);
  const text = encodeValue(value, elementField);
  if (text === null) return 'NULL';
  return typeof value === 'number' || typeof value === 'bigint' ? text : quote(text);
}

const quote = (text: string): string => `"${/["\\]/.test(text) ? text.replace(/["\\]/g, '\\$&') : text}"`;

type Decoder = (text: string) => unknown;

const asText: Decoder = (text) => text;
const asNumber: Decoder = (text) => Number(text);
const asBoolean: Decoder = (text) => text === 't';
const asBytes: Decoder = (text) => new Uint8Array(Buffer.from(text.slice(2), 'hex'));

/** Element type, element decoder, array type: object ids of pg_type, fixed by Postgres. */
const decodersByOid: readonly (readonly [oid: number, decoder: Decoder, arrayOid: number])[] = [
  [16, asBoolean, 1000], // bool
  [17, asBytes, 1001], // bytea
  [18, asText, 1002], // "char"
  [19, asText, 1003], // name
  [20, asText, 1016], // int8
  [21, asNumber, 1005], // int2
  [23, asNumber, 1007], // int4
  [25, asText, 1009], // text
  [26, asNumber, 1028], // oid
  [114, asText, 199], // json
  [700, asNumber, 1021], // float4
  [701, asNumber, 1022], // float8
  [1042, asText, 1014], // bpchar
  [1043, asText, 1015], // varchar
  [1082, asText, 1182], // date
  [1114, asText, 1115], // timestamp
  [1184, decodeTimestamp, 1185], // timestamptz
  [1700, asText, 1231], // numeric
  [2950, asText, 2951], // uuid
  [3802, asText, 3807], // jsonb
];

const decoders = new Map<number, Decoder>(
  decodersByOid.flatMap(([oid, decoder, arrayOid]) => [
    [oid, decoder] as const,
    [arrayOid, (text: string) => decodeArray(text, decoder)] as const,
  ]),
);

/** The decoder of a type; types that are not in the table stay text. */
export function decoderOf(oid: number): Decoder {
  return decoders.get(oid) ?? asText;
}

const timestampPattern =
  /^(\d{4,6})-(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?([+-])(\d\d)(?::(\d\d))?(?::(\d\d))?( BC)?$/;
const dateMsMax = 8.64e15;

/** Microseconds are cut to milliseconds; infinity becomes the last (first) moment that a Date can hold. */
function decodeTimestamp(text: string): Date {
  if (text === 'infinity') return new Date(dateMsMax);
  if (text === '-infinity') return new Date(-dateMsMax);
  const match = timestampPattern.exec(text);
  if (!match) return new Date(text);
  const part = (index: number): number => Number(match[index] ?? 0);
  const date = new Date(0);
  date.setUTCFullYear(match[12] ? 1 - part(1) : part(1), part(2) - 1, part(3));
  date.setUTCHours(part(4), part(5), part(6), Math.floor(Number(`0.${match[7] ?? 0}`) * 1000));
  const offsetMs = (part(9) * 3600 + part(10) * 60 + part(11)) * 1000;
  return new Date(date.getTime() - (match[8] === '-' ? -offsetMs : offsetMs));
}

/** Reads an array literal such as `{a,"b c",NULL,{1,2}}`. */
function decodeArray(text: string, decoder: Decoder): unknown[] {
  // A literal with lower bounds other than 1 starts with them: `[0:1]={a,b}`.
  let at = text.indexOf('{');
  const readQuoted = (): string => {
    let value = '';
    for (at += 1; text[at] !== '"'; at += 1) {
      if (text[at] === '\\') at += 1;
      value += text[at];
    }
    at += 1;
    return value;
  };
  const readBare = (): string => {
    const start = at;
    while (text[at] !== ',' && text[at] !== '}') at += 1;
    return text.slice(start, at);
  };
  const readElement = (): unknown => {
    if (text[at] === '{') return readArray();
    if (text[at] === '"') return decoder(readQuoted());
    const bare = readBare();
    return bare === 'NULL' ? null : decoder(bare);
  };
  const readArray = (): unknown[] => {
    const elements: unknown[] = [];
    at += 1;
    while (text[at] !== '}') {
      elements.push(readElement());
      if (text[at] === ',') at += 1;
    }
    at += 1;
    return elements;
  };
  return readArray();
}
