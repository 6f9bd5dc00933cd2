/** The experiments: each has a name of its own, and those that the pages name exist. Running them is left to the machine that measures. */
import { readdir, readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { expect, it } from 'vitest';
import { experiments } from '../lab/experiments/index.js';

const root = resolve(import.meta.dirname, '..');

async function pages(): Promise<string[]> {
  const docs = await readdir(join(root, 'docs'), { recursive: true });
  return [
    'README.md',
    'ARCHITECTURE.md',
    'CHANGELOG.md',
    'lab/README.md',
    ...docs.map((name) => `docs/${name}`),
  ].filter((name) => name.endsWith('.md'));
}

it('the lab has every experiment that a page names', async () => {
  const names = experiments.map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
  const unknown: string[] = [];
  for (const page of await pages()) {
    const text = await readFile(join(root, page), 'utf8');
    for (const [, name = ''] of text.matchAll(/npm run lab -- ([a-z][a-z-]*)/g)) {
      if (name !== 'list' && !names.includes(name)) unknown.push(`${page}: ${name}`);
    }
  }
  expect(unknown).toEqual([]);
  // Those that the speed of the queue is told by.
  expect(names).toEqual(expect.arrayContaining(['peers', 'exclusive', 'backlog', 'timestone', 'durability']));
});
