/** `headgate feed import` as it is typed: what it prints, what it leaves out, when it gives up, and that it can be repeated. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { exitCodes } from '../../src/cli/exit-codes.js';
import { runHeadgate } from './headgate-process.js';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'headgate-import-'));
});
afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
});

async function headgate(...args: string[]): Promise<{ code: number | string; output: string }> {
  const started = runHeadgate(['feed', ...args, '--data', join(folder, 'data')]);
  const code = await started.exit();
  return { code, output: started.output() };
}

async function fileOf(name: string, content: string | Uint8Array): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, content);
  return path;
}

describe('headgate feed import', () => {
  it('brings follows and posts in, leaves bad lines out by name, and can be repeated', {
    timeout: 120_000,
  }, async () => {
    const graph = await fileOf('graph.txt.gz', gzipSync('ada ben\nada cid\nnonsense\n'));
    const first = await headgate('import', 'follows', graph, '--json');
    expect(first.code).toBe(exitCodes.done);
    expect(first.output).toContain('line 3 was left out');
    expect(first.output).toContain('"created":2');
    const again = await headgate('import', 'follows', graph, '--json');
    expect(again.output).toContain('"created":0,"known":2');

    const posts = await fileOf('posts.jsonl', '{"author":"ben","key":"k","text":"hello"}\n');
    expect((await headgate('import', 'posts', posts, '--json')).output).toContain('"created":1');
  });

  it('gives up at one bad line more than it may leave out, and names them', {
    timeout: 120_000,
  }, async () => {
    const bad = await fileOf('bad.csv', 'a,b\nx\ny\nz\n');
    const { code, output } = await headgate('import', 'follows', bad, '--bad-lines-max', '2');
    expect(code).toBe(exitCodes.usage);
    expect(output).toContain('line 2:');
    expect(output).toContain('line 4:');
  });

  it('refuses what it cannot import', { timeout: 120_000 }, async () => {
    expect((await headgate('import', 'likes', 'x')).code).toBe(exitCodes.usage);
    expect((await headgate('import', 'posts', join(folder, 'nowhere'))).code).toBe(exitCodes.usage);
  });
});
