/** Holds the direction of imports that ARCHITECTURE.md draws, and the manners of the tree. */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { describe, expect, it } from 'vitest';

const source = resolve(import.meta.dirname, '../src');

interface Import {
  readonly from: string;
  readonly to: string;
}

function typescriptFiles(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && /\.tsx?$/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name));
}

/** Imports of our own files, type imports included, as paths below src. */
function ownImports(file: string): Import[] {
  const text = readFileSync(file, 'utf8');
  const specifiers = [...text.matchAll(/(?:from|import)\s*\(?\s*'(\.[^']+)'/g)].map((match) => match[1]!);
  const below = (path: string) => relative(source, path).split(sep).join('/');
  return specifiers.map((specifier) => ({
    from: below(file),
    to: below(resolve(dirname(file), specifier.replace(/\.js$/, '.ts'))),
  }));
}

const files = typescriptFiles(source).filter((file) => !file.includes('.test.'));
const imports = files.flatMap(ownImports);

/** The folder that a file belongs to: `queue`, `queue/postgres`, `cli`, … and '' for the ground files. */
function partOf(path: string): string {
  const [first = '', second = ''] = path.split('/');
  if (!path.includes('/')) return '';
  if (['memory', 'postgres', 'redis'].includes(second)) return `${first}/${second}`;
  return first;
}

const isGround = (part: string) => part === '' || part === 'database';

/** What each part may import beside itself and the ground. */
const allowed: Readonly<Record<string, readonly string[]>> = {
  queue: [],
  feed: ['queue'],
  notify: ['queue'],
  server: ['queue', 'feed', 'notify'],
  cli: [
    'server',
    'queue',
    'feed',
    'notify',
    'queue/memory',
    'queue/postgres',
    'queue/redis',
    'feed/postgres',
    'feed/redis',
    'notify/postgres',
  ],
  dashboard: [],
};

function mayImport(from: string, to: string): boolean {
  if (from === to || from === 'testing' || isGround(to)) return true;
  if (isGround(from)) return false;
  if (from.includes('/')) return to === from.split('/')[0];
  return (allowed[from] ?? []).includes(to);
}

const show = (list: readonly Import[]) => list.map(({ from, to }) => `${from} -> ${to}`);

describe('the direction of imports', () => {
  it('goes only where ARCHITECTURE.md draws an arrow', () => {
    expect(imports.length).toBeGreaterThan(50);
    const wrong = imports.filter(
      ({ from, to }) => from !== 'index.ts' && !mayImport(partOf(from), partOf(to)),
    );
    expect(show(wrong)).toEqual([]);
  });

  it('enters another part by its index.ts', () => {
    const wrong = imports.filter(({ from, to }) => {
      const [source, target] = [partOf(from), partOf(to)];
      const isStoreOfItsPart = source.startsWith(`${target}/`);
      const isFree = source === 'testing' || (isGround(source) && isGround(target));
      return !isFree && source !== target && target !== '' && !isStoreOfItsPart && !to.endsWith('/index.ts');
    });
    expect(show(wrong)).toEqual([]);
  });

  it('joins a part with a store in cli/wire.ts alone', () => {
    const wrong = imports.filter(
      ({ from, to }) => partOf(to).includes('/') && partOf(from) === 'cli' && from !== 'cli/wire.ts',
    );
    expect(show(wrong)).toEqual([]);
  });

  it('lets a store see its port and messages only, not the part that uses it', () => {
    const wrong = imports.filter(
      ({ from, to }) =>
        partOf(from).includes('/') &&
        ['queue/index.ts', 'queue/queue.ts', 'feed/index.ts', 'feed/feed.ts'].includes(to),
    );
    expect(show(wrong)).toEqual([]);
  });

  it('imports nothing of the lab or the testing folder from the product', () => {
    const wrong = imports.filter(
      ({ from, to }) => partOf(from) !== 'testing' && (partOf(to) === 'testing' || to.startsWith('..')),
    );
    expect(show(wrong)).toEqual([]);
  });
});

describe('the manners of the tree', () => {
  it('opens every source file with a sentence on what it is for, but for plain lists of names', () => {
    const bare = files
      .filter((file) => !file.endsWith('index.ts') && !file.endsWith('.d.ts'))
      .filter((file) => !/^(#!.*\n)?\s*\/\*\*|^\s*\/\//.test(readFileSync(file, 'utf8')));
    expect(bare.map((file) => relative(source, file))).toEqual([]);
  });

  it('has no file that is several things', () => {
    const long = files.filter((file) => readFileSync(file, 'utf8').trimEnd().split('\n').length > 350);
    expect(long.map((file) => relative(source, file))).toEqual([]);
  });

  it('reads the environment in cli/config.ts alone', () => {
    const readers = files
      .filter((file) => /process\.env/.test(readFileSync(file, 'utf8')))
      .map((file) => relative(source, file));
    expect(
      readers.filter(
        (file) => !file.startsWith('testing/') && !['cli/config.ts', 'cli/main.ts'].includes(file),
      ),
    ).toEqual([]);
  });
});
