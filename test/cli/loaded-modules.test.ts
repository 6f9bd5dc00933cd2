/** What a command costs is what it loads: one that speaks to a running server loads no part, no store and no framework. */
import { execFile } from 'node:child_process';
import { resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestServer, type TestServer } from '../server/test-server.js';

const run = promisify(execFile);
const dist = resolve(import.meta.dirname, '../../dist');

/** Writes every file that is imported, one a line. */
const hook = `export async function resolve(specifier, context, next) {
  const found = await next(specifier, context);
  if (found.url.startsWith('file:')) (await import('node:fs')).writeSync(2, found.url + '\\n');
  return found;
}`;
const register = `import { register } from 'node:module';
register('data:text/javascript,' + encodeURIComponent(${JSON.stringify(hook)}));`;

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server?.stop());

/** Runs a command; answers the names of third-party packages and the folders of ours that it loaded. */
async function loadedBy(...args: string[]): Promise<{ packages: string[]; folders: string[] }> {
  const hooked = ['--import', `data:text/javascript,${encodeURIComponent(register)}`];
  const { stderr } = await run(process.execPath, [...hooked, `${dist}/cli/main.js`, ...args]);
  const loaded = stderr.split('\n').filter((line) => line.startsWith('file:'));
  const found = (pattern: RegExp): string[] => [
    ...new Set(loaded.flatMap((url) => pattern.exec(url)?.[1] ?? [])),
  ];
  return {
    packages: found(/\/node_modules\/((?:@[^/]+\/)?[^/]+)\//),
    folders: found(/\/dist\/([^/]+)\//),
  };
}

describe('a command', () => {
  it.each([
    ['--version', []],
    ['--help', []],
    ['start --help', []],
    ['queue list', ['--url']],
    ['feed stats', ['--url']],
    ['notify kinds', ['--url']],
  ])('%s loads the command line alone', { timeout: 60_000 }, async (command, url) => {
    const where = url.length > 0 ? ['--url', server.address] : [];
    expect(await loadedBy(...command.split(' '), ...where)).toEqual({
      packages: ['commander'],
      folders: ['cli'],
    });
  });
});
