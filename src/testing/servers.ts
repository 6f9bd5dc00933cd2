/**
 * The databases that a test run uses: one server for each PostgreSQL that is found, and the files of an empty embedded
 * database, made once and kept, because making them takes seconds.
 */
import { mkdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { openPglite, openPostgres } from '../database/index.js';
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

/** The seed of an empty embedded database: made when `folder` has none for the installed version. Answers the file. */
export async function preparePgliteSeed(folder: string): Promise<string> {
  const entry = createRequire(import.meta.url).resolve('@electric-sql/pglite');
  const manifest = JSON.parse(await readFile(join(dirname(entry), '../package.json'), 'utf8')) as {
    version: string;
  };
  const file = join(folder, `pglite-${manifest.version}.tar`);
  const exists = await stat(file).then(
    () => true,
    () => false,
  );
  if (exists) return file;
  const database = await openPglite({ folder: 'memory' });
  const bytes = await database.dump();
  await database.close();
  await mkdir(dirname(file), { recursive: true });
  const made = `${file}.${process.pid}`;
  await writeFile(made, bytes);
  await rename(made, file).catch(() => rm(made, { force: true }));
  return file;
}
