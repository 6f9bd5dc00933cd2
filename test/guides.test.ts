/** The programs in the guides of queue and feed run as they stand: the blocks of a page, one after the other, are one program. */
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { expect, inject, it } from 'vitest';

const root = resolve(import.meta.dirname, '..');
/** That of the queue closes its database. */
const pages = ['feed', 'workers', 'lanes', 'exclusive', 'transactions', 'operating-the-queue', 'queue'];

async function programOf(page: string): Promise<string> {
  const text = await readFile(join(root, 'docs/guides', `${page}.md`), 'utf8');
  const blocks = [...text.matchAll(/^```ts\n(.*?)^```/gms)].map(([, block]) => block);
  // The second one of the feed is for those who have a Redis.
  const program = (page === 'feed' ? blocks.slice(0, 1) : blocks).join('\n');
  return program.replace("from 'headgate/database'", "from './database.mjs'");
}

/** One for all pages: making it is what takes long. */
const database = (): string => `import { openPglite as open } from 'headgate/database';
let opened;
export const openPostgres = () => openPglite();
export const openPglite = () => (opened ??= open({ folder: 'memory', seedFile: ${JSON.stringify(inject('pgliteSeedFile'))} }));
`;

it('the guides of queue and feed hold programs that run', { timeout: 120_000 }, async () => {
  const folder = await mkdtemp(join(tmpdir(), 'headgate-guides-'));
  const write = (name: string, text: string) => writeFile(join(folder, name), text);
  try {
    await write('database.mts', database());
    const lines: string[] = [];
    for (const page of pages) {
      await write(`${page}.mts`, await programOf(page));
      lines.push(
        `await import('${pathToFileURL(join(folder, `${page}.mts`)).href}');`,
        `console.log('${page} ran');`,
      );
    }
    // Some pages show how to start, and not how to stop.
    await write('all.mts', `${lines.join('\n')}\nprocess.exit(0);\n`);
    const program = ['--import', 'tsx', join(folder, 'all.mts')];
    const { stdout } = await promisify(execFile)(process.execPath, program, { cwd: root });
    for (const page of pages) expect(stdout).toContain(`${page} ran\n`);
  } finally {
    await rm(folder, { recursive: true });
  }
});
