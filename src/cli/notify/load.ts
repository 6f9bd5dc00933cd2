/**
 * Finds and reads the configuration of notifications: a JSON file or a module. Guarantees that a mistake is named by
 * file and key before anything is opened, and that no secret is printed.
 */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { HeadgateError, invalidInput } from '../../errors.js';
import type { Log } from '../../log.js';
import type { KindTable, NotifyOptions, Provider, UnsubscribeOptions } from '../../notify/index.js';
import type { Environment, Flags } from '../config.js';
import { listAt, objectAt, readFields, refuseUnknown, type Source } from './fields.js';
import { checkCarriers, readKinds } from './kinds.js';
import { readProvider } from './provider-types.js';

/** Kinds, providers and what goes with them, checked. */
export interface NotifyConfiguration {
  readonly kinds: KindTable;
  readonly providers: readonly Provider[];
  readonly unsubscribe?: UnsubscribeOptions | undefined;
  /** Where providers and people reach this server, without a slash at the end. */
  readonly publicUrl?: string | undefined;
  readonly poolSlots?: number | undefined;
  /** Attempts side by side in one worker process. Default 100. */
  readonly slots?: number | undefined;
  readonly breaker?: NotifyOptions['breaker'] | undefined;
  /** Default: that of the process. */
  readonly log?: Log | undefined;
}

/** No kinds: the routes are there and say so, and no worker runs. */
export const noKinds: NotifyConfiguration = { kinds: {}, providers: [] };

const names = ['headgate.config.json', 'headgate.config.mjs'] as const;
const keys = ['kinds', 'providers', 'unsubscribe', 'publicUrl', 'poolSlots', 'slots', 'breaker'] as const;

/** The file that is asked for, else one of the usual names in the working folder; undefined: there is none. */
export function notifyFile(flags: Flags, environment: Environment): string | undefined {
  const given = flags['notifyConfig'] ?? environment['HEADGATE_NOTIFY_CONFIG'];
  if (typeof given === 'string') {
    const name = flags['notifyConfig'] === undefined ? 'HEADGATE_NOTIFY_CONFIG' : '--notify-config';
    if (!existsSync(given)) throw invalidInput(name, given, 'a file that is there');
    return resolve(given);
  }
  const found = names.filter((name) => existsSync(name));
  if (found.length > 1)
    throw invalidInput('--notify-config', undefined, `one file (there are ${found.join(' and ')})`);
  return found[0] === undefined ? undefined : resolve(found[0]);
}

export interface LoadOptions {
  readonly flags: Flags;
  readonly environment: Environment;
  readonly log: Log;
}

/** Undefined when there is no file. */
export async function loadNotifyConfiguration({
  flags,
  environment,
  log,
}: LoadOptions): Promise<NotifyConfiguration | undefined> {
  const file = notifyFile(flags, environment);
  if (file === undefined) return undefined;
  const isModule = /\.m?js$/.test(file);
  const source: Source = { environment, folder: dirname(file), literalSecrets: isModule };
  try {
    const content = isModule ? await readModule(file) : readJson(file);
    refuseUnknown('', content, ['notify']);
    return read(content['notify'] ?? {}, source, log);
  } catch (error) {
    throw error instanceof HeadgateError ? inFile(file, error) : error;
  }
}

function inFile(file: string, error: HeadgateError): HeadgateError {
  return new HeadgateError(error.code, error.status, `${file}: ${error.message}`, {
    ...(error.field === undefined ? {} : { field: error.field }),
    ...(error.expected === undefined ? {} : { expected: error.expected }),
    value: error.value,
  });
}

function readJson(file: string): Readonly<Record<string, unknown>> {
  const text = readFileSync(file, 'utf8');
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch (error) {
    // the engine's text quotes the file; only its place is told
    const place = /position \d+( \(line \d+ column \d+\))?/.exec((error as Error).message)?.[0];
    throw invalidInput('the file', '(a text)', `JSON${place === undefined ? '' : ` (it ends at ${place})`}`);
  }
  return objectAt('the file', content);
}

async function readModule(file: string): Promise<Readonly<Record<string, unknown>>> {
  const module = (await import(pathToFileURL(file).href)) as { default?: unknown };
  return objectAt('the default export', module.default);
}

function read(value: unknown, source: Source, log: Log): NotifyConfiguration {
  const given = objectAt('notify', value);
  refuseUnknown('notify', given, keys);
  const {
    poolSlots,
    slots,
    breaker,
    publicUrl: publicText,
  } = readFields(
    'notify',
    Object.fromEntries(Object.entries(given).filter(([key]) => key in plain)),
    plain,
    source,
  ) as Pick<NotifyConfiguration, 'poolSlots' | 'slots' | 'breaker' | 'publicUrl'>;
  const publicUrl = publicText === undefined ? undefined : publicUrlOf(publicText);
  const kinds = readKinds(given['kinds'] ?? {});
  const providers = listAt('providers', given['providers'] ?? []).map((provider, index) =>
    readProvider(`providers[${index}]`, provider, source, { log, publicUrl }),
  );
  checkCarriers(kinds, providers);
  return {
    kinds,
    providers,
    publicUrl,
    poolSlots,
    slots,
    breaker,
    unsubscribe:
      given['unsubscribe'] === undefined
        ? undefined
        : unsubscribeOf(given['unsubscribe'], { source, publicUrl }),
  };
}

const plain = {
  publicUrl: { type: 'text' },
  poolSlots: { type: 'number' },
  slots: { type: 'number' },
  breaker: {
    type: {
      errors: { type: 'number' },
      share: { type: 'number' },
      windowMs: { type: 'number' },
      unanswered: { type: 'number' },
      coolDownMs: { type: 'number' },
    },
  },
} as const;

function publicUrlOf(text: string): string {
  if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol))
    throw invalidInput('notify.publicUrl', text, 'a URL that begins with https://');
  return text.replace(/\/+$/, '');
}

function unsubscribeOf(
  value: unknown,
  { source, publicUrl }: { readonly source: Source; readonly publicUrl: string | undefined },
): UnsubscribeOptions {
  const fields = { url: { type: 'text' }, secret: { type: 'secret', required: true } } as const;
  const { url, secret } = readFields('unsubscribe', value, fields, source);
  const own = publicUrl === undefined ? undefined : `${publicUrl}/v1/unsubscribe`;
  if (url === undefined && own === undefined)
    throw invalidInput('unsubscribe.url', undefined, 'a URL, or notify.publicUrl');
  if ((secret as string).length < 16)
    throw invalidInput('unsubscribe.secret', '(a secret)', 'at least 16 characters');
  return { url: (url ?? own) as string, secret: secret as string };
}
