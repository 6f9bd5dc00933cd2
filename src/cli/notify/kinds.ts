/**
 * Kinds as the configuration file says them. Beside what the library takes, `data` may be a JSON Schema and `purpose` a
 * text, so that a file without code can say both.
 */
import { Ajv } from 'ajv';
import formats from 'ajv-formats';
import { invalidInput } from '../../errors.js';
import { defineKinds, type AnyKind, type KindTable, type Provider } from '../../notify/index.js';
import { objectAt, refuseUnknown, type Values } from './fields.js';

const known = [
  'delivery',
  'channels',
  'deadline',
  'attemptsMax',
  'retryAfter',
  'retryAfterMax',
  'priority',
  'floor',
  'required',
  'secret',
  'changeProvider',
  'keyKept',
  'limits',
  'data',
  'purpose',
  'digest',
  'templates',
  'locales',
] as const satisfies readonly (keyof AnyKind)[];

const flags = ['required', 'secret', 'changeProvider'] as const;

export function readKinds(value: unknown): KindTable {
  const table: Record<string, AnyKind> = {};
  for (const [name, kind] of Object.entries(objectAt('kinds', value)))
    table[name] = readKind(`kinds.${name}`, objectAt(`kinds.${name}`, kind));
  return defineKinds(table);
}

function readKind(path: string, given: Values): AnyKind {
  refuseUnknown(path, given, known);
  for (const flag of flags) {
    if (given[flag] !== undefined && typeof given[flag] !== 'boolean')
      throw invalidInput(`${path}.${flag}`, given[flag], 'true or false');
  }
  if (given['templates'] !== undefined) readTemplates(`${path}.templates`, given['templates']);
  const locales = given['locales'] === undefined ? {} : objectAt(`${path}.locales`, given['locales']);
  for (const [locale, templates] of Object.entries(locales))
    readTemplates(`${path}.locales.${locale}`, templates);
  if (given['digest'] !== undefined) {
    const digest = objectAt(`${path}.digest`, given['digest']);
    refuseUnknown(`${path}.digest`, digest, ['window', 'templates']);
    readTemplates(`${path}.digest.templates`, digest['templates']);
  }
  const { data, purpose } = given;
  return {
    ...given,
    ...(data === undefined ? {} : { data: dataCheck(`${path}.data`, data) }),
    ...(purpose === undefined ? {} : { purpose: purposeOf(`${path}.purpose`, purpose) }),
  } as AnyKind;
}

function readTemplates(path: string, value: unknown): void {
  for (const [channel, fields] of Object.entries(objectAt(path, value))) {
    for (const [slot, template] of Object.entries(objectAt(`${path}.${channel}`, fields))) {
      if (typeof template !== 'string' && typeof template !== 'function')
        throw invalidInput(`${path}.${channel}.${slot}`, typeof template, 'a template (a text)');
    }
  }
}

/** A function is taken as it is; a JSON Schema becomes one. */
function dataCheck(path: string, data: unknown): (input: unknown) => unknown {
  if (typeof data === 'function') return data as (input: unknown) => unknown;
  const ajv = new Ajv({ strict: false, allErrors: false });
  (formats as unknown as (ajv: Ajv) => void)(ajv);
  let check;
  try {
    check = ajv.compile(objectAt(path, data));
  } catch {
    throw invalidInput(path, '(a schema)', 'a JSON Schema');
  }
  return (input) => {
    // what was wrong may quote the data, which may be a code: the door says only that it was refused
    if (!check(input)) throw invalidInput('data', '(not shown)', 'data that fits the schema');
    return input;
  };
}

function purposeOf(path: string, purpose: unknown): (data: never) => string {
  if (typeof purpose === 'function') return purpose as (data: never) => string;
  if (typeof purpose !== 'string' || purpose === '') throw invalidInput(path, purpose, 'a text');
  return () => purpose;
}

/** Every channel of every kind must have somebody who carries it; the inbox always has. */
export function checkCarriers(kinds: KindTable, providers: readonly Provider[]): void {
  const carried = new Set<string>(['inbox', ...providers.map(({ channel }) => channel)]);
  for (const [name, { channels }] of Object.entries(kinds)) {
    for (const channel of channels) {
      if (!carried.has(channel))
        throw invalidInput(
          `kinds.${name}.channels`,
          channel,
          `a channel with a provider (there are ${[...carried].join(', ')})`,
        );
    }
  }
}
