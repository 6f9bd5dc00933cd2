/**
 * The seed of the embedded database: the files of an empty one, packed. Unpacking them takes 1 s and 300 MB of memory,
 * making them 4 s and 800 MB. The build puts a seed beside this file; the sources do without, tests keep one in a cache.
 */
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** A seed fits only the version of PGlite that made it, so its name says which. */
export async function pgliteSeedName(): Promise<string> {
  const entry = createRequire(import.meta.url).resolve('@electric-sql/pglite');
  const manifest = JSON.parse(await readFile(join(dirname(entry), '../package.json'), 'utf8')) as {
    version: string;
  };
  return `pglite-seed-${manifest.version}.tar.gz`;
}

/** The seed that the build has put beside this file, if it fits the installed PGlite. */
export async function findBundledSeed(): Promise<string | undefined> {
  const file = fileURLToPath(new URL(await pgliteSeedName(), import.meta.url));
  return existsSync(file) ? file : undefined;
}
