import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

const tokens = readFileSync(new URL('tokens.css', import.meta.url), 'utf8');
const [light = '', dark = ''] = tokens.split('@media (prefers-color-scheme: dark)');

function colorsOf(css: string): Map<string, string> {
  return new Map(
    [...css.matchAll(/--([a-z0-9-]+):\s*(#[0-9a-f]{6})/g)].map(([, name, hex]) => [name ?? '', hex ?? '']),
  );
}

/** Relative luminance as WCAG 2 defines it. */
function luminance(hex: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
    const share = Number.parseInt(hex.slice(at, at + 2), 16) / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrast(one: string, other: string): number {
  const [brighter = 0, darker = 0] = [luminance(one), luminance(other)].toSorted((a, b) => b - a);
  return (brighter + 0.05) / (darker + 0.05);
}

const texts: readonly [string, string][] = [
  ...['ground', 'surface', 'surface-raised'].flatMap((ground): [string, string][] => [
    ['text', ground],
    ['text-muted', ground],
    ['accent', ground],
    ['attention', ground],
    ['good', ground],
  ]),
  ['on-accent', 'accent'],
  ['accent', 'accent-ground'],
  ['text', 'accent-ground'],
  ['text-muted', 'accent-ground'],
  ['warning', 'warning-ground'],
  ['text', 'attention-ground'],
  ['text-muted', 'attention-ground'],
  ['attention', 'attention-ground'],
];
/** Lines and borders of controls need less. */
const shapes: readonly [string, string][] = ['1', '2', '3', '4'].map((number) => [
  `series-${number}`,
  'surface',
]);

for (const [scheme, css] of Object.entries({ light, dark })) {
  const colors = colorsOf(css);
  const weak = (pairs: readonly [string, string][], least: number): string[] =>
    pairs
      .map(([front, back]) => ({
        front,
        back,
        ratio: contrast(colors.get(front) ?? '', colors.get(back) ?? ''),
      }))
      .filter(({ ratio }) => !(ratio >= least))
      .map(({ front, back, ratio }) => `${front} on ${back}: ${ratio.toFixed(2)}`);

  it(`text is legible in ${scheme}: contrast 4.5 on every ground it stands on`, () => {
    expect(weak(texts, 4.5)).toEqual([]);
  });
  it(`lines of charts stand out in ${scheme}: contrast 3`, () => {
    expect(weak(shapes, 3)).toEqual([]);
  });
}
