/**
 * Remembers in the data folder which world it holds, so that a second start continues with it, an interrupted load goes
 * on, and another world is refused by name instead of mixed in. Written whole or not at all.
 */
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { HeadgateError, invalidInput } from '../../errors.js';
import type { WorldSample } from './sampler.js';

export interface WorldRecord {
  /** What the world is made of: a file by name and size, or the generated one by its number of accounts. */
  readonly source: string;
}

export type WorldState =
  | (WorldRecord & { readonly loaded: false })
  | (WorldRecord & { readonly loaded: true; readonly sample: WorldSample });

const fileOf = (folder: string) => join(folder, 'world.json');

export async function readWorldRecord(folder: string): Promise<WorldState | undefined> {
  let text: string;
  try {
    text = await readFile(fileOf(folder), 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
  try {
    return JSON.parse(text) as WorldState;
  } catch (cause) {
    throw new HeadgateError(
      'invalid-input',
      422,
      `${fileOf(folder)} is damaged; remove it to load the world again`,
      { cause },
    );
  }
}

export async function writeWorldRecord(folder: string, record: WorldState): Promise<void> {
  await mkdir(folder, { recursive: true });
  const draft = `${fileOf(folder)}.new`;
  await writeFile(draft, `${JSON.stringify(record)}\n`);
  await rename(draft, fileOf(folder));
}

/** Refuses to put one world on top of another. */
export function checkSameWorld(record: WorldRecord | undefined, source: string, folder: string): void {
  if (record && record.source !== source) {
    throw invalidInput(
      '--data',
      folder,
      `a folder for "${source}" (this one holds "${record.source}"; give another with --data)`,
    );
  }
}
