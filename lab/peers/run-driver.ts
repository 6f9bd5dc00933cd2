/**
 * Runs one side of a comparison as a process of its own on the Node binary of this folder, so that all sides have the
 * same engine. Our own side is compiled first: what is measured is what is published.
 */
import { execFile } from 'node:child_process';
import { rmSync } from 'node:fs';
import { cp, mkdir, readdir, stat, symlink, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);
const folder = dirname(fileURLToPath(import.meta.url));
const root = join(folder, '../..');
const node = join(folder, 'node_modules/node/bin/node');
/** Our own side, compiled; of this process alone, so that several may run beside each other. */
const build = join(folder, `node_modules/.cache/headgate-${process.pid}`);

export type PeerName = 'headgate' | 'graphile-worker' | 'pg-boss' | 'bullmq' | 'bare-functions';
export type Workload = 'burn-down' | 'bulk-enqueue' | 'one-at-a-time';

export interface DriverRequest {
  readonly url: string;
  readonly workload: Workload;
  readonly messages: number;
  /** Handlers, or calls, side by side. */
  readonly slots: number;
  /** What our own store asks of the server; the peers take it as it is. */
  readonly durability: 'strict' | 'none';
  /** How long ended messages are kept: as each side does by default, or not at all. */
  readonly retention: 'default' | 'none';
}

export interface DriverAnswer {
  /** From the start to the last acknowledged completion (or enqueue). */
  readonly seconds: number;
  /** Handler calls; equal to the messages when each was handled once. */
  readonly handled: number;
  readonly lost: number;
  readonly doubled: number;
}

export async function runDriver(peer: PeerName, request: DriverRequest): Promise<DriverAnswer> {
  const file = join(folder, `drivers/${peer}.js`);
  const { stdout } = await run(node, [file, JSON.stringify({ ...request, build })], {
    maxBuffer: 16 * 2 ** 20,
    cwd: folder,
  });
  return JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as DriverAnswer;
}

/** Says how to get the peers when they are not there. */
export async function preparePeers(): Promise<string> {
  const exists = await stat(node).then(
    () => true,
    () => false,
  );
  if (!exists) throw new Error('the peers are not installed: npm install --prefix lab/peers');
  await compile();
  const { stdout } = await run(node, ['--version']);
  return stdout.trim();
}

/** Compiles the queue and the ground, with their SQL and Lua files; gone with this process. */
async function compile(): Promise<void> {
  process.once('exit', () => rmSync(build, { recursive: true, force: true }));
  await mkdir(build, { recursive: true });
  await writeFile(join(build, 'package.json'), '{ "type": "module" }\n');
  await run(join(root, 'node_modules/.bin/tsc'), ['-p', join(folder, 'tsconfig.json'), '--outDir', build]);
  const source = join(root, 'src');
  for (const entry of await readdir(source, { withFileTypes: true, recursive: true })) {
    if (!entry.isFile() || !/\.(sql|lua)$/.test(entry.name)) continue;
    const file = join(entry.parentPath, entry.name);
    await cp(file, join(build, relative(source, file)));
  }
  await symlink(join(root, 'node_modules'), join(build, 'node_modules'));
}
