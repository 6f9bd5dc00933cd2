/**
 * The only reader of the environment, with serve-config.ts beside it: flags first, then HEADGATE_* variables, then the
 * defaults. Every value is checked here and a wrong one is refused by the name under which it was given. Every command
 * loads this file, so that it imports nothing heavy.
 */
import { resolve } from 'node:path';
import { invalidInput } from '../errors.js';

export type Environment = Readonly<Record<string, string | undefined>>;

export interface StoreConfig {
  /** A PostgreSQL to use; undefined: the embedded one in `dataFolder`. */
  readonly databaseUrl: string | undefined;
  readonly dataFolder: string;
  /** The Redis that carries the queue; undefined: the database carries it. */
  readonly redis?: RedisConfig | undefined;
  /** The Redis, or nodes of the Cluster, that keeps the timelines; undefined: a table of the database. */
  readonly feedTimelines?: readonly string[] | undefined;
}

const redisDurabilities = ['strict', 'everysec', 'none'] as const;

export interface RedisConfig {
  /** One address, or some nodes of a Cluster. */
  readonly urls: readonly string[];
  /** Below it the server is refused. */
  readonly durability: (typeof redisDurabilities)[number];
}

/** Where a process that serves nothing else tells its metrics. */
export interface MetricsConfig {
  readonly port: number;
  readonly host: string;
}

export interface DemoConfig {
  /** A follow graph to load instead of the generated one. */
  readonly followsFile: string | undefined;
  /** Accounts of the generated graph. */
  readonly accounts: number;
  /** The number was asked for, so a folder with another world is a mistake. */
  readonly accountsGiven: boolean;
  /** Posts a second of the demo traffic. */
  readonly rate: number;
}

interface Source {
  readonly name: string;
  readonly text: string | undefined;
}

export function sourceOf(flag: string, given: unknown, variable: string, environment: Environment): Source {
  if (typeof given === 'string') return { name: `--${flag}`, text: given };
  return { name: variable, text: environment[variable] };
}

export function numberOf(
  source: Source,
  bounds: { min: number; max: number; whole: boolean },
  fallback: number,
): number {
  if (source.text === undefined) return fallback;
  const value = Number(source.text);
  const fits =
    source.text.trim() !== '' &&
    value >= bounds.min &&
    value <= bounds.max &&
    (!bounds.whole || Number.isInteger(value));
  if (!fits)
    throw invalidInput(
      source.name,
      source.text,
      `a ${bounds.whole ? 'whole ' : ''}number from ${bounds.min} to ${bounds.max}`,
    );
  return value;
}

export function oneOf<Value extends string>(
  source: Source,
  allowed: readonly Value[],
  fallback: Value,
): Value {
  if (source.text === undefined) return fallback;
  const value = allowed.find((candidate) => candidate === source.text);
  if (value === undefined) throw invalidInput(source.name, source.text, `one of ${allowed.join(', ')}`);
  return value;
}

export type Flags = Readonly<Record<string, unknown>>;

export function storeConfig(flags: Flags, environment: Environment): StoreConfig {
  const url = sourceOf('database-url', flags['databaseUrl'], 'HEADGATE_DATABASE_URL', environment);
  if (url.text !== undefined && !/^postgres(ql)?:\/\//.test(url.text)) {
    // the value may hold a password
    throw invalidInput(url.name, '(a URL)', 'a URL that begins with postgres:// or postgresql://');
  }
  const folder = sourceOf('data', flags['data'], 'HEADGATE_DATA', environment);
  return {
    databaseUrl: url.text,
    dataFolder: resolve(folder.text ?? './.headgate'),
    redis: redisConfig(flags, environment),
    feedTimelines: feedTimelines(flags, environment),
  };
}

export const notifyConfigHelp =
  'kinds and providers of notifications (HEADGATE_NOTIFY_CONFIG; headgate.config.json or .mjs in this folder)';
export const redisUrlHelp =
  'the Redis 7+ that carries the queue; several with commas: a Cluster (HEADGATE_REDIS_URL); without it the database does';
