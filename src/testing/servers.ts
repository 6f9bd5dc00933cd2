/**
 * The servers that a test run uses: the one that DATABASE_URL names, or a throwaway one for each PostgreSQL that is
 * found.
 */
import { join } from 'node:path';
import { openPostgres } from '../database/index.js';
import { findPostgresBinaries, type PostgresKind } from './postgres-binaries.js';
import { type PostgresServer, startPostgresServer } from './postgres-server.js';

/** A server of a run, in a form that travels to the processes that run the tests. */
export interface RunServer {
  /** For instance `postgres 15`. */
  readonly name: string;
  readonly url: string;
}

export interface RunServers {
  readonly servers: readonly RunServer[];
  /** Keeps the logs of the servers below the folder and answers their paths. */
  keepLogs(folder: string): Promise<string[]>;
  stop(): Promise<void>;
}

/** The server that `databaseUrl` names, or else a throwaway one for each kind of binaries that is found. */
export async function startRunServers({
  databaseUrl,
}: {
  databaseUrl?: string | undefined;
} = {}): Promise<RunServers> {
  if (databaseUrl !== undefined) {
    const name = `postgres ${await readMajorVersion(databaseUrl)}`;
    return { servers: [{ name, url: databaseUrl }], keepLogs: async () => [], stop: async () => {} };
  }
  const started = await Promise.all((['system', 'embedded'] as const).map(startIfFound));
  const servers = started.filter((server) => server !== undefined);
  const nameOf = (server: PostgresServer): string => `postgres ${server.majorVersion}`;
  return {
    servers: servers.map((server) => ({ name: nameOf(server), url: server.url })),
    keepLogs: (folder) =>
      Promise.all(
        servers.map(async (server) => {
          const file = join(folder, `${nameOf(server).replace(' ', '-')}.log`);
          await server.keepLog(file);
          return file;
        }),
      ),
    stop: async () => {
      await Promise.all(servers.map((server) => server.stop()));
    },
  };
}

async function startIfFound(version: PostgresKind): Promise<PostgresServer | undefined> {
  const binaries = await findPostgresBinaries(version);
  return binaries && startPostgresServer({ version });
}

async function readMajorVersion(connectionString: string): Promise<number> {
  const database = await openPostgres({ connectionString, poolMax: 1 });
  try {
    const { rows } = await database.query<{ version: string }>(
      "select current_setting('server_version_num') as version",
    );
    return Math.floor(Number(rows[0]?.version) / 10_000);
  } finally {
    await database.close();
  }
}
