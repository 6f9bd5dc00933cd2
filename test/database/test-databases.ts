/**
 * The databases that a test runs on: the embedded one and every PostgreSQL of the run. For `describe.each`; each test
 * file gets databases of its own.
 */
import { inject } from 'vitest';
import {
  type Database,
  openPglite,
  openPostgres,
  type PgliteOptions,
  type PostgresOptions,
} from '../../src/database/index.js';

/** One database to run the tests of a file on. */
export interface TestDatabase {
  /** `pglite`, `postgres 15`, … */
  readonly name: string;
  /** Only a server has several sessions; `pglite` has one. */
  readonly hasSessions: boolean;
  /**
   * Opens it. On a server every call connects to the same database, empty for each test file; embedded, every call makes
   * an empty database in memory, which takes about a second: open once a file where that is enough.
   */
  open(options?: Partial<PostgresOptions & PgliteOptions>): Promise<Database>;
  /** The URL of the file's database; throws for `pglite`. */
  url(): Promise<string>;
}

export function testDatabases(): TestDatabase[] {
  return [embedded(), ...testServers()];
}

/** Only the servers: for what one session cannot show. */
export function testServers(): TestDatabase[] {
  return inject('postgresServers').map(({ name, url: serverUrl }) => {
    let made: Promise<string> | undefined;
    const url = (): Promise<string> => {
      made ??= createDatabase(serverUrl);
      return made;
    };
    return {
      name,
      hasSessions: true,
      url,
      open: async (options) =>
        openPostgres({ ...options, connectionString: options?.connectionString ?? (await url()) }),
    };
  });
}

function embedded(): TestDatabase {
  return {
    name: 'pglite',
    hasSessions: false,
    url: () => Promise.reject(new Error('the embedded database has no URL')),
    open: (options) => openPglite({ folder: 'memory', seedFile: inject('pgliteSeedFile'), ...options }),
  };
}

/** Makes an empty database on a server of the run and answers its URL. */
export async function createDatabase(serverUrl: string): Promise<string> {
  const name = `test_${process.pid}_${Math.random().toString(36).slice(2, 10)}`;
  const server = await openPostgres({ connectionString: serverUrl, poolMax: 1 });
  try {
    await server.script(`create database "${name}"`);
  } finally {
    await server.close();
  }
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  return url.href;
}
