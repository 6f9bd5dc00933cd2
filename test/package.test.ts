/** The package as npm would publish it: what is in it, that every door opens, and that no door loads more than it needs. */
import { execFile } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const root = resolve(import.meta.dirname, '..');
const run = promisify(execFile);

interface Manifest {
  readonly exports: Readonly<Record<string, string | { readonly types: string; readonly default: string }>>;
}
const manifest = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as Manifest;
const doors = Object.keys(manifest.exports).filter((door) => door !== './package.json');

let folder: string;
let installed: string;

/** Puts the packed files beside the dependencies, as an installation would. */
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'headgate-package-'));
  const { stdout } = await run('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', folder], {
    cwd: root,
    maxBuffer: 16_000_000,
  });
  const [packed] = JSON.parse(stdout) as [{ filename: string }];
  const modules = join(folder, 'node_modules');
  await mkdir(modules);
  for (const name of readdirSync(join(root, 'node_modules'))) {
    if (!name.startsWith('.')) await symlink(join(root, 'node_modules', name), join(modules, name));
  }
  installed = join(modules, 'headgate');
  await mkdir(installed);
  await run('tar', ['-xzf', join(folder, packed.filename), '-C', installed, '--strip-components=1']);
}, 120_000);
afterAll(() => rm(folder, { recursive: true, force: true }));

/** Imports a door in a process of its own; answers the third-party modules that this loads and the names it exports. */
async function open(door: string): Promise<{ loaded: string[]; names: string[] }> {
  const specifier = door.replace('.', 'headgate');
  const program = join(folder, `${door.replaceAll(/\W/g, '-')}.mjs`);
  const hook = `export async function resolve(specifier, context, next) {
    const found = await next(specifier, context);
    if (found.url.includes('/node_modules/') && !found.url.includes('/node_modules/headgate/')) console.error(found.url);
    return found;
  }`;
  await writeFile(
    program,
    `import { register } from 'node:module';
     register('data:text/javascript,' + encodeURIComponent(${JSON.stringify(hook)}));
     console.log(JSON.stringify(Object.keys(await import('${specifier}'))));`,
  );
  const { stdout, stderr } = await run(process.execPath, ['--preserve-symlinks', program], { cwd: folder });
  return { loaded: stderr.split('\n').filter((line) => line !== ''), names: JSON.parse(stdout) as string[] };
}

describe('the package', () => {
  it.each(doors)('%s has its types and its module', (door) => {
    const entry = manifest.exports[door];
    if (typeof entry !== 'object') throw new Error(`${door} has no types`);
    expect([existsSync(join(installed, entry.types)), existsSync(join(installed, entry.default))]).toEqual([
      true,
      true,
    ]);
  });

  // the server is made of third-party modules, and the suite of a store runs in a test runner
  it.each(doors.filter((door) => !['./server', './testing/queue-store'].includes(door)))(
    'importing %s loads no third-party module',
    async (door) => {
      const { loaded, names } = await open(door);
      expect(loaded).toEqual([]);
      expect(names.length).toBeGreaterThan(0);
    },
  );

  it('brings what is read at run time: migrations, the dashboard, the seed', () => {
    const files = readdirSync(join(installed, 'dist'), { recursive: true }).map(String);
    expect(files).toEqual(
      expect.arrayContaining(['queue/postgres/migrations/0001-tables.sql', 'dashboard/index.html']),
    );
    expect(files.some((file) => /^database\/pglite-seed-.*\.tar\.gz$/.test(file))).toBe(true);
  });

  it('has a command that runs', async () => {
    const { stdout } = await run(process.execPath, [join(installed, 'dist/cli/main.js'), '--version']);
    expect(stdout.trim()).toMatch(/^\d+\.\d+\.\d+$/);
  });
});
