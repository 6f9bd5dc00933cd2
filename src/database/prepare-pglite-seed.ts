/** Makes the seed of the embedded database, for the build and for tests. */
import { existsSync } from 'node:fs';
import { mkdir, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { openPglite } from './pglite.js';
import { pgliteSeedName } from './pglite-seed.js';

/** Makes the seed in `folder` unless it is there, and answers its file. */
export async function preparePgliteSeed(folder: string): Promise<string> {
  const file = join(folder, await pgliteSeedName());
  if (existsSync(file)) return file;
  const database = await openPglite({ folder: 'memory' });
  const packed = await promisify(gzip)(await database.dump());
  await database.close();
  await mkdir(folder, { recursive: true });
  // Two runs may make it at once; a reader never sees half a file.
  const made = `${file}.${process.pid}`;
  await writeFile(made, packed);
  await rename(made, file);
  return file;
}