export const redisDurabilityHelp = 'strict, everysec or none (HEADGATE_REDIS_DURABILITY; strict)';
export const feedTimelinesHelp =
  'where timelines are kept: table, redis (that of --redis-url), or a Redis by its URL (HEADGATE_FEED_TIMELINES; table)';

function redisConfig(flags: Flags, environment: Environment): RedisConfig | undefined {
  const url = sourceOf('redis-url', flags['redisUrl'], 'HEADGATE_REDIS_URL', environment);
  const durability = oneOf(
    sourceOf('redis-durability', flags['redisDurability'], 'HEADGATE_REDIS_DURABILITY', environment),
    redisDurabilities,
    'strict',
  );
  return url.text === undefined ? undefined : { urls: redisUrls(url, url.text), durability };
}

function redisUrls({ name }: Source, given: string): string[] {
  const urls = given.split(',').map((text) => text.trim());
  if (!urls.every((text) => /^rediss?:\/\//.test(text))) {
    // the value may hold a password
    const expected =
      'a URL that begins with redis:// or rediss://, or those of some nodes of a Cluster, with commas';
    throw invalidInput(name, '(a URL)', expected);
  }
  return urls;
}

function feedTimelines(flags: Flags, environment: Environment): readonly string[] | undefined {
  const source = sourceOf('feed-timelines', flags['feedTimelines'], 'HEADGATE_FEED_TIMELINES', environment);
  if (source.text === undefined || source.text === 'table') return undefined;
  if (source.text !== 'redis') return redisUrls(source, source.text);
  const redis = redisConfig(flags, environment);
  if (!redis) throw invalidInput(source.name, source.text, 'table or a URL where no --redis-url is given');
  return redis.urls;
}

export interface ClientConfig extends StoreConfig {
  /** A running server to talk to. */
  readonly url: string | undefined;
  readonly apiKey: string | undefined;
}

export function clientConfig(flags: Flags, environment: Environment): ClientConfig {
  const url = sourceOf('url', flags['url'], 'HEADGATE_URL', environment);
  if (url.text !== undefined && !/^https?:\/\//.test(url.text)) {
    throw invalidInput(url.name, url.text, 'a URL that begins with http:// or https://');
  }
  return {
    ...storeConfig(flags, environment),
    url: url.text?.replace(/\/+$/, ''),
    apiKey: environment['HEADGATE_API_KEY'],
  };
}

export const metricsPortHelp =
  'serve /metrics and /health of this process on a port (HEADGATE_METRICS_PORT; off; 0 takes a free one)';
export const metricsHostHelp = 'address for --metrics-port (HEADGATE_METRICS_HOST; 127.0.0.1)';

/** Undefined: nothing listens. */
export function metricsConfig(flags: Flags, environment: Environment): MetricsConfig | undefined {
  const port = sourceOf('metrics-port', flags['metricsPort'], 'HEADGATE_METRICS_PORT', environment);
  const host = sourceOf('metrics-host', flags['metricsHost'], 'HEADGATE_METRICS_HOST', environment);
  if (port.text === undefined) {
    if (flags['metricsHost'] === undefined) return undefined;
    throw invalidInput(host.name, host.text, '--metrics-port beside it: without one nothing listens');
  }
  return {
    port: numberOf(port, { min: 0, max: 65_535, whole: true }, 0),
    host: host.text ?? '127.0.0.1',
  };
}

export function demoConfig(flags: Flags, environment: Environment): DemoConfig {
  const accounts = sourceOf('accounts', flags['accounts'], 'HEADGATE_ACCOUNTS', environment);
  const file = sourceOf('follows', flags['follows'], 'HEADGATE_FOLLOWS', environment).text;
  return {
    followsFile: file === undefined ? undefined : resolve(file),
    accounts: numberOf(accounts, { min: 2, max: 1_000_000, whole: true }, 2_000),
    accountsGiven: accounts.text !== undefined,
    rate: numberOf(
      sourceOf('rate', flags['rate'], 'HEADGATE_RATE', environment),
      { min: 0, max: 1_000, whole: false },
      2,
    ),
  };
}
