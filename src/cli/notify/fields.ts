/**
 * Reads objects of the configuration file by a table of fields: an unknown key is refused with the nearest right one, a
 * wrong type by its path, and a secret comes out of the environment or a file of its own. Guarantees that the value of a
 * secret stands in no error.
 */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { invalidInput } from '../../errors.js';
import type { Environment } from '../config.js';
import { nearest } from '../nearest.js';

export type FieldType =
  | 'text'
  | 'number'
  | 'boolean'
  | 'duration'
  | 'texts'
  /** Any object; whoever takes it checks it. */
  | 'object'
  | 'secret'
  | 'secrets'
  /** A secret whose text is a JSON object. */
  | 'secret-json';

export interface Field {
  readonly type: FieldType | Fields;
  readonly required?: boolean;
}

export type Fields = Readonly<Record<string, Field>>;

export interface Source {
  readonly environment: Environment;
  /** Where `{ "file": … }` of a secret is looked for. */
  readonly folder: string;
  /** A secret may stand in the file itself: only in a module, which can read the environment by itself. */
  readonly literalSecrets: boolean;
}

export type Values = Readonly<Record<string, unknown>>;

export function objectAt(path: string, value: unknown): Values {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw invalidInput(path, Array.isArray(value) ? 'a list' : typeof value, 'an object');
  return value as Values;
}

export function listAt(path: string, value: unknown): readonly unknown[] {
  if (!Array.isArray(value)) throw invalidInput(path, typeof value, 'a list');
  return value;
}

export function refuseUnknown(path: string, value: Values, known: readonly string[]): void {
  for (const key of Object.keys(value)) {
    if (known.includes(key)) continue;
    const meant = nearest(key, known);
    // the value stays out of it: a misspelt key may hold a secret
    const expected = meant === undefined ? `one of the keys ${known.join(', ')}` : `the key ${meant}`;
    throw invalidInput(path === '' ? key : `${path}.${key}`, '(an unknown key)', expected);
  }
}

/** Reads `value` by the table; what is not given is left out. */
export function readFields(path: string, value: unknown, fields: Fields, source: Source): Values {
  const given = objectAt(path, value);
  refuseUnknown(path, given, Object.keys(fields));
  const read: Record<string, unknown> = {};
  for (const [key, { type, required = false }] of Object.entries(fields)) {
    const at = `${path}.${key}`;
    if (given[key] === undefined) {
      if (required) throw invalidInput(at, undefined, 'a value (it is required)');
      continue;
    }
    read[key] =
      typeof type === 'object'
        ? readFields(at, given[key], type, source)
        : readField(at, given[key], type, source);
  }
  return read;
}

function readField(path: string, value: unknown, type: FieldType, source: Source): unknown {
  switch (type) {
    case 'text':
    case 'number':
    case 'boolean': {
      const expected = type === 'text' ? 'string' : type;
      if (typeof value !== expected) throw invalidInput(path, value, `a ${type}`);
      return value;
    }
    case 'duration':
      if (typeof value !== 'string' && typeof value !== 'number')
        throw invalidInput(path, value, "a duration such as '15s', or milliseconds");
      return value;
    case 'texts':
      return listAt(path, value).map((one, index) => readField(`${path}[${index}]`, one, 'text', source));
    case 'object':
      return objectAt(path, value);
    case 'secret':
      return readSecret(path, value, source);
    case 'secrets':
      return listAt(path, value).map((one, index) => readSecret(`${path}[${index}]`, one, source));
    case 'secret-json':
      return readSecretJson(path, value, source);
  }
}

const secretForm = '{ "env": "VARIABLE" } or { "file": "PATH" }';

function readSecret(path: string, value: unknown, source: Source): string {
  if (typeof value === 'string') {
    if (source.literalSecrets) return value;
    throw invalidInput(path, '(a secret)', `${secretForm}: no secret stands in this file`);
  }
  if (typeof value !== 'object' || value === null) throw invalidInput(path, '(a secret)', secretForm);
  const { env, file } = value as { env?: unknown; file?: unknown };
  if (typeof env === 'string') {
    const text = source.environment[env];
    if (text === undefined || text === '')
      throw invalidInput(path, undefined, `the environment variable ${env} to be set`);
    return text;
  }
  if (typeof file === 'string') {
    try {
      return readFileSync(resolve(source.folder, file), 'utf8').replace(/\r?\n$/, '');
    } catch {
      throw invalidInput(path, file, 'a file that can be read');
    }
  }
  throw invalidInput(path, '(a secret)', secretForm);
}

function readSecretJson(path: string, value: unknown, source: Source): Values {
  if (source.literalSecrets && typeof value === 'object' && value !== null) {
    if (!('env' in value) && !('file' in value)) return value as Values;
  }
  const text = readSecret(path, value, source);
  try {
    return objectAt(path, JSON.parse(text));
  } catch {
    throw invalidInput(path, '(a secret)', 'the text of a JSON object');
  }
}
