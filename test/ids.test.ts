import { expect, test } from 'vitest';
import { randomToken, timeOrderedId } from '../src/ids.js';

test('a token begins with a letter, so that no command takes it for an option, and none comes twice', () => {
  const tokens = Array.from({ length: 5_000 }, randomToken);
  expect(tokens.filter((token) => !/^[A-Za-z][\w-]{21}$/.test(token))).toEqual([]);
  expect(new Set(tokens).size).toBe(tokens.length);
});

test('time-ordered ids sort by their time', () => {
  const times = [0, 1, 35, 36, 1_764_508_800_000, 1_764_508_800_001];
  const ids = times.map((time) => timeOrderedId(time));
  expect(ids).toEqual([...ids].sort());
  expect(ids.every((id) => /^[0-9a-z]{26}$/.test(id))).toBe(true);
});
