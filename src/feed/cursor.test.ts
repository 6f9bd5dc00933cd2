import { describe, expect, test } from 'vitest';
import { type CursorKind, decodeCursor, encodeCursor } from './cursor.js';

const refused = { code: 'cursor-invalid', field: 'after' };

describe('a cursor', () => {
  test.each([
    ['home', '1750000000000000000'],
    ['home', '9223372036854775807'],
    ['ranked', '12.340'],
    ['posts', '1750000000000000000'],
    ['accounts', '7'],
  ] as const)('of %s at %s comes back as it was', (kind, position) => {
    expect(decodeCursor(kind, 'after', encodeCursor(kind, position))).toBe(position);
  });

  test.each<[CursorKind, string]>([
    ['home', ''],
    ['home', '-1'],
    ['home', '1.5'],
    ['home', 'abc'],
    ['home', '9223372036854775808'],
    ['home', '99999999999999999999'],
    ['ranked', '1'],
    ['ranked', '1.-5'],
    ['ranked', '9223372036854775808.1'],
    ['posts', '1 or 1'],
    ['accounts', '1.2'],
  ])('of %s that somebody made up for the position %j is refused by name', (kind, position) => {
    const cursor = encodeCursor(kind, position);
    expect(() => decodeCursor(kind, 'after', cursor)).toThrow(expect.objectContaining(refused));
  });
});
