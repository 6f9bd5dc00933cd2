/** docs/guides/notify-proofs.md names a test for each promise: every one of them is there. */
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

it('every test that the page of proofs names is there', () => {
  const root = new URL('../../', import.meta.url);
  const page = readFileSync(new URL('docs/guides/notify-proofs.md', root), 'utf8');
  const named = [...page.matchAll(/\| `(\S+\.test\.ts)`: `([^`]+)` \|/g)];
  expect(named.length).toBe(page.split('\n').filter((line) => line.includes('.test.ts')).length);
  const missing = named.filter(
    ([, file, name]) => !readFileSync(new URL(file!, root), 'utf8').includes(name!),
  );
  expect(missing.map(([line]) => line)).toEqual([]);
});
