// Builds the package into dist: compiled modules, their SQL and Lua files beside them, and the dashboard.
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const bin = (name) => join(root, 'node_modules', '.bin', name);
const run = (command, args) =>
  execFileSync(command, args, { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] });

/** Files that are read at run time and that the compiler leaves alone. */
function assets(folder) {
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && /\.(sql|lua)$/.test(entry.name))
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name));
}

rmSync(join(root, 'dist'), { recursive: true, force: true });
run(bin('tsc'), ['-p', 'tsconfig.build.json']);
for (const file of assets(join(root, 'src'))) {
  const target = join(root, 'dist', relative(join(root, 'src'), file));
  mkdirSync(dirname(target), { recursive: true });
  cpSync(file, target);
}
// an empty embedded database, so that the first start need not make one; kept in a cache between builds
const { preparePgliteSeed } = await import('../dist/database/index.js');
const seed = await preparePgliteSeed(join(root, 'node_modules', '.cache', 'headgate'));
cpSync(seed, join(root, 'dist', 'database', basename(seed)));
run(bin('vite'), ['build', '--config', 'src/dashboard/vite.config.ts', '--logLevel', 'warn']);
if (!existsSync(join(root, 'dist', 'dashboard', 'index.html')))
  throw new Error('the dashboard was not built');
