/** What the commands read that run a server or the workers; apart from config.ts, because it needs the server's modules. */
import { parseApiKeys, type ApiKey } from '../server/index.js';
import {
  numberOf,
  oneOf,
  sourceOf,
  storeConfig,
  type Environment,
  type Flags,
  type StoreConfig,
} from './config.js';

export interface ServeConfig extends StoreConfig {
  readonly port: number;
  readonly host: string;
  readonly apiKeys: readonly ApiKey[];
  readonly logLevel: string;
}

const logLevels = ['debug', 'info', 'warn', 'error', 'silent'];

export function serveConfig(flags: Flags, environment: Environment): ServeConfig {
  return {
    ...storeConfig(flags, environment),
    port: numberOf(
      sourceOf('port', flags['port'], 'HEADGATE_PORT', environment),
      { min: 0, max: 65_535, whole: true },
      4_400,
    ),
    host: sourceOf('host', flags['host'], 'HEADGATE_HOST', environment).text ?? '127.0.0.1',
    apiKeys: parseApiKeys(environment['HEADGATE_API_KEYS'] ?? ''),
    logLevel: oneOf(
      sourceOf('log-level', flags['logLevel'], 'HEADGATE_LOG_LEVEL', environment),
      logLevels,
      'warn',
    ),
  };
}
